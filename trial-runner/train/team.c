#include "trial-runner/train/team.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "trial-runner/protocol/control.h"
#include "trial-runner/protocol/ranks.h"

#define JOIN_MS 10000 /* a rank that has not connected by then is reported as lost */
#define PROGRESS_MS 1000
#define LOOK_MS 100 /* how often to look for a signal while waiting for a world */

struct team {
    int fd, wake_fd; /* wake_fd ends the reader */
    atomic_bool *stop;
    struct listener *listener;
    pthread_t reader;
    bool has_reader, has_lock;
    uint32_t epoch; /* of the last world that was tried */
    int32_t n;
    uint64_t sent_before;    /* bytes sent in earlier worlds */
    int64_t progress_due_ns; /* the trainer's thread alone uses these two */
    struct coll *coll;       /* freed by the trainer's thread alone, under the lock */

    pthread_mutex_t lock; /* guards what follows, and `coll` against the reader */
    pthread_cond_t changed;
    struct rank_request next; /* the newest world that was announced; n 0: none yet */
    bool gone;                /* the runner's socket has ended */
};

static void lock(struct team *t)
{
    (void)pthread_mutex_lock(&t->lock);
}

static void unlock(struct team *t)
{
    (void)pthread_mutex_unlock(&t->lock);
}

static void send_event(struct team *t, const struct rank_event *e)
{
    AS_AUTO(str_done) struct str line = {0};
    if (rank_event_format(e, &line, NULL) < 0)
        return;
    for (size_t done = 0; done < line.len;) {
        ssize_t n = send(t->fd, line.s + done, line.len - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* the reader sees that the runner is gone */
        done += (size_t)n;
    }
}

/* ---- the reader ---- */

static void end_epoch_locked(struct team *t)
{
    if (t->coll)
        coll_interrupt(t->coll);
    (void)pthread_cond_broadcast(&t->changed);
}

static void take_line(struct team *t, const char *line, size_t len)
{
    struct rank_request r = {0};
    struct as_err err;
    if (rank_request_parse(line, len, &r, &err) < 0) {
        (void)fprintf(stderr, "assay-train: the runner's line is refused: %s\n", err.msg);
        return;
    }
    lock(t);
    if (r.op == RANK_STOP) {
        atomic_store(t->stop, true);
    } else if (r.epoch > t->next.epoch) {
        struct rank_request before = t->next;
        t->next = r;
        r = before;
        end_epoch_locked(t);
    }
    unlock(t);
    rank_request_done(&r);
}

/* Returns false when the socket has ended. */
static bool read_some(struct team *t, struct control_lines *lines)
{
    char bytes[4096];
    size_t len;
    ssize_t n = recv(t->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n <= 0 || control_lines_feed(lines, bytes, (size_t)n, NULL) < 0)
        return false;
    for (const char *line; (line = control_lines_next(lines, &len));)
        take_line(t, line, len);
    return true;
}

static void *reader_main(void *arg)
{
    struct team *t = arg;
    AS_AUTO(control_lines_done) struct control_lines lines = {0};
    struct pollfd p[2] = {{.fd = t->fd, .events = POLLIN}, {.fd = t->wake_fd, .events = POLLIN}};
    while (poll(p, 2, -1) >= 0 || errno == EINTR) {
        if (p[1].revents)
            return NULL;
        if (p[0].revents && !read_some(t, &lines))
            break;
    }
    lock(t);
    t->gone = true;
    atomic_store(t->stop, true);
    end_epoch_locked(t);
    unlock(t);
    return NULL;
}

/* ---- life ---- */

static as_status start_reader(struct team *t, struct as_err *err)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&t->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)pthread_mutex_init(&t->lock, NULL);
    t->has_lock = true;
    t->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (t->wake_fd < 0)
        return as_fail(err, AS_E_IO, "eventfd: %s", strerror(errno));
    if (pthread_create(&t->reader, NULL, reader_main, t) != 0)
        return as_fail(err, AS_E_NOMEM, "no thread for the runner's lines");
    t->has_reader = true;
    return AS_OK;
}

as_status team_create(int fd, const char *address, atomic_bool *stop, struct team **ret,
                      struct as_err *err)
{
    AS_AUTO(team_freep) struct team *t = as_calloc(1, sizeof *t);
    char endpoint[ENDPOINT_TEXT_MAX];
    as_status st;
    if (!t)
        return as_fail_nomem(err);
    t->fd = fd;
    t->wake_fd = -1;
    t->stop = stop;
    if ((st = listener_create(address, &t->listener, err)) < 0 || (st = start_reader(t, err)) < 0)
        return st;
    struct rank_event e = {.kind = RANK_LISTENING,
                           .endpoint = endpoint_format(&t->listener->endpoint, endpoint)};
    send_event(t, &e);
    *ret = as_steal(t);
    return AS_OK;
}

