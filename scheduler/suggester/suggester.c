/* The suggester: one job for each sweep, a queue of jobs, and search threads.
 *
 * A job is created when a claim or an ask first requests suggestions of its sweep. A requested job
 * is in one queue. A search thread takes the first job, loads its history, computes, and publishes
 * each suggestion when it is ready. A job that is not complete after its time slice goes back to
 * the end of the queue, so that sweeps share the threads. The prepared suggestions of a job are its
 * chain (suggestion_chain_priv.h).
 *
 * A request leaves a ticket with its job. A ticket that was there when a run began is served by
 * this run, or gets its failure; so a request never waits for a run that will not come.
 *
 * Lock: sg->mu guards everything except the history and the cache of a job that runs. These
 * belong to the thread that runs it. The lock is never held over a round trip, a computation or
 * on_ready. */
#include "scheduler/suggester/suggester.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/suggester/sweep_history.h"
#include "scheduler/store/tx.h"
#include "scheduler/suggester/prepared.h"
#include "scheduler/suggester/suggestion_chain_priv.h"
#include "search/suggest.h"

#define THREADS_MAX 8
#define JOBS_MAX 256
#define TICKETS_MAX 64
/* Most fits are shorter than one tick of the waiting list (150 ms): a short wait on the request's
 * thread saves that tick (decision 5003). */
#define PATIENT_MAX 2 /* request threads that wait at the same time */
#define PATIENCE_MS 20
#define BYTES_MAX ((size_t)512 << 20)
#define SLICE_NS (100 * NS_PER_MS)     /* time slice of a sweep while others wait */
#define AHEAD_MS 1                     /* a cheaper suggestion is computed on request only */
#define AHEAD_ASKED_NS (60 * NS_PER_S) /* after a request, more requests are likely for this long */

/* A request that waits. Its time of arrival identifies it when it asks again. */
struct ticket {
    int64_t arrived_ns;
    size_t count;
};

struct job {
    int64_t key;
    struct job *next;       /* in the list of all jobs */
    struct job *next_queue; /* in the queue */
    bool is_queued, is_running;
    bool is_ahead; /* prepare one suggestion though no request waits */
    struct ticket tickets[TICKETS_MAX];
    size_t n_tickets;
    struct chain chain;
    struct sweep_history *history; /* owned; NULL: none cached */
    struct search_cache *cache;    /* owned */
    size_t bytes;
    int64_t used_ns, asked_ns, cost_ns; /* the last use, the last request, the time that the last
                                           suggestion took */
};

struct suggester {
    struct store *db;
    struct suggester_opts opts;
    pthread_mutex_t mu;
    pthread_cond_t work;    /* the queue has a job, or the suggester stops */
    pthread_cond_t changed; /* a job published a suggestion, or its run ended */
    struct job *jobs, *queue;
    size_t n_jobs, n_patient;
    struct suggester_figures figures;
    bool is_stopping;
    pthread_t threads[THREADS_MAX];
    size_t n_threads;
};

/* Jobs. */

static void job_forget(struct job *job)
{
    sweep_history_free(as_steal(job->history));
    search_cache_free(as_steal(job->cache));
    job->bytes = 0;
}

static void job_free(struct job *job)
{
    chain_cut(&job->chain, 0);
    job_forget(job);
    free(job);
}

static struct job *job_find_locked(const struct suggester *sg, int64_t key)
{
    struct job *job = sg->jobs;
    while (job && job->key != key)
        job = job->next;
    return job;
}

static void job_remove_locked(struct suggester *sg, struct job *job)
{
    struct job **at = &sg->jobs;
    for (; *at != job; at = &(*at)->next)
        assert(*at); /* `job` is in the list */
    *at = job->next;
    sg->n_jobs--;
    job_free(job);
}

/* The least recently used idle job; with_bytes: only jobs that hold memory. */
static struct job *job_oldest_idle_locked(const struct suggester *sg, bool with_bytes)
{
    struct job *oldest = NULL;
    for (struct job *job = sg->jobs; job; job = job->next) {
        if (job->is_running || job->is_queued || (with_bytes && job->bytes == 0))
            continue;
        if (!oldest || job->used_ns < oldest->used_ns)
            oldest = job;
    }
    return oldest;
}

