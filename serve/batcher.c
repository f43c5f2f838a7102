/* One lock guards the list of versions that have work and the queue of each. It is held for a few
 * pointers only, never while a worker computes.
 *
 * A version stands in the list at most once. It is put there when its queue gets its first request
 * while no worker computes it, and when there is reason for one more worker (wants_worker). A
 * worker that ends a pass puts it there again if requests came in the meantime.
 *
 * Who can reach a version holds a reference to it: each request its caller's, the list one, and a
 * thread that computes one of its own. Without that of the list a version could be freed while it
 * stands there: another thread may compute all of its requests before a worker takes it from the
 * list, and a swap may end the reference of the cache. */
#include "serve/batcher.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "serve/stats.h"

/* Waking a worker for a pass and the I/O thread for its answer took more than half of the 75 us of
 * processor time of a request with one row (decision 6007). The limit bounds how long the I/O
 * thread keeps other requests waiting. */
/* The thread that submits computes if that takes no longer than this. */
#define GUEST_NS (150 * 1000)
/* Passes that it computes for others after its own. */
#define GUEST_PASSES 3

struct worker {
    struct batcher *b;
    size_t index;     /* of its predictors */
    pthread_t thread; /* of a guest: not used */
    float *raw, *out; /* of a pass with several requests */
    size_t raw_cap, out_cap;
};

struct batcher {
    pthread_mutex_t lock; /* guards the rest, and the queues of versions */
    pthread_cond_t has_work;
    struct served *ready, **ready_tail;
    struct batch_task *tasks, **tasks_tail;
    size_t n_tasks, queue;
    size_t n_idle; /* workers that wait for work */
    unsigned turn;
    bool is_stopping;
    size_t n_workers, n_guests;
    struct worker *workers; /* [n_workers + n_guests] */
    atomic_size_t guests;   /* threads that are one */
};

/* What the calling thread is to a batcher. Batchers are few and live long. */
static _Thread_local struct {
    struct batcher *b;
    struct worker *worker;
} guest_of;

/* Requests that a worker computes together. */
struct batch {
    struct served *version;
    struct batch_job *jobs;
    size_t n_jobs, rows;
    size_t computed; /* rows, and the time that they took */
    int64_t took_ns;
};

/* ---- queues; the lock is held ---- */

static bool wants_worker(const struct served *v)
{
    const struct served_queue *q = &v->queue;
    return q->n_jobs > 0 &&
           (q->n_active == 0 || q->n_rows >= v->max_rows || q->n_active == q->n_large);
}

static void offer_locked(struct batcher *b, struct served *v)
{
    if (v->queue.is_ready || !wants_worker(v))
        return;
    v->queue.is_ready = true;
    v->queue.next_ready = NULL;
    *b->ready_tail = served_ref(v);
    b->ready_tail = &v->queue.next_ready;
    if (b->n_idle)
        pthread_cond_signal(&b->has_work);
}

/* The reference of the list becomes the caller's. */
static struct served *next_version_locked(struct batcher *b)
{
    struct served *v = b->ready;
    if (!v)
        return NULL;
    b->ready = v->queue.next_ready;
    if (!b->ready)
        b->ready_tail = &b->ready;
    v->queue.is_ready = false;
    return v;
}

/* Take requests that fit into a pass, at least one. */
static struct batch take_locked(struct batcher *b, struct served *v)
{
    struct served_queue *q = &v->queue;
    struct batch t = {.version = v, .jobs = q->head};
    struct batch_job *last = NULL;
    while (q->head && (!last || t.rows + q->head->rows <= v->max_rows)) {
        last = q->head;
        t.rows += last->rows;
        t.n_jobs++;
        q->head = last->next;
    }
    if (last)
        last->next = NULL;
    if (!q->head)
        q->tail = &q->head;
    q->n_jobs -= t.n_jobs;
    q->n_rows -= t.rows;
    q->n_active++;
    q->n_large += t.rows > v->max_rows;
    (void)atomic_fetch_sub_explicit(&v->stats->queued, t.n_jobs, memory_order_relaxed);
    offer_locked(b, v);
    return t;
}

static struct batch_task *next_task_locked(struct batcher *b)
{
    struct batch_task *t = b->tasks;
    if (!t)
        return NULL;
    b->tasks = t->next;
    if (!b->tasks)
        b->tasks_tail = &b->tasks;
    b->n_tasks--;
    return t;
}

/* ---- a pass ---- */

static bool reserve(float **p, size_t *cap, size_t n)
{
    if (n <= *cap)
        return true;
    if (as_grow(p, n, sizeof **p, NULL) < 0)
        return false;
    *cap = n;
    return true;
}

