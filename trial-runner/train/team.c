/* Two threads. The reader takes the runner's lines and, when a newer world is announced, interrupts
 * what the trainer's thread waits for (the collective, or the connecting). The trainer's thread
 * alone makes and frees the collective. `lock` guards what both use, `sending` the socket, and is
 * taken last. A loss is reported from whichever thread notices it, before anything is closed,
 * because closed connections look like further losses to the others (decision 8004). */
#include "trial-runner/train/team.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "trial-runner/protocol/control.h"
#include "trial-runner/protocol/ranks.h"

enum { TAG_FINISH = (1 << 16) + 3, TAG_KNOWN, TAG_LEAVE }; /* behind those of who meets */

#define JOIN_MS 10000 /* a rank that has not connected by then is reported as lost */
#define PROGRESS_MS 1000
#define LOOK_MS 100 /* how often to look for a signal while waiting for a world */

struct team {
    int fd, wake_fd; /* wake_fd ends the reader */
    atomic_bool *stop;
    struct listener *listener;
    int over_fd;        /* readable: a newer world than the one that is tried has been announced */
    int64_t silence_ms; /* of the mesh */
    int64_t join_ms;
    pthread_t reader;
    bool has_reader, has_locks;
    bool announced; /* the runner knows where it listens */
    bool told;      /* the log says that what is sent is encrypted */
    uint32_t epoch; /* of the last world that was tried */
    int32_t n;
    uint64_t sent_before;    /* bytes sent in earlier worlds */
    int64_t progress_due_ns; /* the trainer's thread alone uses these two */
    struct coll *coll;       /* freed by the trainer's thread alone, under the lock */
    int32_t *missing;        /* [RANKS_MAX]: those who did not connect */
    size_t n_missing;

    pthread_mutex_t lock; /* guards what follows, and `coll` against the reader */
    pthread_cond_t changed;
    struct rank_request next; /* the newest world that was announced; n 0: none yet */
    bool gone;                /* the runner's socket has ended */

    pthread_mutex_t sending; /* one line at a time; taken last */
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
    (void)pthread_mutex_lock(&t->sending);
    for (size_t done = 0; done < line.len;) {
        ssize_t n = send(t->fd, line.s + done, line.len - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break; /* the reader sees that the runner is gone */
        done += (size_t)n;
    }
    (void)pthread_mutex_unlock(&t->sending);
}

/* ---- the reader ---- */

static void end_epoch_locked(struct team *t)
{
    uint64_t one = 1;
    ssize_t n = write(t->over_fd, &one, sizeof one);
    (void)n;
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
    clock_cond_init(&t->changed);
    (void)pthread_mutex_init(&t->lock, NULL);
    (void)pthread_mutex_init(&t->sending, NULL);
    t->has_locks = true;
    t->wake_fd = eventfd(0, EFD_CLOEXEC);
    t->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->wake_fd < 0 || t->over_fd < 0)
        return as_fail(err, AS_E_IO, "eventfd: %s", strerror(errno));
    if (pthread_create(&t->reader, NULL, reader_main, t) != 0)
        return as_fail(err, AS_E_NOMEM, "no thread for the runner's lines");
    t->has_reader = true;
    return AS_OK;
}

as_status team_create(int fd, const char *address, const struct team_opts *opts, atomic_bool *stop,
                      struct team **ret, struct as_err *err)
{
    AS_AUTO(team_freep) struct team *t = as_calloc(1, sizeof *t);
    as_status st;
    if (!t)
        return as_fail_nomem(err);
    t->fd = fd;
    t->wake_fd = t->over_fd = -1;
    t->stop = stop;
    t->silence_ms = opts->silence_ms;
    t->join_ms = opts->join_ms ? opts->join_ms : JOIN_MS;
    t->missing = as_calloc(RANKS_MAX, sizeof *t->missing);
    if (!t->missing)
        return as_fail_nomem(err);
    file_raise_limit(); /* to each rank a connection, on its host two more descriptors */
    if ((st = listener_create(address, &t->listener, err)) < 0 || (st = start_reader(t, err)) < 0)
        return st;
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
    if (t->has_locks) {
        (void)pthread_cond_destroy(&t->changed);
        (void)pthread_mutex_destroy(&t->lock);
        (void)pthread_mutex_destroy(&t->sending);
    }
    if (t->wake_fd >= 0)
        (void)close(t->wake_fd);
    if (t->over_fd >= 0)
        (void)close(t->over_fd);
    free(t->missing);
    free(t);
}

struct coll *team_coll(const struct team *t)
{
    return t->coll;
}

uint64_t team_bytes_sent(const struct team *t)
{
    return t->sent_before + (t->coll ? coll_bytes_sent(t->coll) : 0);
}

bool team_stop_asked(const struct team *t)
{
    return atomic_load(t->stop);
}

/* ---- worlds ---- */

static void announce(struct team *t)
{
    char endpoint[ENDPOINT_TEXT_MAX];
    if (t->announced)
        return;
    t->announced = true;
    struct rank_event e = {.kind = RANK_LISTENING,
                           .endpoint = endpoint_format(&t->listener->endpoint, endpoint)};
    send_event(t, &e);
}