static size_t cached_bytes_locked(const struct suggester *sg)
{
    size_t sum = 0;
    for (const struct job *job = sg->jobs; job; job = job->next)
        sum += job->bytes;
    return sum;
}

/* Drop the least recently used jobs until the limits hold. */
static void evict_jobs_locked(struct suggester *sg)
{
    struct job *job = NULL;
    while (cached_bytes_locked(sg) > sg->opts.max_bytes && (job = job_oldest_idle_locked(sg, true)))
        job_forget(job);
    while (sg->n_jobs >= JOBS_MAX && (job = job_oldest_idle_locked(sg, false)))
        job_remove_locked(sg, job);
}

/* Find or create the job of a sweep. NULL when memory is out. */
static struct job *job_get_locked(struct suggester *sg, int64_t key)
{
    struct job *job = job_find_locked(sg, key);
    if (job)
        return job;
    evict_jobs_locked(sg); /* before the new job is in the list: if all others are busy, it would be
                         the victim */
    job = as_calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->key = key;
    job->used_ns = clock_mono_ns();
    job->next = sg->jobs;
    sg->jobs = job;
    sg->n_jobs++;
    return job;
}

static void job_enqueue_locked(struct suggester *sg, struct job *job)
{
    struct job **end = &sg->queue;
    if (job->is_queued || job->is_running)
        return;
    while (*end)
        end = &(*end)->next_queue;
    job->next_queue = NULL;
    job->is_queued = true;
    *end = job;
    pthread_cond_signal(&sg->work);
}

static bool is_busy(const struct job *job)
{
    return job->is_queued || job->is_running;
}

/* Prepared suggestions. */

static const struct chain *chain_of(const struct job *job)
{
    return job ? &job->chain : NULL;
}

size_t suggester_ready(struct suggester *sg, const struct search_place *place, size_t max)
{
    pthread_mutex_lock(&sg->mu);
    size_t n = chain_ready(chain_of(job_find_locked(sg, place->key)), place, max);
    pthread_mutex_unlock(&sg->mu);
    return n;
}

int64_t suggester_since(struct suggester *sg, const struct search_place *place)
{
    pthread_mutex_lock(&sg->mu);
    int64_t since = chain_since(chain_of(job_find_locked(sg, place->key)), place);
    pthread_mutex_unlock(&sg->mu);
    return since ? since : clock_mono_ns();
}

as_status suggester_peek(struct suggester *sg, struct arena *a, const struct search_place *place,
                         bool *ret_ready, struct prepared *ret, struct as_err *err)
{
    pthread_mutex_lock(&sg->mu);
    const struct chain *c = chain_of(job_find_locked(sg, place->key));
    as_status st = chain_peek(c, a, place, ret_ready, ret, err);
    pthread_mutex_unlock(&sg->mu);
    return st;
}

int64_t suggester_capacity(struct suggester *sg, int64_t key, int64_t queued, int64_t room)
{
    pthread_mutex_lock(&sg->mu);
    const struct job *job = job_find_locked(sg, key);
    int64_t now = job && is_busy(job) ? queued + (int64_t)job->chain.n : room;
    pthread_mutex_unlock(&sg->mu);
    return now < room ? now : room;
}

/* Computing. */

static void call_on_ready(struct suggester *sg)
{
    if (sg->opts.on_ready)
        sg->opts.on_ready(sg->opts.ctx);
}

static void record_failure_locked(struct suggester *sg, struct job *job,
                                  const struct chain_failure *f)
{
    job->chain.failure = *f;
    sg->figures.failed += f->st != AS_E_EXHAUSTED;
}

/* Compute the next link. The lock is released meanwhile. Only the thread that runs a job changes
 * its chain, so views of the chain stay valid. */
