#include "bench/serve/load.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define ANSWER_MAX (1 << 20)
#define CLIENTS_MAX 1024

struct client {
    int fd;
    size_t have; /* bytes of the answer */
    int64_t start_ns;
    char *answer;
};

static void give_up(const char *what)
{
    (void)fprintf(stderr, "serve: %s: %m\n", what);
    exit(EXIT_FAILURE);
}

static int connect_to(int port)
{
    const struct sockaddr_in sa = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&sa, sizeof sa) != 0)
        give_up("connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static void send_request(struct client *c, const char *request, size_t len)
{
    c->have = 0;
    c->start_ns = clock_mono_ns();
    for (size_t sent = 0; sent < len;) {
        ssize_t n = send(c->fd, request + sent, len - sent, MSG_NOSIGNAL);
        if (n <= 0)
            give_up("send");
        sent += (size_t)n;
    }
}

/* Is the whole answer there? */
static bool is_whole(const struct client *c)
{
    static const char field[] = "Content-Length: ";
    const char *end = memmem(c->answer, c->have, "\r\n\r\n", 4);
    if (!end)
        return false;
    const char *length = memmem(c->answer, (size_t)(end - c->answer), field, sizeof field - 1);
    if (strncmp(c->answer, "HTTP/1.1 200", 12) != 0 || !length) {
        (void)fprintf(stderr, "serve: %.*s\n", (int)c->have, c->answer);
        give_up("not the expected answer");
    }
    size_t head = (size_t)(end + 4 - c->answer);
    return c->have >= head + strtoul(length + sizeof field - 1, NULL, 10);
}

static bool receive(struct client *c)
{
    ssize_t n = recv(c->fd, c->answer + c->have, ANSWER_MAX - c->have - 1, 0);
    if (n <= 0)
        give_up("recv");
    c->have += (size_t)n;
    c->answer[c->have] = '\0';
    return is_whole(c);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct times {
    double *ms;
    size_t n, cap;
};

static void note(struct times *t, double ms)
{
    if (as_reserve_one(&t->ms, t->n, &t->cap, sizeof *t->ms, NULL) < 0)
        give_up("out of memory");
    t->ms[t->n++] = ms;
}

struct load_result load_run(int port, const char *request, size_t len, int clients, double seconds)
{
    static struct client all[CLIENTS_MAX];
    struct times t = {0};
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < clients; i++) {
        all[i] = (struct client){.fd = connect_to(port), .answer = malloc(ANSWER_MAX)};
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &all[i]};
        if (!all[i].answer || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, all[i].fd, &ev) != 0)
            give_up("epoll");
        send_request(&all[i], request, len);
    }
    size_t n_all = 0;
    int64_t start = clock_mono_ns() + (int64_t)(seconds * 1e8), now = 0;
    int64_t end = start + (int64_t)(seconds * 1e9);
    while (now < end) {
        struct epoll_event events[64];
        int n = epoll_wait(epoll_fd, events, 64, 10000);
        if (n <= 0)
            give_up("no answer within 10 s");
        for (int i = 0; i < n; i++) {
            struct client *c = events[i].data.ptr;
            if (!receive(c))
                continue;
            now = clock_mono_ns();
            n_all++;
            if (now >= start && now < end)
                note(&t, (double)(now - c->start_ns) / 1e6);
            send_request(c, request, len);
        }
    }
    for (int i = 0; i < clients; i++) {
        (void)close(all[i].fd);
        free(all[i].answer);
    }
    (void)close(epoll_fd);
    if (!t.n)
        give_up("no answer");
    qsort(t.ms, t.n, sizeof *t.ms, compare);
    struct load_result r = {(double)t.n / seconds, t.ms[t.n / 2], t.ms[t.n * 99 / 100],
                            t.ms[t.n - 1],         t.n,           n_all};
    free(t.ms);
    return r;
}
