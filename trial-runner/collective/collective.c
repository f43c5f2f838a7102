/* The lock and the thread around the algorithms.
 *
 * Whoever runs an operation holds the turn. A caller takes it itself if nothing waits, which saves
 * the two thread switches of handing the operation over; else the operation joins the queue. The
 * thread runs the queue, and every IDLE_MS without an operation it moves what peers sent meanwhile,
 * shows them that this rank lives (every 100 ms), and notices losses: the runner is to know of a
 * death within 50 ms, also while this rank computes. */
#include "trial-runner/collective/collective.h"

#include <math.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "trial-runner/collective/exchange.h"

#define IDLE_MS 25
#define SIZES 32      /* classes of sizes, by powers of two */
#define TUNE_ROUNDS 5 /* of each algorithm, the fastest counts */

struct coll_end {
    _Atomic int32_t owners;
    _Atomic bool set;
    _Atomic uint64_t bytes;
    int fd; /* an eventfd: readable once it is set */
};

struct coll {
    struct mesh *mesh;
    struct world world; /* without its peers */
    char address[ENDPOINT_ADDRESS_MAX];
    struct coll_end *end;
    pthread_t thread;
    bool has_thread, has_lock;
    coll_algorithm chosen[SIZES]; /* COLL_AUTO: not measured yet; guarded by the turn */

    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* the turn was given back, a job has ended; `waiting` callers wait */
    pthread_cond_t work;    /* there is something for the thread to do */
    int waiting;
    bool turn_taken, stopping;
    struct coll_job *first, *last;
};

static void unlock(struct coll *c)
{
    (void)pthread_mutex_unlock(&c->lock);
}

static void lock(struct coll *c)
{
    (void)pthread_mutex_lock(&c->lock);
}

static void wait_locked(struct coll *c)
{
    c->waiting++;
    (void)pthread_cond_wait(&c->changed, &c->lock);
    c->waiting--;
}

static void take_turn_locked(struct coll *c)
{
    while (c->turn_taken)
        wait_locked(c);
    c->turn_taken = true;
}

/* It wakes only who can go on: a thread that is woken in vain after each operation takes its time
 * from the next one. */
static void give_turn_locked(struct coll *c)
{
    c->turn_taken = false;
    if (c->waiting > 0)
        (void)pthread_cond_broadcast(&c->changed);
    if (c->first)
        (void)pthread_cond_signal(&c->work);
}

/* --- the thread --- */

static void run_job(struct coll *c, struct coll_job *job)
{
    mesh_may_spin(c->mesh, false);
    as_status st = job->run(c, job, &job->err);
    mesh_may_spin(c->mesh, true);
    lock(c);
    job->status = st;
    job->done = true;
    give_turn_locked(c);
    unlock(c);
}

static struct coll_job *next_job_locked(struct coll *c)
{
    struct coll_job *job = c->first;
    if (!job)
        return NULL;
    c->first = job->next;
    if (!c->first)
        c->last = NULL;
    return job;
}

static void *thread_main(void *arg)
{
    struct coll *c = arg;
    lock(c);
    while (!c->stopping) {
        if (!c->first || c->turn_taken)
            (void)clock_cond_wait(&c->work, &c->lock, clock_mono_ns() + IDLE_MS * NS_PER_MS);
        if (c->turn_taken || c->stopping)
            continue;
        c->turn_taken = true;
        struct coll_job *job = next_job_locked(c);
        unlock(c);
        if (job) {
            run_job(c, job);
            lock(c);
        } else {
            as_status st = mesh_idle(c->mesh, NULL); /* the next operation reports it */
            (void)st;
            lock(c);
            give_turn_locked(c);
        }
    }
    unlock(c);
    return NULL;
}

static as_status create_end(struct coll_end **ret, struct as_err *err)
{
    AS_AUTO(as_freep) struct coll_end *e = as_calloc(1, sizeof *e);
    if (!e)
        return as_fail_nomem(err);
    e->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (e->fd < 0)
        return as_fail(err, AS_E_IO, "eventfd: %s", strerror(errno));
    atomic_store(&e->owners, 1);
    *ret = as_steal(e);
    return AS_OK;
}