static as_status add_link_locked(struct suggester *sg, struct job *job, int64_t loaded_ns)
{
    struct chain_failure f = {.loaded_ns = loaded_ns};
    struct chain_link l = {0};
    struct chain_step x = chain_next(&job->chain, job->history, job->cache, loaded_ns);
    pthread_mutex_unlock(&sg->mu);
    int64_t begun = clock_mono_ns();
    f.st = chain_compute(&x, &l, &f.why);
    int64_t took = clock_mono_ns() - begun;
    pthread_mutex_lock(&sg->mu);
    job->cost_ns = took;
    sg->figures.seconds += (double)took / NS_PER_S;
    if (f.st != AS_OK) {
        f.number = x.number;
        f.before = x.before;
        f.seen = sweep_history_place(job->history)->finish_seq;
        record_failure_locked(sg, job, &f);
        return f.st;
    }
    job->chain.links[job->chain.n++] = l;
    sg->figures.computed++;
    pthread_cond_broadcast(&sg->changed);
    pthread_mutex_unlock(&sg->mu);
    call_on_ready(sg);
    pthread_mutex_lock(&sg->mu);
    return AS_OK;
}

static size_t goal_locked(const struct job *job)
{
    size_t goal = 0;
    for (size_t i = 0; i < job->n_tickets; i++)
        goal += job->tickets[i].count;
    goal = goal == 0 && job->is_ahead ? 1 : goal;
    return goal < SUGGESTER_AHEAD_MAX ? goal : SUGGESTER_AHEAD_MAX;
}

/* Extend the chain to the goal, for at most one time slice. True: there is more to do. */
static bool extend_chain_locked(struct suggester *sg, struct job *job, int64_t loaded_ns,
                                size_t goal)
{
    const struct history_place *place = sweep_history_place(job->history);
    int64_t room = place->state == SWEEP_RUNNING ? place->planned - place->total : 0;
    goal = (int64_t)goal < room ? goal : (size_t)room;
    while (job->chain.n < goal) {
        if (add_link_locked(sg, job, loaded_ns) != AS_OK)
            return false;
        if (job->chain.n < goal && sg->queue && sg->n_threads > 0 &&
            clock_mono_ns() - loaded_ns > SLICE_NS)
            return true;
    }
    return false;
}

static as_status load_history(struct suggester *sg, struct job *job, struct as_err *err)
{
    if (!job->history)
        job->history = sweep_history_create(job->key);
    if (!job->cache)
        job->cache = search_cache_create();
    if (!job->history || !job->cache)
        return as_fail(err, AS_E_NOMEM, "out of memory for the history of a sweep");
    return sweep_history_load(sg->db, job->history, err);
}

/* Drop the tickets that arrived before the history was read: they have been served. */
static void drop_tickets_locked(struct job *job, int64_t loaded_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < job->n_tickets; i++)
        if (job->tickets[i].arrived_ns > loaded_ns)
            job->tickets[n++] = job->tickets[i];
    job->n_tickets = n;
}

/* A paused sweep may be resumed. It stays cached, because it is loaded again for each trial that
 * still runs. */
static bool has_ended(sweep_state state)
{
    return state != SWEEP_RUNNING && state != SWEEP_PAUSED;
}

static void end_run_locked(struct suggester *sg, struct job *job, int64_t loaded_ns, bool has_more)
{
    if (!has_more)
        drop_tickets_locked(job, loaded_ns);
    job->is_running = false;
    job->used_ns = clock_mono_ns();
    job->bytes = (job->history ? sweep_history_bytes(job->history) : 0) +
                 (job->cache ? search_cache_bytes(job->cache) : 0);
    if (job->n_tickets > 0 || job->is_ahead)
        job_enqueue_locked(sg, job);
    else if (job->history && has_ended(sweep_history_place(job->history)->state))
        job_forget(job);
    evict_jobs_locked(sg);
    pthread_cond_broadcast(&sg->changed);
}