void team_free(struct team *t)
{
    if (!t)
        return;
    if (t->has_reader) {
        uint64_t one = 1;
        ssize_t n = write(t->wake_fd, &one, sizeof one);
        (void)n;
        (void)pthread_join(t->reader, NULL);
    }
    coll_free(t->coll);
    listener_free(t->listener);
    rank_request_done(&t->next);
    if (t->has_lock) {
        (void)pthread_cond_destroy(&t->changed);
        (void)pthread_mutex_destroy(&t->lock);
    }
    if (t->wake_fd >= 0)
        (void)close(t->wake_fd);
    free(t);
}

struct coll *team_coll(const struct team *t)
{
    return t->coll;
}

bool team_stop_asked(const struct team *t)
{
    return atomic_load(t->stop);
}

/* ---- worlds ---- */

static as_status wait_for_world_locked(struct team *t, struct as_err *err)
{
    while (t->next.epoch <= (int64_t)t->epoch) {
        struct timespec until;
        if (atomic_load(t->stop))
            return as_fail(err, AS_E_UNAVAILABLE,
                           t->gone ? "the runner is gone" : "this rank is to stop");
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_MS * NS_PER_MS;
        if (until.tv_nsec >= NS_PER_S) {
            until.tv_sec++;
            until.tv_nsec -= NS_PER_S;
        }
        (void)pthread_cond_timedwait(&t->changed, &t->lock, &until);
    }
    return AS_OK;
}

/* The world that was announced; its endpoints are copied. */
static as_status read_world_locked(struct team *t, struct world *ret, struct endpoint **ret_peers,
                                   struct as_err *err)
{
    const struct rank_request *r = &t->next;
    AS_AUTO(as_freep) struct endpoint *peers = as_calloc(r->n, sizeof *peers);
    if (!peers)
        return as_fail_nomem(err);
    for (size_t i = 0; i < r->n; i++) {
        as_status st = endpoint_parse(rank_request_peer(r, i), &peers[i], err);
        if (st < 0)
            return st;
    }
    *ret = (struct world){.attempt = r->attempt,
                          .epoch = (uint32_t)r->epoch,
                          .rank = (int32_t)r->rank,
                          .n = (int32_t)r->n,
                          .peers = peers};
    memcpy(ret->secret, r->secret, sizeof ret->secret);
    t->epoch = ret->epoch;
    t->n = ret->n;
    *ret_peers = as_steal(peers);
    return AS_OK;
}

static void report_lost(struct team *t, int32_t rank)
{
    send_event(t, &(struct rank_event){.kind = RANK_LOST, .epoch = t->epoch, .rank = rank});
}

static void print_stall(void *arg, const struct transfer *waits, int64_t waited_ms)
{
    (void)arg;
    (void)fprintf(stderr,
                  "assay-train: rank %d has been silent about '%s' of step %llu for %.1f s\n",
                  (int)waits->peer, waits->what ? waits->what : "", (unsigned long long)waits->step,
                  (double)waited_ms / 1000);
}

as_status team_meet(struct team *t, struct as_err *err)
{
    for (;;) {
        AS_AUTO(as_freep) struct endpoint *peers = NULL;
        struct mesh_opts opts = {.join_ms = JOIN_MS, .on_stall = print_stall};
        struct world w;
        struct coll *c = NULL;
        int32_t missing = -1;
        lock(t);
        as_status st = wait_for_world_locked(t, err);
        if (st == AS_OK)
            st = read_world_locked(t, &w, &peers, err);
        unlock(t);
        if (st < 0)
            return st;
        st = coll_create(t->listener, &w, &opts, &c, &missing, err);
        if (st == AS_OK) {
            lock(t);
            t->coll = c;
            if (t->next.epoch > (int64_t)t->epoch) /* it came while this rank connected */
                coll_interrupt(c);
            unlock(t);
            return AS_OK;
        }
        if (st != AS_E_UNAVAILABLE)
            return st;
        report_lost(t, missing);
    }
}

void team_joined(struct team *t, int64_t step)
{
    send_event(t, &(struct rank_event){.kind = RANK_JOINED, .epoch = t->epoch, .step = step});
}

void team_progress(struct team *t, int64_t step)
{
    int64_t now_ns = clock_mono_ns();
    if (now_ns < t->progress_due_ns)
        return;
    t->progress_due_ns = now_ns + PROGRESS_MS * NS_PER_MS;
    uint64_t sent = t->sent_before + (t->coll ? coll_bytes_sent(t->coll) : 0);
    send_event(
        t, &(struct rank_event){.kind = RANK_PROGRESS, .step = step, .sent_bytes = (int64_t)sent});
}

void team_part(struct team *t)
{
    struct coll *c = t->coll;
    if (!c)
        return;
    int32_t lost = coll_lost(c);
    t->sent_before += coll_bytes_sent(c);
    lock(t);
    t->coll = NULL;
    bool known = t->next.epoch > (int64_t)t->epoch; /* the runner knows already */
    unlock(t);
    coll_free(c);
    if (!known)
        report_lost(t, lost);
}
