/* A set is what has queued while the thread wrote the one before and rested. A set that fails is
 * retried by nobody here: each of its heartbeats is written alone then. */
#include "scheduler/commit/beats.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

#define LISTED_MAX 64 /* attempts of a heartbeat that are compared with each other */

struct beats {
    struct store *db;
    /* of the thread alone */
    struct beat_member *members[BEATS_MAX];
    struct beat_ask asks[BEATS_MAX];
    struct beat_fact facts[BEATS_MAX];

    pthread_mutex_t mu; /* guards the rest */
    pthread_cond_t wake;
    struct beat_member *first, **last; /* in order of arrival */
    bool is_stopping;
    struct beats_figures figures;
    pthread_t thread;
    bool has_thread;
};

bool beats_takes(const struct beat_ask *ask)
{
    if (ask->n > LISTED_MAX)
        return false;
    for (size_t i = 1; i < ask->n; i++)
        for (size_t k = 0; k < i; k++)
            if (ask->attempts[i].number == ask->attempts[k].number &&
                as_streq(ask->attempts[i].sweep, ask->attempts[k].sweep))
                return false;
    return true;
}

/* ---- one set ---- */

static as_status write_set(struct beats *b, size_t n, bool *ret_away, struct as_err *err)
{
    for (size_t i = 0; i < n; i++)
        b->asks[i] = b->members[i]->ask;
    struct tx_run run = tx_run_start(b->db, TX_BATCH, err);
    while (tx_run_again(&run))
        run.status = store_beat_many(run.tx, b->asks, n, b->facts, err);
    *ret_away = run.is_away;
    return run.status;
}

static void count_set(struct beats *b, size_t n, bool is_written)
{
    pthread_mutex_lock(&b->mu);
    b->figures.sets++;
    b->figures.members += (int64_t)n;
    for (size_t i = 0; i < n && is_written; i++)
        b->figures.plain += b->facts[i].is_plain;
    pthread_mutex_unlock(&b->mu);
}

static void run_set(struct beats *b, size_t n)
{
    struct as_err err = {0};
    bool is_away = false;
    as_status st = write_set(b, n, &is_away, &err);
    count_set(b, n, st == AS_OK);
    if (st != AS_OK && !is_away)
        log_write(LOG_WARN, "heartbeats not written together", "members=%zu error=\"%s\"", n,
                  err.msg);
    for (size_t i = 0; i < n; i++) {
        struct beat_member *m = b->members[i];
        m->fact = st == AS_OK ? b->facts[i] : (struct beat_fact){0};
        m->status = is_away ? st : AS_OK;
        m->err = err;
        m->done(m); /* it may be gone now */
    }
}

/* ---- the thread ---- */

static size_t take_set_locked(struct beats *b)
{
    size_t n = 0;
    for (; b->first && n < BEATS_MAX; n++) {
        b->members[n] = b->first;
        b->first = b->first->next;
    }
    if (!b->first)
        b->last = &b->first;
    return n;
}

/* Wait for a heartbeat, and until a set may begin. */
static void wait_locked(struct beats *b, int64_t begin_ns)
{
    while (!b->first && !b->is_stopping)
        (void)pthread_cond_wait(&b->wake, &b->mu);
    while (!b->is_stopping && clock_mono_ns() < begin_ns)
        (void)clock_cond_wait(&b->wake, &b->mu, begin_ns);
}

static void *run_sets(void *arg)
{
    struct beats *b = arg;
    int64_t begin_ns = 0;
    pthread_mutex_lock(&b->mu);
    for (;;) {
        wait_locked(b, begin_ns);
        size_t n = take_set_locked(b);
        if (n == 0 && b->is_stopping)
            break;
        pthread_mutex_unlock(&b->mu);
        begin_ns = clock_mono_ns() + BEATS_PAUSE_MS * NS_PER_MS;
        run_set(b, n);
        pthread_mutex_lock(&b->mu);
    }
    pthread_mutex_unlock(&b->mu);
    return NULL;
}

/* ---- begin and end ---- */

as_status beats_create(struct store *db, struct beats **ret, struct as_err *err)
{
    AS_AUTO(beats_freep) struct beats *b = as_calloc(1, sizeof *b);
    if (!b)
        return as_fail_nomem(err);
    b->db = db;
    b->last = &b->first;
    (void)pthread_mutex_init(&b->mu, NULL); /* none of these can fail on Linux */
    clock_cond_init(&b->wake);
    b->has_thread = pthread_create(&b->thread, NULL, run_sets, b) == 0;
    if (!b->has_thread)
        return as_fail(err, AS_E_NOMEM, "cannot start the thread of the heartbeats");
    *ret = as_steal(b);
    return AS_OK;
}

void beats_submit(struct beats *b, struct beat_member *m)
{
    m->next = NULL;
    pthread_mutex_lock(&b->mu);
    bool was_empty = !b->first;
    *b->last = m;
    b->last = &m->next;
    if (was_empty)
        pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->mu);
}

void beats_figures_get(struct beats *b, struct beats_figures *ret)
{
    pthread_mutex_lock(&b->mu);
    *ret = b->figures;
    pthread_mutex_unlock(&b->mu);
}

void beats_free(struct beats *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->mu);
    b->is_stopping = true;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->mu);
    if (b->has_thread)
        (void)pthread_join(b->thread, NULL);
    (void)pthread_cond_destroy(&b->wake);
    (void)pthread_mutex_destroy(&b->mu);
    free(b);
}
