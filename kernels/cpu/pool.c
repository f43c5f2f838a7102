/* The state of a job is one word: (number of the job, pieces not yet taken). A thread takes a piece
 * with one compare and swap. It fails if another job has begun, so a late thread does no harm and
 * no thread waits for it. A thread reads the job (piece, arg, n) only after it took a piece. The
 * job cannot change until that piece is counted as done. */
#include "kernels/cpu/pool.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* Longer than the pause between two operations of a step; short enough that a thread which waits
 * for slow work (validation, a checkpoint) leaves the core to others. */
#define POOL_SPIN_NS (50 * NS_PER_MS / 1000)
#define PAUSES_PER_LOOK 32

#define LEFT(word) ((uint32_t)(word))
#define NEXT_JOB (UINT64_C(1) << 32)
#define CACHE_LINE 64

struct worker {
    struct pool *pool;
    pthread_t thread;
    size_t who;
};

struct pool {
    _Alignas(CACHE_LINE) atomic_uint_least64_t word;
    _Alignas(CACHE_LINE) atomic_size_t done;
    _Alignas(CACHE_LINE) pool_piece *piece; /* these three: see the head of the file */
    void *arg;
    size_t n;

    atomic_bool stop;
    atomic_size_t sleepers;    /* workers that sleep on `work`; changed under the mutex */
    atomic_bool caller_sleeps; /* on `finished`; changed under the mutex */
    pthread_mutex_t mutex;     /* guards sleeping and waking, and `started` */
    pthread_cond_t work;       /* pieces to take, or stop */
    pthread_cond_t finished;   /* done == n; also: a worker has started */
    size_t started;
    void (*begin)(void);
    size_t n_workers;
    struct worker workers[];
};

static void pause_briefly(void)
{
    for (int i = 0; i < PAUSES_PER_LOOK; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
    }
}

/* Take and do pieces until none is left, then count them as done. */
static void take_pieces(struct pool *p, size_t who)
{
    size_t taken = 0;
    uint64_t word = atomic_load(&p->word);
    while (LEFT(word) > 0) {
        if (!atomic_compare_exchange_weak(&p->word, &word, word - 1))
            continue;
        p->piece(p->arg, p->n - LEFT(word), who);
        taken++;
        word = atomic_load(&p->word);
    }
    if (taken == 0)
        return;
    size_t n = p->n; /* read now: once all are counted, the caller may begin another job */
    if (atomic_fetch_add(&p->done, taken) + taken == n && atomic_load(&p->caller_sleeps)) {
        (void)pthread_mutex_lock(&p->mutex);
        (void)pthread_cond_signal(&p->finished);
        (void)pthread_mutex_unlock(&p->mutex);
    }
}

static bool has_work(struct pool *p)
{
    return LEFT(atomic_load(&p->word)) > 0 || atomic_load(&p->stop);
}

static bool all_done(struct pool *p)
{
    return atomic_load(&p->done) == p->n;
}

/* Returns false if `what` did not become true within POOL_SPIN_NS. */
static bool spin_until(bool (*what)(struct pool *p), struct pool *p)
{
    int64_t until = clock_mono_ns() + POOL_SPIN_NS;
    do {
        if (what(p))
            return true;
        pause_briefly();
    } while (clock_mono_ns() < until);
    return what(p);
}

static void wait_for_work(struct pool *p)
{
    if (spin_until(has_work, p))
        return;
    (void)pthread_mutex_lock(&p->mutex);
    atomic_fetch_add(&p->sleepers, 1);
    while (!has_work(p))
        (void)pthread_cond_wait(&p->work, &p->mutex);
    atomic_fetch_sub(&p->sleepers, 1);
    (void)pthread_mutex_unlock(&p->mutex);
}

static void wait_until_done(struct pool *p)
{
    if (spin_until(all_done, p))
        return;
    (void)pthread_mutex_lock(&p->mutex);
    atomic_store(&p->caller_sleeps, true);
    while (!all_done(p))
        (void)pthread_cond_wait(&p->finished, &p->mutex);
    atomic_store(&p->caller_sleeps, false);
    (void)pthread_mutex_unlock(&p->mutex);
}

