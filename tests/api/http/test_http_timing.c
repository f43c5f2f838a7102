/* Races of the transport: its end while calls of other threads are still inside libmicrohttpd,
 * connections that open and close meanwhile, and an event of a connection whose descriptor already
 * belongs to another one. The tests delay system calls to cause these races: the functions of this
 * program replace those of the C library. */
#include "api/http/http.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/support/raw_http.h"
#include "tests/support/check_main.h"

#define DRAWN_OUT_MS 300

static _Thread_local bool is_drawn_out; /* delay the calls of this thread */
static atomic_bool is_in_write, is_write_over;
static atomic_bool is_news_late; /* delay the event that a peer left */
static atomic_int n_late, n_told;
static atomic_int kept_fd = -1; /* not closed before the watcher has its event */

/* dlsym returns a void pointer, which ISO C cannot convert to a function pointer. */
static void next_symbol(const char *name, void *ret, size_t size)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(ret, &symbol, size);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    ssize_t (*next)(int, const void *, size_t);
    next_symbol("write", &next, sizeof next);
    if (!is_drawn_out)
        return next(fd, bytes, len);
    atomic_store(&is_in_write, true);
    clock_sleep_ms(DRAWN_OUT_MS);
    ssize_t n = next(fd, bytes, len);
    atomic_store(&is_write_over, true);
    return n;
}

int epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
    int (*next)(int, int, int, struct epoll_event *);
    next_symbol("epoll_ctl", &next, sizeof next);
    int rc = next(epoll_fd, op, fd, event);
    if (is_drawn_out)
        clock_sleep_ms(DRAWN_OUT_MS);
    return rc;
}

int epoll_wait(int epoll_fd, struct epoll_event *events, int max, int wait_ms)
{
    int (*next)(int, struct epoll_event *, int, int);
    static _Thread_local bool was_late;
    next_symbol("epoll_wait", &next, sizeof next);
    if (was_late) /* the event was handled, and the watcher waits for the next */
        atomic_fetch_add(&n_told, 1);
    was_late = false;
    int n = next(epoll_fd, events, max, wait_ms);
    if (n > 0 && (events[0].events & EPOLLRDHUP) && atomic_load(&is_news_late)) {
        was_late = true;
        atomic_fetch_add(&n_late, 1);
        while (atomic_load(&is_news_late))
            clock_sleep_ms(1);
    }
    return n;
}

int close(int fd)
{
    int (*next)(int);
    next_symbol("close", &next, sizeof next);
    while (fd == atomic_load(&kept_fd) && atomic_load(&n_late) == 0)
        clock_sleep_ms(1);
    return next(fd);
}

static struct {
    struct http_server *http;
    int port;
    struct http_exchange *_Atomic parked;
    atomic_bool is_over;
} app;

static void on_head(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    x->body_kind = HTTP_BODY_NONE;
}

static void on_request(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    x->answer.status = 200;
    http_watch(x);
    if (strcmp(x->head.path, "/park") == 0)
        atomic_store(&app.parked, x);
    else
        http_release(x);
}

static void on_refusal(void *ctx, struct http_exchange *x, const struct as_err *err)
{
    (void)ctx;
    (void)err;
    x->answer.status = 400;
}

static void on_end(void *ctx, struct http_exchange *x)
{
    (void)ctx;
    (void)x;
}

static void on_gone(void *ctx)
{
    (void)ctx;
}

static void start_transport(unsigned threads)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof sa;
    struct as_err err;
    struct http_options opts = http_options_default();
    const struct http_app hooks = {.on_head = on_head,
                                   .on_request = on_request,
                                   .on_refusal = on_refusal,
                                   .on_end = on_end,
                                   .on_gone = on_gone};
    atomic_store(&app.parked, NULL);
    atomic_store(&app.is_over, false);
    opts.threads = threads;
    opts.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(opts.listen_fd, (struct sockaddr *)&sa, sizeof sa), 0);
    ck_assert_int_eq(listen(opts.listen_fd, 64), 0);
    ck_assert_int_eq(getsockname(opts.listen_fd, (struct sockaddr *)&sa, &len), 0);
    app.port = ntohs(sa.sin_port);
    ck_ok(http_start(&opts, &hooks, &app.http, &err), err);
}

static int open_get(const char *path)
{
    int fd = raw_connect(app.port);
    char text[80];
    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    raw_puts(fd, text);
    return fd;
}

static void expect_answer(int fd)
{
    struct str out = {0};
    ck_assert(!raw_read(fd, &out, "\r\n\r\n", PATIENCE_MS));
    ck_assert_int_eq(raw_status(&out), 200);
    str_done(&out);
    (void)close(fd);
}

