/* One loop moves all bytes: it tries every link that has something to do, spins for a short time
 * when nothing moved, and then sleeps in epoll until a peer rings the bell, a socket has something,
 * or a peer's process ends. The peer that it waits for may need this processor: because this host
 * has fewer of them than ranks, or because others compute here. So it yields the processor while it
 * spins, if it has one for each rank after the first microsecond. That costs less than a sleep and
 * a wake-up (3 KiB on 3 ranks of 2 processors: 37 us with sleeps, 8 us with yields).
 *
 * Loss of a peer: its process ends (pidfd, or the end of the connection) at once; its host is
 * silent or its process is stopped: no sign of life for silence_ms. A slow peer is not lost: its
 * collective thread shows life while it computes. */
#include "trial-runner/collective/mesh.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "trial-runner/collective/connect.h"

#define HEARTBEAT_EVERY_NS (100 * NS_PER_MS)
#define DRAIN_TURNS 64 /* a peer without a connection may still write: not for ever */
/* A peer that has a processor answers so soon. 5 us cost twice as much where others compute: both
 * ranks may stand on one processor. */
#define PAUSE_NS INT64_C(1000)
#define SPIN_NS (50 * INT64_C(1000)) /* about what a sleep and a wake-up cost */
#define EVENTS_MAX 64

/* What an epoll event is about. */
#define EVENT_BELL UINT64_MAX
#define EVENT_PROCESS (UINT64_C(1) << 32) /* with the peer; without it: its connection */

struct mesh {
    int32_t rank, n;
    struct link **links; /* by peer; NULL for this rank */
    int epoll_fd, bell;
    bool has_processors; /* for each rank of this host */
    bool spins;
    bool asks_epoll; /* what a link has to read is known from epoll */
    struct mesh_opts opts;
    int64_t beaten_ns;    /* when this rank last showed life */
    int32_t lost;         /* peer, or -1 */
    bool *silent;         /* [n], when the mesh broke */
    struct as_err broken; /* why; code 0 while it works */
    _Atomic bool interrupted;
    struct workspace workspace;
};

const struct mesh_opts *mesh_opts_of(const struct mesh *m)
{
    return &m->opts;
}

int32_t mesh_rank(const struct mesh *m)
{
    return m->rank;
}

int32_t mesh_size(const struct mesh *m)
{
    return m->n;
}

void mesh_may_spin(struct mesh *m, bool may)
{
    m->spins = may;
}

int32_t mesh_lost(const struct mesh *m)
{
    return m->lost;
}

bool mesh_is_silent(const struct mesh *m, int32_t peer)
{
    return m->silent[peer];
}

uint64_t mesh_bytes_sent(const struct mesh *m)
{
    uint64_t sum = 0;
    for (int32_t r = 0; r < m->n; r++)
        sum += m->links[r] ? m->links[r]->bytes_sent : 0;
    return sum;
}

struct workspace *mesh_workspace(struct mesh *m)
{
    return &m->workspace;
}

static as_status watch(struct mesh *m, int fd, uint32_t events, uint64_t what, struct as_err *err)
{
    struct epoll_event e = {.events = events, .data.u64 = what};
    if (epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
        return as_fail(err, AS_E_IO, "epoll_ctl: %s", strerror(errno));
    return AS_OK;
}

static as_status watch_links(struct mesh *m, struct as_err *err)
{
    as_status st = watch(m, m->bell, EPOLLIN, EVENT_BELL, err);
    for (int32_t r = 0; st == AS_OK && r < m->n; r++) {
        struct link *l = m->links[r];
        if (!l)
            continue;
        st = watch(m, l->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, (uint64_t)r, err);
        if (st == AS_OK && l->process_fd >= 0)
            st = watch(m, l->process_fd, EPOLLIN | EPOLLET, EVENT_PROCESS | (uint64_t)r, err);
    }
    return st;
}

static bool has_processor_for_each(const struct mesh *m)
{
    cpu_set_t mine;
    int32_t here = 1;
    for (int32_t r = 0; r < m->n; r++)
        here += m->links[r] && m->links[r]->process_fd >= 0;
    return sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) >= here;
}

static bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

static void report_missing(const struct mesh *m, int32_t *ret_missing)
{
    int32_t first = -1;
    bool over = is_readable(m->opts.over_fd);
    for (int32_t r = m->n - 1; r >= 0 && !over; r--)
        if (r != m->rank && !m->links[r]) {
            first = r;
            if (m->opts.on_missing)
                m->opts.on_missing(m->opts.arg, r);
        }
    if (ret_missing)
        *ret_missing = first;
}

/* The first of them may have connected long before the last one: nothing was read of it
 * meanwhile. */
static void hear_all(struct mesh *m)
{
    int64_t now_ns = clock_mono_ns();
    for (int32_t r = 0; r < m->n; r++) {
        if (!m->links[r])
            continue;
        m->links[r]->heard_ns = now_ns;
        m->links[r]->stirred = true;
        m->asks_epoll = m->asks_epoll || m->links[r]->ops->asks_epoll;
    }
}

static as_status open_all(struct mesh *m, const struct listener *listener,
                          const struct world *world, int32_t *ret_missing, struct as_err *err)
{
    as_status st;
    struct connect_opts opts = {.tcp_only = m->opts.tcp_only,
                                .over_fd = m->opts.over_fd,
                                .prove_ns = m->opts.prove_ms * NS_PER_MS,
                                .until_ns = clock_mono_ns() + m->opts.join_ms * NS_PER_MS};
    m->links = as_calloc((size_t)world->n, sizeof *m->links);
    m->silent = as_calloc((size_t)world->n, sizeof *m->silent);
    if (!m->links || !m->silent)
        return as_fail_nomem(err);
    m->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    m->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (m->bell < 0 || m->epoll_fd < 0)
        return as_fail(err, AS_E_IO, "eventfd or epoll: %s", strerror(errno));
    opts.bell = m->bell;
    if (world->n > 1 && (st = connect_all(listener, world, &opts, m->links, err)) < 0) {
        if (st == AS_E_UNAVAILABLE)
            report_missing(m, ret_missing);
        return st;
    }
    hear_all(m);
    return watch_links(m, err);
}

as_status mesh_create(const struct listener *listener, const struct world *world,
                      const struct mesh_opts *opts, struct mesh **ret, int32_t *ret_missing,
                      struct as_err *err)
{
    as_status st = world_check(world, err);
    if (st < 0)
        return st;
    AS_AUTO(mesh_freep) struct mesh *m = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    m->rank = world->rank;
    m->n = world->n;
    m->lost = -1;
    m->epoll_fd = m->bell = -1;
    m->opts = opts ? *opts : (struct mesh_opts){0};
    m->opts.join_ms = m->opts.join_ms ? m->opts.join_ms : 30000;
    m->opts.silence_ms = m->opts.silence_ms ? m->opts.silence_ms : 5000;
    m->opts.prove_ms = m->opts.prove_ms ? m->opts.prove_ms : 5000;
    m->opts.stall_ms = m->opts.stall_ms ? m->opts.stall_ms : 5000;
    m->opts.over_fd = m->opts.over_fd ? m->opts.over_fd : -1;
    if ((st = open_all(m, listener, world, ret_missing, err)) < 0)
        return st;
    m->has_processors = has_processor_for_each(m);
    m->spins = true;
    *ret = as_steal(m);
    return AS_OK;
}

void mesh_free(struct mesh *m)
{
    if (!m)
        return;
    for (int32_t r = 0; m->links && r < m->n; r++) {
        if (!m->links[r])
            continue;
        m->links[r]->ops->goodbye(m->links[r]);
        m->links[r]->ops->free(m->links[r]);
    }
    free(m->links);
    workspace_done(&m->workspace);
    free(m->silent);
    if (m->bell >= 0)
        (void)close(m->bell);
    if (m->epoll_fd >= 0)
        (void)close(m->epoll_fd);
    free(m);
}