/* Run a job once. The end of a run wakes all waiting requests, also when it produced nothing. */
static void run_job_locked(struct suggester *sg, struct job *job)
{
    struct chain_failure f = {.loaded_ns = clock_mono_ns(), .number = -1};
    int64_t loaded_ns = f.loaded_ns;
    size_t goal = goal_locked(job);
    bool has_more = false;
    job->is_running = true;
    job->is_ahead = false;
    pthread_mutex_unlock(&sg->mu);
    f.st = load_history(sg, job, &f.why);
    pthread_mutex_lock(&sg->mu);
    job->chain.failure = (struct chain_failure){0};
    if (f.st != AS_OK) {
        chain_cut(&job->chain, 0);
        record_failure_locked(sg, job, &f);
    } else {
        chain_trim(&job->chain, job->history, loaded_ns);
        has_more = extend_chain_locked(sg, job, loaded_ns, goal);
    }
    if (job->chain.failure.st < 0 && job->chain.failure.st != AS_E_EXHAUSTED &&
        job->chain.failure.st != AS_E_NOT_FOUND)
        log_write(LOG_WARN, "no suggestion", "sweep_key=%lld status=%s detail=\"%s\"",
                  (long long)job->key, as_status_name(job->chain.failure.st),
                  job->chain.failure.why.msg);
    end_run_locked(sg, job, loaded_ns, has_more);
    pthread_mutex_unlock(&sg->mu);
    call_on_ready(sg);
    pthread_mutex_lock(&sg->mu);
}

static void *search_thread(void *p)
{
    struct suggester *sg = p;
    pthread_mutex_lock(&sg->mu);
    while (!sg->is_stopping) {
        struct job *job = sg->queue;
        if (!job) {
            pthread_cond_wait(&sg->work, &sg->mu);
            continue;
        }
        sg->queue = job->next_queue;
        job->is_queued = false;
        run_job_locked(sg, job);
    }
    pthread_mutex_unlock(&sg->mu);
    return NULL;
}

/* Requests. */

static void add_ticket_locked(struct job *job, int64_t arrived_ns, size_t count)
{
    size_t i = 0;
    while (i < job->n_tickets && job->tickets[i].arrived_ns != arrived_ns)
        i++;
    if (i == TICKETS_MAX)
        return; /* it asks again after the others were served */
    job->tickets[i] = (struct ticket){arrived_ns, count};
    job->n_tickets += i == job->n_tickets;
}

/* Wait until enough is ready, the job is idle, or the patience is over. */
static bool wait_until_ready_locked(struct suggester *sg, const struct search_place *p,
                                    size_t count, bool may_wait)
{
    int64_t until_ns = clock_mono_ns() + sg->opts.patience_ms * NS_PER_MS;
    bool waits = may_wait && sg->n_patient < PATIENT_MAX && sg->opts.patience_ms > 0;
    bool is_patient = waits;
    sg->n_patient += waits;
    for (;;) {
        const struct job *job = job_find_locked(sg, p->key);
        if (!job || !is_busy(job) || chain_ready(&job->chain, p, count) >= count || !is_patient) {
            sg->n_patient -= waits;
            return job && (!is_busy(job) || chain_ready(&job->chain, p, count) >= count);
        }
        is_patient = clock_cond_wait(&sg->changed, &sg->mu, until_ns);
    }
}

/* Without search threads the requesting thread computes, one thread at a time for each sweep. */
static void run_here_locked(struct suggester *sg, int64_t key)
{
    struct job *job = job_find_locked(sg, key);
    while (job && job->is_running) {
        pthread_cond_wait(&sg->changed, &sg->mu);
        job = job_find_locked(sg, key);
    }
    if (!job || !job->is_queued)
        return; /* another thread ran it */
    struct job **at = &sg->queue;
    while (*at != job)
        at = &(*at)->next_queue;
    *at = job->next_queue;
    job->is_queued = false;
    run_job_locked(sg, job);
}

bool suggester_want(struct suggester *sg, const struct search_place *place, size_t count,
                    bool may_wait)
{
    bool worth = false;
    pthread_mutex_lock(&sg->mu);
    struct job *job = job_get_locked(sg, place->key);
    if (job) {
        job->asked_ns = clock_mono_ns();
        job->used_ns = job->asked_ns;
        add_ticket_locked(job, place->arrived_ns, count);
        job_enqueue_locked(sg, job);
        if (sg->n_threads == 0)
            run_here_locked(sg, place->key);
        worth = wait_until_ready_locked(sg, place, count, may_wait);
    }
    pthread_mutex_unlock(&sg->mu);
    return worth;
}

