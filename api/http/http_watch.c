/* The table of connections and its watcher thread.
 *
 * The table is an array indexed by descriptor, because libmicrohttpd identifies a connection in its
 * callbacks by that. A descriptor is reused after a connection is closed, so each entry has a
 * serial number, and an epoll event carries the number of its connection: a late event of the old
 * connection does not match the new one.
 *
 * The thread waits for EPOLLRDHUP of watched connections and checks the deadlines of all of them
 * every SCAN_MS. It ends a connection by shutdown(2), which is safe from any thread: libmicrohttpd
 * then sees an end of data and cleans up. */
#include "api/http/http_watch_priv.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "api/http/http_shares.h"
#include "api/http/http_stream_priv.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/notify.h"

#define SCAN_MS 250

struct slot {
    uint32_t serial; /* number of the connection: descriptors are reused */
    bool is_open, is_polled;
    bool is_fresh; /* no head was read yet */
    http_phase phase;
    int64_t since_ns; /* when the phase began */
    int64_t received; /* bytes in this phase */
    struct http_exchange *x;
    struct http_stream *stream;
};

struct http_table {
    struct http_options opts;
    struct http_app app;
    /* Guards slots, shares, n_used and n_served. Taken before the locks of streams and of
     * libmicrohttpd. */
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct slot *slots; /* indexed by descriptor */
    struct http_shares *shares;
    unsigned max;
    int n_slots, n_served;
    int n_used; /* slots from here on were never used */
    int epoll_fd;
    atomic_bool is_stopping;
    pthread_t thread;
    bool has_thread;
};

static struct slot *slot_of(struct http_table *t, int fd)
{
    return fd >= 0 && fd < t->n_slots ? &t->slots[fd] : NULL;
}

unsigned http_table_max(const struct http_table *t)
{
    return t->max;
}

void http_table_opened(struct http_table *t, int fd, const struct sockaddr *addr)
{
    pthread_mutex_lock(&t->lock);
    struct slot *s = slot_of(t, fd);
    int victim = s ? http_shares_add(t->shares, fd, addr) : HTTP_SHARE_REFUSED;
    if (s) {
        *s = (struct slot){.serial = s->serial + 1,
                           .is_open = true,
                           .is_fresh = true,
                           .since_ns = clock_mono_ns()};
        t->n_used = fd < t->n_used ? t->n_used : fd + 1;
    }
    /* without a slot: above RLIMIT_NOFILE as it was at the start */
    if (victim != HTTP_SHARE_ROOM)
        (void)shutdown(victim == HTTP_SHARE_REFUSED ? fd : victim, SHUT_RDWR);
    pthread_mutex_unlock(&t->lock);
}

void http_table_closed(struct http_table *t, int fd)
{
    pthread_mutex_lock(&t->lock);
    struct slot *s = slot_of(t, fd);
    if (s) {
        *s = (struct slot){.serial = s->serial};
        http_shares_remove(t->shares, fd);
    }
    pthread_mutex_unlock(&t->lock);
}

static http_share_use use_of(const struct slot *s)
{
    if (s->phase == HTTP_PHASE_BODY || s->phase == HTTP_PHASE_WORK)
        return HTTP_SHARE_BUSY;
    return s->is_fresh ? HTTP_SHARE_SILENT : HTTP_SHARE_IDLE;
}

void http_table_phase(struct http_table *t, int fd, http_phase phase)
{
    pthread_mutex_lock(&t->lock);
    struct slot *s = slot_of(t, fd);
    if (s) {
        /* the deadline of a head is not put off: by its first line, or by silence before the first
         * one of a connection */
        bool goes_on = phase == HTTP_PHASE_HEAD && (s->is_fresh || s->phase == HTTP_PHASE_HEAD);
        s->since_ns = goes_on ? s->since_ns : clock_mono_ns();
        s->is_fresh = s->is_fresh && goes_on;
        s->phase = phase;
        s->received = 0;
        http_shares_use(t->shares, fd, use_of(s));
    }
    pthread_mutex_unlock(&t->lock);
}

void http_table_received(struct http_table *t, int fd, size_t bytes)
{
    pthread_mutex_lock(&t->lock);
    struct slot *s = slot_of(t, fd);
    if (s)
        s->received += (int64_t)bytes;
    pthread_mutex_unlock(&t->lock);
}

void http_table_serve(struct http_table *t, int fd, struct http_exchange *x)
{
    pthread_mutex_lock(&t->lock);
    struct slot *s = slot_of(t, fd);
    if (s) {
        t->n_served += (x != NULL) - (s->x != NULL);
        s->x = x;
        s->stream = NULL;
        if (t->n_served == 0)
            pthread_cond_broadcast(&t->idle);
    }
    pthread_mutex_unlock(&t->lock);
}

void http_table_stream(struct http_table *t, int fd, struct http_stream *stream)
{
    pthread_mutex_lock(&t->lock);
    struct slot *s = slot_of(t, fd);
    if (s)
        s->stream = stream;
    pthread_mutex_unlock(&t->lock);
}

/* The data of an epoll event. Its descriptor may already belong to another connection when the
 * event is read, so the serial number goes with it. */
static uint64_t pack_event_data(int fd, uint32_t serial)
{
    return (uint64_t)serial << 32 | (uint32_t)fd;
}

void http_table_watch(struct http_table *t, int fd)
{
    pthread_mutex_lock(&t->lock);
    struct slot *s = slot_of(t, fd);
    if (s && s->is_open) {
        struct epoll_event ev = {.events = EPOLLRDHUP | EPOLLONESHOT,
                                 .data.u64 = pack_event_data(fd, s->serial)};
        if (epoll_ctl(t->epoll_fd, s->is_polled ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &ev) == 0)
            s->is_polled = true;
    }
    pthread_mutex_unlock(&t->lock);
}