void mesh_post(struct mesh *m, struct transfer *t)
{
    link_post(m->links[t->peer], t);
}

static as_status fail_again(const struct mesh *m, struct as_err *err)
{
    return as_fail(err, m->broken.code, "%s", m->broken.msg);
}

/* Who waits for a transfer frees it when the wait has failed. */
static void forget_transfers(struct mesh *m)
{
    for (int32_t r = 0; r < m->n; r++)
        if (m->links[r])
            m->links[r]->sends = m->links[r]->receives = (struct transfer_queue){0};
}

static void note_silent_peers(struct mesh *m)
{
    int64_t now_ns = clock_mono_ns();
    for (int32_t r = 0; r < m->n; r++) {
        const struct link *l = m->links[r];
        m->silent[r] = l && !l->left && now_ns - l->heard_ns > m->opts.silence_ms * NS_PER_MS / 2;
    }
}

/* The mesh is broken, by the peer of `l` (NULL: by none), and no byte moves on it any more. The
 * first reason stays. A peer that has said goodbye is not lost: it lives, and left because it
 * misses another one, or knows that the epoch is over. A mesh that outlives its peers loses this
 * one only. */
static as_status break_by(struct mesh *m, struct link *l, const struct as_err *why,
                          struct as_err *err)
{
    if (m->opts.outlives_peers && l) {
        l->ended = l->lost = true;
        l->sends = l->receives = (struct transfer_queue){0};
        return AS_OK;
    }
    if (m->broken.code == 0) {
        m->broken = *why;
        if (l && why->code == AS_E_UNAVAILABLE && !l->left)
            m->lost = l->peer;
        forget_transfers(m);
        note_silent_peers(m);
        if (m->opts.on_break)
            m->opts.on_break(m->opts.arg, m);
    }
    return fail_again(m, err);
}

static as_status lose(struct mesh *m, struct link *l, const char *how, struct as_err *err)
{
    struct as_err why;
    if (l->left)
        (void)as_fail(&why, AS_E_UNAVAILABLE, "rank %d has left the epoch", (int)l->peer);
    else
        (void)as_fail(&why, AS_E_UNAVAILABLE, "rank %d is lost: %s", (int)l->peer, how);
    return break_by(m, l, &why, err);
}

static bool has_transfers(const struct link *l)
{
    return l->sends.head || l->receives.head;
}

/* The connection or the process has ended. That is a loss unless the peer has said goodbye and
 * nothing is expected of it. */
static as_status end_link(struct mesh *m, struct link *l, const char *how, struct as_err *err)
{
    l->ended = true;
    return l->left && !has_transfers(l) ? AS_OK : lose(m, l, how, err);
}

static as_status move_link(struct mesh *m, struct link *l, bool *moved, struct as_err *err)
{
    struct as_err why;
    as_status st = l->ops->progress(l, moved, &why);
    if (st == AS_OK)
        return AS_OK;
    if (st == AS_E_UNAVAILABLE)
        return end_link(m, l, "its connection has ended", err);
    if (st == AS_E_IO || st == AS_E_INVAL) /* damaged bytes: the ranks can meet again and repeat */
        return lose(m, l, why.msg, err);
    return break_by(m, l, &why, err);
}

as_status mesh_check(struct mesh *m, struct as_err *err)
{
    if (m->broken.code == 0 && atomic_load_explicit(&m->interrupted, memory_order_relaxed)) {
        struct as_err why;
        (void)as_fail(&why, AS_E_UNAVAILABLE, "the epoch is over");
        return break_by(m, NULL, &why, err);
    }
    return m->broken.code == 0 ? AS_OK : fail_again(m, err);
}