void suggester_taken(struct suggester *sg, int64_t n)
{
    pthread_mutex_lock(&sg->mu);
    sg->figures.taken += n;
    pthread_mutex_unlock(&sg->mu);
}

/* A trial ended, so the prepared suggestions do not know its result. If a suggestion is expensive,
 * compute again before the next request. */
static void prepare_after_result(void *ctx, int64_t key)
{
    struct suggester *sg = ctx;
    if (sg->n_threads == 0)
        return;
    pthread_mutex_lock(&sg->mu);
    struct job *job = job_find_locked(sg, key);
    if (job && job->cost_ns >= sg->opts.ahead_ms * NS_PER_MS &&
        clock_mono_ns() - job->asked_ns < AHEAD_ASKED_NS) {
        job->is_ahead = true;
        job_enqueue_locked(sg, job);
    }
    pthread_mutex_unlock(&sg->mu);
}

/* Create and free. */

static size_t default_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    size_t eighth = pages > 0 && size > 0 ? (size_t)pages / 8 * (size_t)size : BYTES_MAX;
    return eighth < BYTES_MAX ? eighth : BYTES_MAX;
}

as_status suggester_create(struct store *db, const struct suggester_opts *opts,
                           struct suggester **ret, struct as_err *err)
{
    AS_AUTO(suggester_freep) struct suggester *sg = as_calloc(1, sizeof *sg);
    if (!sg)
        return as_fail(err, AS_E_NOMEM, "out of memory for the search");
    sg->db = db;
    sg->opts = *opts;
    sg->opts.max_bytes = opts->max_bytes ? opts->max_bytes : default_bytes();
    sg->opts.ahead_ms = opts->ahead_ms ? opts->ahead_ms : AHEAD_MS;
    sg->opts.patience_ms = opts->patience_ms ? opts->patience_ms : PATIENCE_MS;
    (void)pthread_mutex_init(&sg->mu, NULL); /* none of these can fail on Linux */
    clock_cond_init(&sg->work);
    clock_cond_init(&sg->changed);
    size_t threads = opts->threads < THREADS_MAX ? opts->threads : THREADS_MAX;
    pthread_mutex_lock(&sg->mu);
    while (sg->n_threads < threads &&
           pthread_create(&sg->threads[sg->n_threads], NULL, search_thread, sg) == 0)
        sg->n_threads++;
    bool all = sg->n_threads == threads;
    pthread_mutex_unlock(&sg->mu);
    if (!all)
        return as_fail(err, AS_E_NOMEM, "cannot start the threads of the search");
    if (threads > 0)
        store_on_finished(db, prepare_after_result, sg);
    *ret = as_steal(sg);
    return AS_OK;
}

void suggester_free(struct suggester *sg)
{
    if (!sg)
        return;
    if (sg->n_threads > 0)
        store_on_finished(sg->db, NULL, NULL);
    pthread_mutex_lock(&sg->mu);
    sg->is_stopping = true;
    pthread_cond_broadcast(&sg->work);
    pthread_mutex_unlock(&sg->mu);
    for (size_t i = 0; i < sg->n_threads; i++)
        (void)pthread_join(sg->threads[i], NULL);
    for (struct job *job = sg->jobs, *next; job; job = next) {
        next = job->next;
        job_free(job);
    }
    (void)pthread_cond_destroy(&sg->changed);
    (void)pthread_cond_destroy(&sg->work);
    (void)pthread_mutex_destroy(&sg->mu);
    free(sg);
}

void suggester_figures_get(struct suggester *sg, struct suggester_figures *ret)
{
    pthread_mutex_lock(&sg->mu);
    *ret = sg->figures;
    ret->bytes = (int64_t)cached_bytes_locked(sg);
    for (const struct job *job = sg->jobs; job; job = job->next) {
        ret->sweeps += job->bytes > 0;
        ret->waiting += job->is_queued;
    }
    pthread_mutex_unlock(&sg->mu);
}