static void *worker_main(void *arg)
{
    const struct worker *w = arg;
    struct pool *p = w->pool;
    if (p->begin != NULL)
        p->begin();
    (void)pthread_mutex_lock(&p->mutex);
    p->started++;
    (void)pthread_cond_signal(&p->finished);
    (void)pthread_mutex_unlock(&p->mutex);
    while (!atomic_load(&p->stop)) {
        take_pieces(p, w->who);
        wait_for_work(p);
    }
    return NULL;
}

void pool_run(struct pool *p, size_t n, pool_piece *piece, void *arg)
{
    assert(n <= UINT32_MAX);
    if (n == 0)
        return;
    assert(LEFT(atomic_load(&p->word)) == 0);
    p->piece = piece;
    p->arg = arg;
    p->n = n;
    atomic_store(&p->done, 0);
    uint64_t job = atomic_load(&p->word) + NEXT_JOB;
    atomic_store(&p->word, (job & ~(uint64_t)UINT32_MAX) | n);
    /* A worker that goes to sleep sees the new word, or this sees the worker in `sleepers`. */
    size_t asleep = n > 1 ? atomic_load(&p->sleepers) : 0;
    if (asleep > 0) {
        size_t wanted = asleep < n - 1 ? asleep : n - 1;
        (void)pthread_mutex_lock(&p->mutex);
        for (size_t i = 0; i < wanted; i++)
            (void)pthread_cond_signal(&p->work);
        (void)pthread_mutex_unlock(&p->mutex);
    }
    take_pieces(p, 0);
    wait_until_done(p);
}

/* Workers block all signals: the program's own threads handle them. */
static int start_thread(struct worker *w)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&w->thread, NULL, worker_main, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static as_status start_worker(struct pool *p, struct as_err *err)
{
    struct worker *w = &p->workers[p->n_workers];
    *w = (struct worker){.pool = p, .who = p->n_workers + 1};
    int rc = start_thread(w);
    if (rc != 0)
        return as_fail(err, AS_E_UNAVAILABLE, "thread %zu of the pool does not start: %s", w->who,
                       strerror(rc));
    p->n_workers++;
    (void)pthread_mutex_lock(&p->mutex);
    while (p->started < p->n_workers)
        (void)pthread_cond_wait(&p->finished, &p->mutex);
    (void)pthread_mutex_unlock(&p->mutex);
    return AS_OK;
}

as_status pool_create(size_t threads, void (*begin)(void), struct pool **ret, struct as_err *err)
{
    if (threads == 0)
        return as_fail(err, AS_E_INVAL, "a pool has 0 threads, expected 1 or more");
    size_t bytes = sizeof(struct pool) + (threads - 1) * sizeof(struct worker);
    bytes = (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct pool *p = aligned_alloc(CACHE_LINE, bytes);
    if (p == NULL)
        return as_fail(err, AS_E_NOMEM, "a pool of %zu threads: out of memory", threads);
    memset(p, 0, bytes);
    p->begin = begin;
    (void)pthread_mutex_init(&p->mutex, NULL);
    (void)pthread_cond_init(&p->work, NULL);
    (void)pthread_cond_init(&p->finished, NULL);
    while (p->n_workers + 1 < threads) {
        as_status st = start_worker(p, err);
        if (st < 0) {
            pool_free(p);
            return st;
        }
    }
    *ret = p;
    return AS_OK;
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    (void)pthread_mutex_lock(&p->mutex);
    atomic_store(&p->stop, true);
    (void)pthread_cond_broadcast(&p->work);
    (void)pthread_mutex_unlock(&p->mutex);
    for (size_t i = 0; i < p->n_workers; i++)
        (void)pthread_join(p->workers[i].thread, NULL);
    (void)pthread_cond_destroy(&p->finished);
    (void)pthread_cond_destroy(&p->work);
    (void)pthread_mutex_destroy(&p->mutex);
    free(p);
}

size_t pool_threads(const struct pool *p)
{
    return p->n_workers + 1;
}
