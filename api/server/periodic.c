/* The loop of the reaper and of garbage collection: a round when its interval is over, or at once
 * when it is woken. A wake-up during a round is kept, so that none is lost. A round runs without
 * the lock; a stop waits for it, because it may be in a transaction. */
#include "api/server/periodic.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

struct periodic {
    struct periodic_task task;
    pthread_mutex_t lock; /* guards the flags */
    pthread_cond_t change;
    bool is_stopping, is_over, is_woken;
    pthread_t thread;
};

/* Wait for a change until `until_ns` (monotonic). Returns false if the time has passed. */
static bool wait_locked(struct periodic *p, int64_t until_ns)
{
    return clock_cond_wait(&p->change, &p->lock, until_ns);
}

static void *run(void *arg)
{
    struct periodic *p = arg;
    int64_t next_ns = 0;
    pthread_mutex_lock(&p->lock);
    while (!p->is_stopping) {
        bool is_due = clock_mono_ns() >= next_ns;
        if (!is_due && !p->is_woken) {
            (void)wait_locked(p, next_ns);
            continue;
        }
        p->is_woken = false;
        pthread_mutex_unlock(&p->lock);
        bool again = p->task.round(p->task.arg, is_due);
        if (is_due)
            next_ns = clock_mono_ns() + p->task.every_ms * NS_PER_MS;
        pthread_mutex_lock(&p->lock);
        p->is_woken |= again;
    }
    p->is_over = true;
    pthread_cond_broadcast(&p->change);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

as_status periodic_start(const struct periodic_task *task, struct periodic **ret,
                         struct as_err *err)
{
    struct periodic *p = as_calloc(1, sizeof *p);
    if (!p)
        return as_fail_nomem(err);
    p->task = *task;
    (void)pthread_mutex_init(&p->lock, NULL); /* none of these can fail on Linux */
    clock_cond_init(&p->change);
    if (pthread_create(&p->thread, NULL, run, p) != 0) {
        free(p);
        return as_fail(err, AS_E_NOMEM, "cannot start the thread of %s", task->name);
    }
    *ret = p;
    return AS_OK;
}

static void set_locked(struct periodic *p, bool *flag)
{
    *flag = true;
    pthread_cond_broadcast(&p->change);
}

void periodic_wake(struct periodic *p)
{
    pthread_mutex_lock(&p->lock);
    set_locked(p, &p->is_woken);
    pthread_mutex_unlock(&p->lock);
}

void periodic_request_stop(struct periodic *p)
{
    pthread_mutex_lock(&p->lock);
    set_locked(p, &p->is_stopping);
    pthread_mutex_unlock(&p->lock);
}

bool periodic_end(struct periodic *p, int64_t wait_ms)
{
    int64_t until_ns = clock_mono_ns() + wait_ms * NS_PER_MS;
    if (!p)
        return true;
    pthread_mutex_lock(&p->lock);
    set_locked(p, &p->is_stopping);
    while (!p->is_over && wait_locked(p, until_ns))
        ;
    bool is_over = p->is_over;
    pthread_mutex_unlock(&p->lock);
    if (!is_over)
        return false;
    (void)pthread_join(p->thread, NULL);
    (void)pthread_cond_destroy(&p->change);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
    return true;
}