/* Answer the requests whose time is over, and keep the others. */
static void drop_late(struct batch *t)
{
    struct batch_job **at = &t->jobs;
    int64_t now = clock_mono_ns();
    while (*at) {
        struct batch_job *job = *at;
        if (job->deadline_ns >= now) {
            at = &job->next;
            continue;
        }
        struct as_err err;
        *at = job->next;
        t->rows -= job->rows;
        t->n_jobs--;
        job->done(job, as_fail(&err, AS_E_TIMEOUT, "the request waited too long to be computed"),
                  NULL, &err);
    }
}

/* The inputs of all requests behind each other; of a single one where they are. */
static const float *gather(struct worker *w, const struct batch *t)
{
    size_t features = t->version->schema.features, at = 0;
    if (t->n_jobs == 1)
        return t->jobs->raw;
    if (!reserve(&w->raw, &w->raw_cap, t->rows * features))
        return NULL;
    for (const struct batch_job *job = t->jobs; job; job = job->next) {
        memcpy(w->raw + at, job->raw, job->rows * features * sizeof *w->raw);
        at += job->rows * features;
    }
    return w->raw;
}

/* A pass of several requests failed: compute each alone, so that one cannot fail the others. */
static void compute_each(struct worker *w, struct batch *t)
{
    struct served *v = t->version;
    for (struct batch_job *job = t->jobs, *next; job; job = next) {
        struct as_err err = {0};
        next = job->next; /* done() gives the job back */
        as_status st = served_predict(v, w->index, job->raw, job->rows, w->out, &err);
        job->done(job, st, w->out, &err);
    }
}

static void compute(struct worker *w, struct batch *t)
{
    struct served *v = t->version;
    struct as_err err = {0};
    drop_late(t);
    if (!t->n_jobs)
        return;
    int64_t start = clock_mono_ns(), took;
    const float *raw = gather(w, t);
    bool has_room = raw && reserve(&w->out, &w->out_cap, t->rows * v->schema.outputs);
    as_status st =
        has_room ? served_predict(v, w->index, raw, t->rows, w->out, &err) : as_fail_nomem(&err);
    took = clock_mono_ns() - start;
    stats_batch(v->stats, t->rows, took);
    t->computed = t->rows;
    t->took_ns = took;
    if (st < 0 && has_room && t->n_jobs > 1) {
        compute_each(w, t);
        return;
    }
    const float *out = w->out;
    for (struct batch_job *job = t->jobs, *next; job; job = next) {
        size_t n = job->rows * v->schema.outputs;
        next = job->next;
        job->done(job, st, out, &err);
        out += n;
    }
}

/* Note what a pass took, as a moving average of eight: of a row in large passes, and of a pass in
 * small ones. */
static void learn_locked(struct served_queue *q, const struct batch *t)
{
    int64_t *average = t->computed <= 4 ? &q->pass_ns : &q->row_ns;
    int64_t ns = t->computed <= 4 ? t->took_ns : t->took_ns / (int64_t)t->computed;
    if (t->computed)
        *average = *average ? *average + (ns - *average) / 8 : ns;
}

/* Take requests and compute them. The lock is held before and after, not meanwhile. The caller
 * holds a reference to v. */
static void run_pass(struct worker *w, struct served *v)
{
    struct batcher *b = w->b;
    struct batch t = take_locked(b, v);
    bool is_large = t.rows > v->max_rows;
    pthread_mutex_unlock(&b->lock);
    compute(w, &t);
    pthread_mutex_lock(&b->lock);
    learn_locked(&v->queue, &t);
    v->queue.n_active--;
    v->queue.n_large -= is_large;
}

/* Compute a version that was taken from the list, whose reference ends here. */
static void run_version(struct worker *w, struct served *v)
{
    struct batcher *b = w->b;
    if (v->queue.n_jobs > 0) /* else another thread was faster */
        run_pass(w, v);
    offer_locked(b, v);
    pthread_mutex_unlock(&b->lock);
    served_unref(v); /* may free a model: not under the lock */
    pthread_mutex_lock(&b->lock);
}

