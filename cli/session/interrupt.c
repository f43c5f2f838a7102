#include "cli/session/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "api/client/client.h"

static _Atomic(struct client *) clients[4];
static volatile sig_atomic_t seen;

static void on_signal(int number)
{
    (void)number;
    int saved = errno;
    seen = 1;
    for (size_t i = 0; i < AS_ARRAY_LEN(clients); i++) {
        struct client *c = atomic_load(&clients[i]);
        if (c)
            client_interrupt(c);
    }
    errno = saved;
}

void interrupt_setup(void)
{
    /* No SA_RESTART: the signal ends a system call that waits. SA_RESETHAND: the second signal
     * has its default action and ends the program. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < AS_ARRAY_LEN(numbers); i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &action, NULL); /* SIG_IGN of nohup stays */
    }
}

void interrupt_watch(struct client *c)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(clients); i++) {
        struct client *none = NULL;
        if (atomic_compare_exchange_strong(&clients[i], &none, c))
            break;
    }
    if (seen)
        client_interrupt(c);
}

void interrupt_unwatch(struct client *c)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(clients); i++) {
        struct client *mine = c;
        (void)atomic_compare_exchange_strong(&clients[i], &mine, NULL);
    }
}

bool interrupt_seen(void)
{
    return seen != 0;
}

bool interrupt_sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (!seen && nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    return !seen;
}