static as_status move_all(struct mesh *m, bool *moved, struct as_err *err)
{
    as_status whole = mesh_check(m, err);
    if (whole < 0)
        return whole;
    /* Ranks begin with different peers, so that not all send to the same one. */
    for (int32_t i = 1; i < m->n; i++) {
        struct link *l = m->links[(m->rank + i) % m->n];
        if (!l->stirred && !has_transfers(l))
            continue;
        bool now = false;
        l->stirred = false;
        if (l->lost)
            continue;
        as_status st = move_link(m, l, &now, err);
        /* What the peer sent before it left may still lie in the shared memory. */
        if (st == AS_OK && l->ended && (l->sends.head || (!now && l->receives.head)))
            st = lose(m, l, "its connection has ended", err);
        if (st < 0)
            return st;
        *moved = *moved || now;
    }
    return AS_OK;
}

/* --- signs of life --- */

static as_status show_life(struct mesh *m, int64_t now_ns, struct as_err *err)
{
    if (m->broken.code != 0)
        return fail_again(m, err);
    if (now_ns - m->beaten_ns < HEARTBEAT_EVERY_NS)
        return AS_OK;
    bool looked_late = m->beaten_ns && now_ns - m->beaten_ns > m->opts.silence_ms * NS_PER_MS / 2;
    m->beaten_ns = now_ns;
    for (int32_t r = 0; r < m->n; r++) {
        struct link *l = m->links[r];
        struct as_err why;
        if (!l || l->ended)
            continue;
        if (looked_late) /* it was this rank that slept: what came meanwhile is still unread */
            l->heard_ns = now_ns;
        l->stirred = l->readable = true;
        as_status st = AS_OK;
        if (l->ops->heartbeat(l, now_ns, &why) < 0)
            st = end_link(m, l, "its connection has ended", err);
        else if (!l->left && now_ns - l->heard_ns > m->opts.silence_ms * NS_PER_MS)
            st = lose(m, l, "it shows no life", err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

/* --- sleeping --- */

static void rest_all(struct mesh *m, bool on)
{
    for (int32_t r = 0; r < m->n; r++)
        if (m->links[r] && !m->links[r]->ended)
            on ? m->links[r]->ops->rest(m->links[r]) : m->links[r]->ops->wake(m->links[r]);
}

static as_status take_event(struct mesh *m, const struct epoll_event *e, struct as_err *err)
{
    uint64_t count;
    if (m->broken.code != 0)
        return fail_again(m, err);
    if (e->data.u64 == EVENT_BELL) {
        ssize_t n = read(m->bell, &count, sizeof count);
        (void)n;
        for (int32_t r = 0; r < m->n; r++)
            if (m->links[r])
                m->links[r]->stirred = true;
        return AS_OK;
    }
    struct link *l = m->links[(int32_t)(e->data.u64 & UINT32_MAX)];
    l->stirred = true;
    l->readable = true;
    bool over = e->data.u64 & EVENT_PROCESS || e->events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP);
    l->closing = l->closing || over;
    bool shared_memory = l->process_fd >= 0 || strcmp(l->ops->name, "shm") == 0;
    if (!over || !shared_memory || l->ended) /* TCP learns it when it has read what came before */
        return AS_OK;
    /* What the peer sent before lies in the shared memory, and is more than one turn takes. */
    as_status st = AS_OK;
    bool moved = true;
    for (int turn = 0; turn < DRAIN_TURNS && st == AS_OK && moved; turn++) {
        moved = false;
        st = move_link(m, l, &moved, err);
    }
    return st < 0 ? st : end_link(m, l, "its process has ended", err);
}

static as_status take_events(struct mesh *m, int timeout_ms, struct as_err *err)
{
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(m->epoll_fd, events, EVENTS_MAX, timeout_ms);
    for (int i = 0; i < n; i++) {
        as_status st = take_event(m, &events[i], err);
        if (st < 0)
            return st;
    }
    return AS_OK;
}

static as_status sleep_once(struct mesh *m, struct as_err *err)
{
    bool moved = false;
    rest_all(m, true);
    as_status st = move_all(m, &moved, err);
    if (st == AS_OK)
        st = take_events(m, moved ? 0 : (int)(HEARTBEAT_EVERY_NS / NS_PER_MS), err);
    rest_all(m, false);
    return st;
}

/* --- waiting --- */

struct patience {
    int64_t moved_ns; /* when anything last moved; 0: it has just moved, the clock was not asked */
    const struct transfer *open; /* the first that is not done, how far it is, and since when */
    size_t done;
    int64_t since_ns;
    bool reported;
};

static void report_stall(struct mesh *m, const struct transfer *t, size_t n, struct patience *p,
                         int64_t now_ns)
{
    if (p->open != t || p->done != t->done) {
        p->open = t;
        p->done = t->done;
        p->since_ns = now_ns;
    }
    int64_t waited_ms = (now_ns - p->since_ns) / NS_PER_MS;
    if (p->reported || !m->opts.on_stall || waited_ms < m->opts.stall_ms)
        return;
    /* What this rank waits for is a receive; a send waits if the peer does not receive. t[0] is not
     * done. */
    const struct transfer *open = t;
    for (size_t i = 0; i < n; i++)
        if (!t[i].sends && !transfer_is_done(&t[i])) {
            open = &t[i];
            break;
        }
    p->reported = true;
    m->opts.on_stall(m->opts.arg, open, waited_ms);
}

static as_status wait_longer(struct mesh *m, const struct transfer *t, size_t n, struct patience *p,
                             struct as_err *err)
{
    int64_t now_ns = clock_mono_ns();
    if (p->moved_ns == 0)
        p->moved_ns = now_ns;
    as_status st = show_life(m, now_ns, err);
    if (st < 0)
        return st;
    report_stall(m, t, n, p, now_ns);
    if (m->spins && now_ns - p->moved_ns < SPIN_NS) {
        if (m->has_processors && now_ns - p->moved_ns < PAUSE_NS)
            __builtin_ia32_pause();
        else
            (void)sched_yield();
        return AS_OK;
    }
    return sleep_once(m, err);
}

as_status mesh_wait(struct mesh *m, const struct transfer *t, size_t n, struct as_err *err)
{
    struct patience p = {0};
    unsigned rounds = 0;
    for (bool first = true;; first = false) {
        bool moved = false;
        while (n > 0 && transfer_is_done(t))
            t++, n--;
        if (n == 0)
            return AS_OK;
        as_status st = m->asks_epoll && !first ? take_events(m, 0, err) : AS_OK;
        if (st == AS_OK)
            st = move_all(m, &moved, err);
        if (st < 0)
            return st;
        if (!moved)
            st = wait_longer(m, t, n, &p, err);
        else if (p.moved_ns = 0, ++rounds % 1024 == 0)
            st = show_life(m, clock_mono_ns(), err);
        if (st < 0)
            return st;
    }
}

as_status mesh_idle(struct mesh *m, struct as_err *err)
{
    bool moved = false;
    as_status st = take_events(m, 0, err);
    if (st == AS_OK)
        st = move_all(m, &moved, err);
    return st < 0 ? st : show_life(m, clock_mono_ns(), err);
}

as_status mesh_poll(struct mesh *m, struct as_err *err)
{
    bool moved = false;
    as_status st = move_all(m, &moved, err);
    if (st == AS_OK)
        st = show_life(m, clock_mono_ns(), err);
    return st < 0 || moved ? st : sleep_once(m, err);
}

bool mesh_is_interrupted(const struct mesh *m)
{
    return atomic_load_explicit(&m->interrupted, memory_order_relaxed);
}

void mesh_wake(struct mesh *m)
{
    uint64_t one = 1;
    ssize_t n = write(m->bell, &one, sizeof one);
    (void)n;
}

bool mesh_has_lost(const struct mesh *m, int32_t peer)
{
    return m->links[peer] && m->links[peer]->lost;
}

void mesh_drop(struct mesh *m, int32_t peer)
{
    struct as_err why = {.code = AS_E_INVAL};
    as_status st = break_by(m, m->links[peer], &why, NULL);
    (void)st;
}

void mesh_interrupt(struct mesh *m)
{
    atomic_store(&m->interrupted, true);
    mesh_wake(m);
}