static void set_end(struct coll_end *e)
{
    uint64_t one = 1;
    atomic_store(&e->set, true);
    ssize_t n = write(e->fd, &one, sizeof one);
    (void)n;
}

as_status coll_create(const struct listener *listener, const struct world *world,
                      const struct mesh_opts *opts, struct coll **ret, int32_t *ret_missing,
                      struct as_err *err)
{
    AS_AUTO(coll_freep) struct coll *c = as_calloc(1, sizeof *c);
    as_status st;
    if (!c)
        return as_fail_nomem(err);
    if ((st = create_end(&c->end, err)) < 0)
        return st;
    c->world = *world;
    c->world.peers = NULL;
    (void)snprintf(c->address, sizeof c->address, "%s", listener->endpoint.address);
    if ((st = mesh_create(listener, world, opts, &c->mesh, ret_missing, err)) < 0)
        return st;
    (void)pthread_cond_init(&c->changed, NULL);
    clock_cond_init(&c->work);
    (void)pthread_mutex_init(&c->lock, NULL);
    c->has_lock = true;
    if (pthread_create(&c->thread, NULL, thread_main, c) != 0)
        return as_fail(err, AS_E_NOMEM, "no thread for the collective operations");
    c->has_thread = true;
    *ret = as_steal(c);
    return AS_OK;
}

void coll_free(struct coll *c)
{
    if (!c)
        return;
    if (c->has_thread) {
        lock(c);
        c->stopping = true;
        (void)pthread_cond_signal(&c->work);
        unlock(c);
        (void)pthread_join(c->thread, NULL);
    }
    if (c->has_lock) {
        (void)pthread_cond_destroy(&c->changed);
        (void)pthread_cond_destroy(&c->work);
        (void)pthread_mutex_destroy(&c->lock);
    }
    mesh_free(c->mesh);
    if (c->end)
        set_end(c->end);
    coll_end_free(c->end);
    free(c);
}

void coll_begin(struct coll *c, struct coll_job *job)
{
    job->done = false;
    job->next = NULL;
    lock(c);
    if (c->last)
        c->last->next = job;
    else
        c->first = job;
    c->last = job;
    (void)pthread_cond_signal(&c->work);
    unlock(c);
}

bool coll_is_done(struct coll *c, const struct coll_job *job)
{
    lock(c);
    bool done = job->done;
    unlock(c);
    return done;
}

as_status coll_finish(struct coll *c, struct coll_job *job, struct as_err *err)
{
    lock(c);
    while (!job->done)
        wait_locked(c);
    unlock(c);
    if (job->status < 0 && err)
        *err = job->err;
    return job->status;
}

/* An operation that the caller waits for runs in the caller's thread, after those in the queue. A
 * job's operations run in the collective's thread, which has the turn. */
static bool has_turn(const struct coll *c)
{
    return pthread_equal(pthread_self(), c->thread);
}

static as_status begin_here(struct coll *c, struct as_err *err)
{
    if (!has_turn(c)) {
        lock(c);
        while (c->first)
            wait_locked(c);
        take_turn_locked(c);
        unlock(c);
    }
    return mesh_check(c->mesh, err);
}

static as_status end_here(struct coll *c, as_status st)
{
    if (has_turn(c))
        return st;
    lock(c);
    give_turn_locked(c);
    unlock(c);
    return st;
}

/* --- what ranks are --- */

int32_t coll_rank(const struct coll *c)
{
    return mesh_rank(c->mesh);
}

int32_t coll_size(const struct coll *c)
{
    return mesh_size(c->mesh);
}

uint64_t coll_bytes_sent(const struct coll *c)
{
    return mesh_bytes_sent(c->mesh) + atomic_load(&c->end->bytes);
}

int32_t coll_lost(const struct coll *c)
{
    return mesh_lost(c->mesh);
}