void http_table_release(struct http_table *t, void (*resume)(void *conn), void *conn)
{
    pthread_mutex_lock(&t->lock);
    resume(conn);
    pthread_mutex_unlock(&t->lock);
}

bool http_table_wait_idle(struct http_table *t, int64_t wait_ms)
{
    int64_t until_ns = clock_mono_ns() + wait_ms * NS_PER_MS;
    pthread_mutex_lock(&t->lock);
    while (t->n_served > 0 && clock_cond_wait(&t->idle, &t->lock, until_ns))
        ;
    bool is_idle = t->n_served == 0;
    pthread_mutex_unlock(&t->lock);
    return is_idle;
}

void http_table_cut_all(struct http_table *t)
{
    pthread_mutex_lock(&t->lock);
    for (int fd = 0; fd < t->n_used; fd++)
        if (t->slots[fd].is_open)
            (void)shutdown(fd, SHUT_RDWR);
    pthread_mutex_unlock(&t->lock);
}

static bool is_overdue(const struct http_table *t, const struct slot *s, int64_t now)
{
    int64_t age = now - s->since_ns, rated = age - t->opts.body_grace_ms * NS_PER_MS;
    switch (s->phase) {
    case HTTP_PHASE_IDLE:
        return age > (s->is_fresh ? t->opts.head_ms : t->opts.idle_ms) * NS_PER_MS;
    case HTTP_PHASE_HEAD:
        return age > t->opts.head_ms * NS_PER_MS;
    case HTTP_PHASE_BODY:
    case HTTP_PHASE_REST:
        return rated > 0 && (double)s->received < (double)rated / 1e9 * (double)t->opts.body_rate;
    case HTTP_PHASE_WORK:
        return false;
    }
    return false;
}

static void cut_overdue(struct http_table *t)
{
    int64_t now = clock_mono_ns();
    pthread_mutex_lock(&t->lock);
    for (int fd = 0; fd < t->n_used; fd++)
        if (t->slots[fd].is_open && is_overdue(t, &t->slots[fd], now))
            (void)shutdown(fd, SHUT_RDWR);
    pthread_mutex_unlock(&t->lock);
}

/* The peer of a connection left. Returns whether an exchange was affected. */
static bool note_gone(struct http_table *t, uint64_t packed)
{
    pthread_mutex_lock(&t->lock);
    struct slot *s = slot_of(t, (int)(uint32_t)packed);
    bool is_affected = s && s->x && s->serial == packed >> 32;
    if (is_affected) {
        atomic_store(&s->x->is_gone, true);
        if (s->stream)
            http_stream_abandon(s->stream);
    }
    pthread_mutex_unlock(&t->lock);
    return is_affected;
}

static void *watch_connections(void *arg)
{
    struct http_table *t = arg;
    int64_t scanned = clock_mono_ns();
    struct notify_watchdog watchdog = {.every_ns = notify_watchdog_ns()};
    while (!atomic_load(&t->is_stopping)) {
        struct epoll_event events[64];
        int n = epoll_wait(t->epoll_fd, events, AS_ARRAY_LEN(events), SCAN_MS);
        bool is_affected = false;
        for (int i = 0; i < n; i++)
            is_affected |= note_gone(t, events[i].data.u64);
        if (is_affected)
            t->app.on_gone(t->app.ctx);
        if (clock_mono_ns() - scanned >= SCAN_MS * NS_PER_MS) {
            cut_overdue(t);
            notify_beat(&watchdog); /* the lock that every connection needs is free, too */
            scanned = clock_mono_ns();
        }
    }
    return NULL;
}

as_status http_table_create(const struct http_options *opts, const struct http_app *app,
                            struct http_table **ret, struct as_err *err)
{
    struct rlimit lim = {.rlim_cur = 1024};
    (void)getrlimit(RLIMIT_NOFILE, &lim);
    struct http_table *t = as_calloc(1, sizeof *t);
    if (!t)
        return as_fail(err, AS_E_NOMEM, "out of memory for the connections");
    t->opts = *opts;
    t->app = *app;
    t->n_slots = lim.rlim_cur < 65536 ? (int)lim.rlim_cur : 65536;
    t->slots = as_calloc((size_t)t->n_slots, sizeof *t->slots);
    /* An eighth of the descriptors stays for files and the database: without one, nothing could be
     * accepted, and so nothing closed for it. */
    unsigned most = (unsigned)(t->n_slots - t->n_slots / 8);
    t->max = opts->max_connections < most ? opts->max_connections : most;
    const struct http_share_limits limits = {t->max, opts->max_per_address};
    as_status st = http_shares_create(t->n_slots, &limits, &t->shares, err);
    t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    bool ok =
        t->slots && st == AS_OK && t->epoll_fd >= 0 && pthread_mutex_init(&t->lock, NULL) == 0;
    clock_cond_init(&t->idle);
    t->has_thread = ok && pthread_create(&t->thread, NULL, watch_connections, t) == 0;
    if (!t->has_thread) {
        http_table_free(t);
        return as_fail(err, AS_E_NOMEM, "cannot start the connection watcher");
    }
    *ret = t;
    return AS_OK;
}

void http_table_free(struct http_table *t)
{
    if (!t)
        return;
    atomic_store(&t->is_stopping, true);
    if (t->has_thread)
        (void)pthread_join(t->thread, NULL);
    file_closep(&t->epoll_fd);
    free(t->slots);
    http_shares_free(t->shares);
    free(t);
}