static as_status wait_for_world_locked(struct team *t, struct as_err *err)
{
    while (t->next.epoch <= (int64_t)t->epoch) {
        if (atomic_load(t->stop))
            return as_fail(err, AS_E_UNAVAILABLE,
                           t->gone ? "the runner is gone" : "this rank is to stop");
        (void)clock_cond_wait(&t->changed, &t->lock, clock_mono_ns() + LOOK_MS * NS_PER_MS);
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
    t->n_missing = 0;
    uint64_t count; /* what it says is of worlds up to this one */
    ssize_t n = read(t->over_fd, &count, sizeof count);
    (void)n;
    *ret_peers = as_steal(peers);
    return AS_OK;
}

/* The first is the one that was noticed; n 0: it cannot be said who is lost. */
static void report_lost(struct team *t, const int32_t *ranks, size_t n)
{
    json_t *others = n > 1 ? json_array() : NULL;
    for (size_t i = 1; others && i < n; i++)
        if (json_array_append_new(others, json_integer(ranks[i])) < 0)
            break;
    send_event(t, &(struct rank_event){.kind = RANK_LOST,
                                       .epoch = t->epoch,
                                       .rank = n > 0 ? ranks[0] : -1,
                                       .others = others});
    json_decref(others);
}

/* The reader or the collective's thread may be the one that notices; the trainer's thread may
 * compute for long before it does. */
static void report_break(void *arg, struct mesh *m)
{
    struct team *t = arg;
    int32_t lost = mesh_lost(m);
    if (lost < 0) /* the epoch is over, or a peer has left it and says why */
        return;
    AS_AUTO(as_freep) int32_t *ranks = as_calloc((size_t)mesh_size(m), sizeof *ranks);
    size_t n = 1;
    if (!ranks)
        return; /* other ranks report it too */
    ranks[0] = lost;
    for (int32_t r = 0; r < mesh_size(m); r++)
        if (r != lost && mesh_is_silent(m, r))
            ranks[n++] = r;
    report_lost(t, ranks, n);
}

static void note_missing(void *arg, int32_t rank)
{
    struct team *t = arg;
    t->missing[t->n_missing++] = rank;
}

static void print_stall(void *arg, const struct transfer *waits, int64_t waited_ms)
{
    (void)arg;
    (void)fprintf(stderr,
                  "assay-train: rank %d has been silent about '%s' of step %llu for %.1f s\n",
                  (int)waits->peer, waits->what ? waits->what : "", (unsigned long long)waits->step,
                  (double)waited_ms / 1000);
}

static void tell_encryption(struct team *t)
{
    if (t->told || !coll_world(t->coll)->encrypt || coll_size(t->coll) == 1)
        return;
    (void)printf("what is sent to ranks of other hosts is encrypted (AES-256-GCM)\n");
    t->told = true;
}

as_status team_meet(struct team *t, bool encrypt, struct as_err *err)
{
    announce(t);
    for (;;) {
        AS_AUTO(as_freep) struct endpoint *peers = NULL;
        struct mesh_opts opts = {.join_ms = t->join_ms,
                                 .silence_ms = t->silence_ms,
                                 .over_fd = t->over_fd,
                                 .on_stall = print_stall,
                                 .on_break = report_break,
                                 .on_missing = note_missing,
                                 .arg = t};
        struct world w;
        struct coll *c = NULL;
        lock(t);
        as_status st = wait_for_world_locked(t, err);
        if (st == AS_OK)
            st = read_world_locked(t, &w, &peers, err);
        unlock(t);
        if (st < 0)
            return st;
        w.encrypt = encrypt;
        st = coll_create(t->listener, &w, &opts, &c, NULL, err);
        if (st == AS_OK) {
            lock(t);
            t->coll = c;
            if (t->next.epoch > (int64_t)t->epoch) /* it came while this rank connected */
                coll_interrupt(c);
            unlock(t);
            tell_encryption(t);
            return AS_OK;
        }
        if (st != AS_E_UNAVAILABLE)
            return st;
        if (t->n_missing > 0)
            report_lost(t, t->missing, t->n_missing);
    }
}

void team_joined(struct team *t, int64_t step)
{
    send_event(t, &(struct rank_event){.kind = RANK_JOINED, .epoch = t->epoch, .step = step});
}

void team_progress_last(struct team *t, int64_t step, int64_t step_ns)
{
    send_event(t, &(struct rank_event){.kind = RANK_PROGRESS,
                                       .step = step,
                                       .sent_bytes = (int64_t)team_bytes_sent(t),
                                       .step_ns = step_ns});
}

void team_progress(struct team *t, int64_t step, int64_t step_ns)
{
    int64_t now_ns = clock_mono_ns();
    if (now_ns < t->progress_due_ns)
        return;
    t->progress_due_ns = now_ns + PROGRESS_MS * NS_PER_MS;
    team_progress_last(t, step, step_ns);
}

as_status team_leave_together(struct team *t, uint64_t position, struct as_err *err)
{
    struct coll_id id = {.step = position, .tag = TAG_FINISH, .what = "the end"};
    as_status st = coll_barrier(t->coll, id, err);
    if (st < 0)
        return st;
    id.tag = TAG_KNOWN;
    if ((st = coll_barrier(t->coll, id, err)) == AS_E_UNAVAILABLE && coll_rank(t->coll) == 0)
        return st;
    id.tag = TAG_LEAVE;
    if (st == AS_OK)
        st = coll_barrier(t->coll, id, err);
    return st == AS_E_UNAVAILABLE ? AS_OK : st;
}

void team_part(struct team *t)
{
    struct coll *c = t->coll;
    if (!c)
        return;
    t->sent_before += coll_bytes_sent(c);
    lock(t);
    t->coll = NULL;
    bool known = t->next.epoch > (int64_t)t->epoch; /* the runner knows already */
    unlock(t);
    if (!known && coll_lost(c) < 0)
        report_lost(t, NULL, 0); /* before the peers see that this rank has gone */
    coll_free(c);
}
