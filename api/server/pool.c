/* A job is a link in a list that its owner embeds, so submitting allocates nothing and cannot fail.
 * One mutex guards both queues; workers sleep on one condition. New jobs go first, because a
 * retried long-poll has an answer ready only sometimes; every fourth place is the retried ones', so
 * that a stream of new requests does not keep waiting runners from their trials. */
#include "api/server/pool.h"

#include <pthread.h>
#include <stdbool.h>

struct queue {
    struct pool_job *head, **tail;
};

struct pool {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t has_work;
    struct queue fresh, again;
    unsigned taken;
    bool is_stopping;
    size_t n_threads;
    pthread_t *threads;
};

static void append_job(struct queue *q, struct pool_job *job)
{
    job->next = NULL;
    *q->tail = job;
    q->tail = &job->next;
}

static struct pool_job *remove_first_job(struct queue *q)
{
    struct pool_job *job = q->head;
    if (!job)
        return NULL;
    q->head = job->next;
    if (!q->head)
        q->tail = &q->head;
    return job;
}

static struct pool_job *take_next_locked(struct pool *p)
{
    bool again_first = ++p->taken % 4 == 0;
    struct pool_job *job = remove_first_job(again_first ? &p->again : &p->fresh);
    return job ? job : remove_first_job(again_first ? &p->fresh : &p->again);
}

static void *run_jobs(void *arg)
{
    struct pool *p = arg;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct pool_job *job = take_next_locked(p);
        if (!job && p->is_stopping)
            break;
        if (!job) {
            pthread_cond_wait(&p->has_work, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        job->run(job);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

as_status pool_create(size_t n_threads, struct pool **ret, struct as_err *err)
{
    AS_AUTO(pool_freep) struct pool *p = as_calloc(1, sizeof *p);
    if (!p)
        return as_fail(err, AS_E_NOMEM, "out of memory for the workers");
    p->fresh.tail = &p->fresh.head;
    p->again.tail = &p->again.head;
    (void)pthread_mutex_init(&p->lock, NULL); /* cannot fail with default attributes on Linux */
    (void)pthread_cond_init(&p->has_work, NULL);
    p->threads = as_calloc(n_threads, sizeof *p->threads);
    if (!p->threads)
        return as_fail(err, AS_E_NOMEM, "out of memory for the workers");
    for (; p->n_threads < n_threads; p->n_threads++)
        if (pthread_create(&p->threads[p->n_threads], NULL, run_jobs, p) != 0)
            return as_fail(err, AS_E_NOMEM, "cannot start worker %zu of %zu", p->n_threads + 1,
                           n_threads);
    *ret = as_steal(p);
    return AS_OK;
}

static void submit_to_queue(struct pool *p, struct queue *q, struct pool_job *job)
{
    pthread_mutex_lock(&p->lock);
    append_job(q, job);
    pthread_cond_signal(&p->has_work);
    pthread_mutex_unlock(&p->lock);
}

void pool_submit(struct pool *p, struct pool_job *job)
{
    submit_to_queue(p, &p->fresh, job);
}

void pool_submit_again(struct pool *p, struct pool_job *job)
{
    submit_to_queue(p, &p->again, job);
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->is_stopping = true;
    pthread_cond_broadcast(&p->has_work);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < p->n_threads; i++)
        (void)pthread_join(p->threads[i], NULL);
    free(p->threads);
    (void)pthread_mutex_destroy(&p->lock);
    (void)pthread_cond_destroy(&p->has_work);
    free(p);
}