#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t until_ = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;                                \
        while (!(condition) && clock_mono_ns() < until_)                                           \
            clock_sleep_ms(1);                                                                     \
        ck_assert(condition);                                                                      \
    } while (0)

static void *release_slowly(void *arg)
{
    is_drawn_out = true;
    http_release(arg);
    return NULL;
}

/* If something else wakes libmicrohttpd, a connection continues before MHD_resume_connection() of
 * another thread has written to the eventfd. The end of the transport closes that eventfd, so it
 * must wait for that thread. */
START_TEST(test_release_is_over_at_the_end)
{
    pthread_t t;
    start_transport(1);
    int parked = open_get("/park");
    AWAIT(atomic_load(&app.parked));
    ck_assert_int_eq(pthread_create(&t, NULL, release_slowly, atomic_load(&app.parked)), 0);
    AWAIT(atomic_load(&is_in_write));
    expect_answer(open_get("/")); /* wakes libmicrohttpd */
    expect_answer(parked);
    http_quiesce(app.http);
    ck_assert(http_stop(app.http, PATIENCE_MS));
    ck_assert(atomic_load(&is_write_over));
    ck_assert_int_eq(pthread_join(t, NULL), 0);
}
END_TEST

static void *come_and_go(void *arg)
{
    atomic_int *visits = arg;
    while (!atomic_load(&app.is_over)) {
        (void)close(raw_connect(app.port));
        if (atomic_fetch_add(visits, 1) >
            2000) /* a port stays in use for a minute, and there are 28,000 */
            clock_sleep_ms(1);
    }
    return NULL;
}

#define VISITS 20 /* before and after the transport goes quiet */

/* Workers may wake while http_quiesce() runs: nothing must fail. */
START_TEST(test_quiet_under_traffic)
{
    pthread_t t;
    atomic_int visits = 0;
    start_transport(2);
    ck_assert_int_eq(pthread_create(&t, NULL, come_and_go, &visits), 0);
    AWAIT(atomic_load(&visits) >= VISITS);
    is_drawn_out = true;
    http_quiesce(app.http);
    is_drawn_out = false;
    int before = atomic_load(&visits);
    AWAIT(atomic_load(&visits) >= before + VISITS);
    atomic_store(&app.is_over, true);
    ck_assert_int_eq(pthread_join(t, NULL), 0);
    ck_assert(http_stop(app.http, PATIENCE_MS));
}
END_TEST

/* After http_quiesce() a new connection ends without a byte, and an old one is served. */
START_TEST(test_quiet)
{
    struct str out = {0};
    start_transport(2);
    int parked = open_get("/park");
    AWAIT(atomic_load(&app.parked));
    http_quiesce(app.http);
    int late = raw_connect(app.port);
    ck_assert(raw_read(late, &out, "HTTP", PATIENCE_MS)); /* it ends */
    ck_assert_uint_eq(out.len, 0);
    (void)close(late);
    str_done(&out);
    http_release(atomic_load(&app.parked));
    expect_answer(parked);
    ck_assert(http_stop(app.http, PATIENCE_MS));
}
END_TEST

/* The server's descriptor of a connection. */
static int other_end(int fd)
{
    struct sockaddr_in mine = {0}, peer;
    socklen_t len = sizeof mine;
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&mine, &len), 0);
    for (int other = 0; other < 1024; other++) {
        len = sizeof peer;
        if (getpeername(other, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
            peer.sin_port == mine.sin_port)
            return other;
    }
    ck_abort_msg("no other end");
}

/* The event that a peer left arrives when the next connection has its descriptor. That connection
 * is served. */
START_TEST(test_late_news)
{
    start_transport(1);
    atomic_store(&is_news_late, true);
    int first = open_get("/park");
    AWAIT(atomic_load(&app.parked));
    int there = other_end(first);
    atomic_store(&kept_fd, there);
    http_release(atomic_exchange(&app.parked, NULL));
    expect_answer(first);
    AWAIT(atomic_load(&n_late) == 1);
    AWAIT(fcntl(there, F_GETFD) < 0);
    int second = open_get("/park");
    AWAIT(atomic_load(&app.parked));
    ck_assert_int_eq(other_end(second), there);
    atomic_store(&is_news_late, false);
    AWAIT(atomic_load(&n_told) == 1);
    ck_assert(!atomic_load(&atomic_load(&app.parked)->is_gone));
    http_release(atomic_load(&app.parked));
    expect_answer(second);
    ck_assert(http_stop(app.http, PATIENCE_MS));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_http_timing");
    TCase *tc = tcase_create("timing");
    tcase_add_test(tc, test_late_news);
    tcase_add_test(tc, test_quiet);
    tcase_add_test(tc, test_release_is_over_at_the_end);
    tcase_add_test(tc, test_quiet_under_traffic);
    suite_add_tcase(s, tc);
    return s;
}