void coll_interrupt(struct coll *c)
{
    set_end(c->end);
    mesh_interrupt(c->mesh);
}

const struct world *coll_world(const struct coll *c)
{
    return &c->world;
}

const struct mesh_opts *coll_mesh_opts(const struct coll *c)
{
    return mesh_opts_of(c->mesh);
}

const char *coll_address(const struct coll *c)
{
    return c->address;
}

struct coll_end *coll_end_get(struct coll *c)
{
    (void)atomic_fetch_add(&c->end->owners, 1);
    return c->end;
}

bool coll_end_is_set(const struct coll_end *e)
{
    return atomic_load(&e->set);
}

int coll_end_fd(const struct coll_end *e)
{
    return e->fd;
}

void coll_end_count(struct coll_end *e, uint64_t bytes)
{
    (void)atomic_fetch_add(&e->bytes, bytes);
}

void coll_end_free(struct coll_end *e)
{
    if (!e || atomic_fetch_sub(&e->owners, 1) != 1)
        return;
    (void)close(e->fd);
    free(e);
}

bool coll_is_over(const struct coll *c)
{
    return mesh_is_interrupted(c->mesh);
}

/* --- which all-reduce --- */

static as_status reduce_by(struct coll *c, struct coll_id id, coll_algorithm algorithm,
                           const struct reduction *reduce, const void *in, void *out, size_t n,
                           struct as_err *err)
{
    return algorithm == COLL_HALVING ? halving_allreduce(c->mesh, id, reduce, in, out, n, err)
                                     : ring_allreduce(c->mesh, id, reduce, in, out, n, err);
}

static as_status time_one(struct coll *c, struct coll_id id, coll_algorithm algorithm,
                          const struct reduction *reduce, const void *in, void *out, size_t n,
                          double *ret_seconds, struct as_err *err)
{
    *ret_seconds = INFINITY;
    for (int round = 0; round < TUNE_ROUNDS; round++) {
        int64_t start_ns = clock_mono_ns();
        as_status st = reduce_by(c, id, algorithm, reduce, in, out, n, err);
        if (st < 0)
            return st;
        double seconds = (double)(clock_mono_ns() - start_ns) / (double)NS_PER_S;
        if (seconds < *ret_seconds)
            *ret_seconds = seconds;
    }
    return AS_OK;
}

static size_t class_of(size_t bytes)
{
    size_t k = 0;
    while (bytes >>= 1)
        k++;
    return k < SIZES ? k : SIZES - 1;
}

/* Measures both on the caller's own data; the slowest rank's time counts, so that all ranks choose
 * the same. The last run leaves the result in `out`. */
static as_status choose(struct coll *c, struct coll_id id, const struct reduction *reduce,
                        const void *in, void *out, size_t n, struct as_err *err)
{
    double own[2], all[2];
    as_status st;
    if ((st = time_one(c, id, COLL_RING, reduce, in, out, n, &own[0], err)) < 0 ||
        (st = time_one(c, id, COLL_HALVING, reduce, in, out, n, &own[1], err)) < 0 ||
        (st = ring_allreduce(c->mesh, id, &reduce_f64_max, own, all, 2, err)) < 0)
        return st;
    c->chosen[class_of(n * reduce->item_bytes)] = all[0] <= all[1] ? COLL_RING : COLL_HALVING;
    return AS_OK;
}

static as_status allreduce(struct coll *c, struct coll_id id, coll_algorithm algorithm,
                           const struct reduction *reduce, const void *in, void *out, size_t n,
                           struct as_err *err)
{
    if (mesh_size(c->mesh) == 1) {
        memmove(out, in, n * reduce->item_bytes);
        return AS_OK;
    }
    coll_algorithm *chosen = &c->chosen[class_of(n * reduce->item_bytes)];
    /* In place, a measurement would reduce the same values many times. */
    if (algorithm == COLL_AUTO && *chosen == COLL_AUTO && in != out) {
        as_status st = choose(c, id, reduce, in, out, n, err);
        if (st < 0)
            return st;
    }
    if (algorithm == COLL_AUTO)
        algorithm = *chosen ? *chosen : COLL_RING;
    return reduce_by(c, id, algorithm, reduce, in, out, n, err);
}