static void *run_worker(void *arg)
{
    struct worker *w = arg;
    struct batcher *b = w->b;
    guest_of.b = b; /* it submits what it has parsed */
    guest_of.worker = w;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        bool task_first = ++b->turn % 2 == 0; /* neither kind starves */
        struct batch_task *task = task_first ? next_task_locked(b) : NULL;
        struct served *v = task ? NULL : next_version_locked(b);
        if (!v && !task)
            task = next_task_locked(b);
        if (v) {
            run_version(w, v);
        } else if (task) {
            pthread_mutex_unlock(&b->lock);
            task->run(task);
            pthread_mutex_lock(&b->lock);
        } else if (b->is_stopping) {
            break;
        } else {
            b->n_idle++;
            pthread_cond_wait(&b->has_work, &b->lock);
            b->n_idle--;
        }
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ---- from outside ---- */

/* The calling thread as a worker, or NULL: there are enough of them. */
static struct worker *guest(struct batcher *b)
{
    if (guest_of.b != b) {
        size_t i = atomic_fetch_add(&b->guests, 1);
        guest_of.b = b;
        guest_of.worker = i < b->n_guests ? &b->workers[b->n_workers + i] : NULL;
    }
    return guest_of.worker;
}

/* Is it cheaper to compute the request here than to wake a worker? Not before the cost is known. */
static bool is_cheap(const struct served *v, size_t rows)
{
    const struct served_queue *q = &v->queue;
    return rows <= 4 ? q->pass_ns > 0 && q->pass_ns <= GUEST_NS
                     : q->row_ns > 0 && q->row_ns * (int64_t)rows <= GUEST_NS;
}

/* Compute what waits, the caller's request first, as a worker that goes back to its own work
 * soon. */
static void compute_here(struct worker *w, struct served *v)
{
    struct batcher *b = w->b;
    (void)served_ref(v);
    for (int i = 0; i <= GUEST_PASSES && v->queue.n_jobs > 0 && v->queue.n_active == 0; i++)
        run_pass(w, v);
    offer_locked(b, v);
    pthread_mutex_unlock(&b->lock);
    served_unref(v);
}

bool batcher_submit(struct batcher *b, struct batch_job *job)
{
    struct served *v = job->version;
    struct served_queue *q = &v->queue;
    struct worker *w = guest(b);
    job->next = NULL;
    pthread_mutex_lock(&b->lock);
    if (q->n_jobs >= b->queue) {
        pthread_mutex_unlock(&b->lock);
        return false;
    }
    bool here = w && q->n_active == 0 && q->n_jobs == 0 && is_cheap(v, job->rows);
    *q->tail = job;
    q->tail = &job->next;
    q->n_jobs++;
    q->n_rows += job->rows;
    (void)atomic_fetch_add_explicit(&v->stats->queued, 1, memory_order_relaxed);
    if (here) {
        compute_here(w, v);
        return true;
    }
    offer_locked(b, v);
    pthread_mutex_unlock(&b->lock);
    return true;
}

bool batcher_run(struct batcher *b, struct batch_task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&b->lock);
    bool has_room = b->n_tasks < b->queue;
    if (has_room) {
        *b->tasks_tail = task;
        b->tasks_tail = &task->next;
        b->n_tasks++;
        pthread_cond_signal(&b->has_work);
    }
    pthread_mutex_unlock(&b->lock);
    return has_room;
}

as_status batcher_create(size_t workers, size_t guests, size_t queue, struct batcher **ret,
                         struct as_err *err)
{
    struct batcher *b = as_calloc(1, sizeof *b);
    if (!b)
        return as_fail_nomem(err);
    b->queue = queue;
    b->ready_tail = &b->ready;
    b->tasks_tail = &b->tasks;
    (void)pthread_mutex_init(&b->lock, NULL); /* cannot fail with default attributes on Linux */
    (void)pthread_cond_init(&b->has_work, NULL);
    b->workers = as_calloc(workers + guests, sizeof *b->workers);
    b->n_guests = b->workers ? guests : 0;
    for (size_t i = 0; i < b->n_guests; i++) {
        b->workers[workers + i].b = b;
        b->workers[workers + i].index = workers + i;
    }
    for (; b->workers && b->n_workers < workers; b->n_workers++) {
        struct worker *w = &b->workers[b->n_workers];
        w->b = b;
        w->index = b->n_workers;
        if (pthread_create(&w->thread, NULL, run_worker, w) != 0)
            break;
    }
    if (b->n_workers < workers) {
        batcher_free(b);
        return as_fail(err, AS_E_NOMEM, "cannot start %zu workers", workers);
    }
    *ret = b;
    return AS_OK;
}

void batcher_free(struct batcher *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->is_stopping = true;
    pthread_cond_broadcast(&b->has_work);
    pthread_mutex_unlock(&b->lock);
    for (size_t i = 0; i < b->n_workers; i++)
        (void)pthread_join(b->workers[i].thread, NULL);
    for (size_t i = 0; b->workers && i < b->n_workers + b->n_guests; i++) {
        free(b->workers[i].raw);
        free(b->workers[i].out);
    }
    free(b->workers);
    (void)pthread_mutex_destroy(&b->lock);
    (void)pthread_cond_destroy(&b->has_work);
    free(b);
}