as_status coll_allreduce(struct coll *c, struct coll_id id, coll_algorithm algorithm,
                         const struct reduction *reduce, const void *in, void *out, size_t n,
                         struct as_err *err)
{
    as_status st = begin_here(c, err);
    return end_here(c, st < 0 ? st : allreduce(c, id, algorithm, reduce, in, out, n, err));
}

as_status coll_allgather(struct coll *c, struct coll_id id, void *out, size_t n, size_t item_bytes,
                         struct as_err *err)
{
    as_status st = begin_here(c, err);
    return end_here(c, st < 0 ? st : ring_allgather(c->mesh, id, out, n, item_bytes, err));
}

as_status coll_broadcast(struct coll *c, struct coll_id id, int32_t root, void *data, size_t bytes,
                         struct as_err *err)
{
    as_status st = begin_here(c, err);
    return end_here(c, st < 0 ? st : binomial_broadcast(c->mesh, id, root, data, bytes, err));
}

as_status coll_barrier(struct coll *c, struct coll_id id, struct as_err *err)
{
    as_status st = begin_here(c, err);
    return end_here(c, st < 0 ? st : dissemination_barrier(c->mesh, id, err));
}

as_status coll_tree_sum(struct coll *c, struct coll_id id, const struct reduction *reduce,
                        const struct shard_run *runs, uint32_t total, const void *const *partials,
                        void *out, size_t n, struct as_err *err)
{
    const struct tree_terms t = {.runs = runs, .total = total, .values = partials};
    as_status st = begin_here(c, err);
    return end_here(c, st < 0 ? st : tree_sum(c->mesh, id, reduce, &t, out, n, err));
}

as_status coll_tree_sum_merged(struct coll *c, struct coll_id id, const struct reduction *reduce,
                               const struct shard_run *runs, uint32_t total,
                               const void *const *merged, void *out, size_t n, struct as_err *err)
{
    const struct tree_terms t = {.runs = runs, .total = total, .values = merged, .merged = true};
    as_status st = begin_here(c, err);
    return end_here(c, st < 0 ? st : tree_sum(c->mesh, id, reduce, &t, out, n, err));
}

as_status coll_exchange(struct coll *c, struct coll_id id, const struct coll_message *sent,
                        size_t n_sent, const struct coll_message *received, size_t n_received,
                        struct as_err *err)
{
    struct exchange x;
    as_status st = begin_here(c, err);
    if (st < 0)
        return end_here(c, st);
    struct transfer *t =
        workspace_get(mesh_workspace(c->mesh), WORKSPACE_TRANSFERS, n_sent + n_received, sizeof *t);
    if (!t)
        return end_here(c, as_fail_nomem(err));
    exchange_init(&x, c->mesh, id, t, n_sent + n_received);
    for (size_t i = 0; i < n_received; i++)
        exchange_receive(&x, received[i].peer, received[i].to, received[i].bytes, NULL, NULL);
    for (size_t i = 0; i < n_sent; i++)
        exchange_send(&x, sent[i].peer, sent[i].from, sent[i].bytes, NULL);
    return end_here(c, exchange_wait(&x, err));
}

as_status coll_send(struct coll *c, struct coll_id id, int32_t to, const void *data, size_t bytes,
                    struct as_err *err)
{
    const struct coll_message message = {.peer = to, .from = data, .bytes = bytes};
    return coll_exchange(c, id, &message, 1, NULL, 0, err);
}

as_status coll_receive(struct coll *c, struct coll_id id, int32_t from, void *data, size_t bytes,
                       struct as_err *err)
{
    const struct coll_message message = {.peer = from, .to = data, .bytes = bytes};
    return coll_exchange(c, id, NULL, 0, &message, 1, err);
}
