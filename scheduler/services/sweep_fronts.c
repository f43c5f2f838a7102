/* Locks: that of the list of fronts is never held during a query (kept_list.h); a front's own is
 * held while it is brought up to date and read. So of several requests for a front that nobody has,
 * one reads and the others wait for it. */
#include "scheduler/services/sweep_fronts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/services/kept_list.h"
#include "scheduler/store/history_store.h"
#include "search/pareto/growing_front.h"

struct sweep_front {
    struct kept kept;
    int64_t sweep_key;

    pthread_mutex_t mu; /* guards all below */
    struct growing_front front;
    int64_t seen;     /* it has all trials that ended up to this place */
    int64_t measured; /* the place of the two below; -1: they are not known */
    double reference[GP_PARETO_MAX_OBJECTIVES];
    double hypervolume;
};

struct sweep_fronts {
    struct kept_list fronts;
};

/* ---- what is kept ---- */

static bool is_wanted(const struct kept *x, const void *ask)
{
    return ((const struct sweep_front *)x)->sweep_key == ((const struct front_ask *)ask)->sweep_key;
}

static struct kept *create_wanted(const void *ask)
{
    const struct front_ask *q = ask;
    struct sweep_front *s = as_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    (void)pthread_mutex_init(&s->mu, NULL);
    s->sweep_key = q->sweep_key;
    s->measured = -1;
    return &s->kept;
}

static void free_kept(struct kept *x)
{
    struct sweep_front *s = (struct sweep_front *)x;
    growing_front_done(&s->front);
    (void)pthread_mutex_destroy(&s->mu);
    free(s);
}

static const struct kept_kind kept_fronts = {
    .is = is_wanted, .create = create_wanted, .free = free_kept};

struct sweep_fronts *sweep_fronts_create(size_t max_bytes)
{
    struct sweep_fronts *x = as_calloc(1, sizeof *x);
    if (x)
        kept_list_init(&x->fronts, &kept_fronts, max_bytes);
    return x;
}

void sweep_fronts_free(struct sweep_fronts *x)
{
    if (!x)
        return;
    kept_list_done(&x->fronts);
    free(x);
}

size_t sweep_fronts_bytes(struct sweep_fronts *x)
{
    return kept_list_bytes(&x->fronts);
}

/* ---- bring up to date ---- */

static void forget(struct sweep_front *s)
{
    growing_front_done(&s->front);
    s->seen = 0;
    s->measured = -1;
}

/* The trials that ended after s->seen, up to `to`. */
static as_status read_part(struct store *db, struct sweep_front *s, const struct front_ask *q,
                           int64_t to, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    int64_t *numbers = NULL;
    double *values = NULL;
    size_t n = 0;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_history_values(run.tx, &a, s->sweep_key, s->seen, to, q->metrics,
                                          q->n_metrics, &numbers, &values, &n, err);
    as_status st = run.status;
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = growing_front_add(&s->front, numbers[i], values + i * q->n_metrics, err);
    if (st == AS_OK)
        s->seen = to;
    else
        forget(s); /* it has a part of these trials */
    return st;
}

/* In parts, because a statement has a time limit. */
static as_status read_new(struct store *db, struct sweep_front *s, const struct front_ask *q,
                          struct as_err *err)
{
    as_status st = AS_OK;
    while (s->seen < q->finish_seq && st == AS_OK) {
        int64_t left = q->finish_seq - s->seen;
        st = read_part(db, s, q, left > HISTORY_PART ? s->seen + HISTORY_PART : q->finish_seq, err);
    }
    return st;
}

static as_status bring_up_to_date(struct store *db, struct sweep_front *s,
                                  const struct front_ask *q, struct as_err *err)
{
    as_status st = AS_OK;
    if (s->front.m == 0)
        st = growing_front_init(&s->front, q->n_metrics, q->maximize, err);
    if (st == AS_OK && s->seen < q->finish_seq)
        st = read_new(db, s, q, err);
    if (st == AS_OK)
        st = growing_front_settle(&s->front, err);
    if (st != AS_OK || s->measured == s->seen || s->front.n == 0)
        return st;
    st = growing_front_measure(&s->front, s->reference, &s->hypervolume, err);
    if (st == AS_OK)
        s->measured = s->seen;
    return st;
}

/* ---- read ---- */

/* How many points have numbers up to this one. */
static size_t points_up_to(const struct growing_front *f, int64_t number)
{
    size_t low = 0, high = f->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->points[middle].number <= number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static as_status copy_part(const struct sweep_front *s, struct arena *a, int64_t after, size_t most,
                           struct front_part *ret, struct as_err *err)
{
    const struct growing_front *f = &s->front;
    size_t from = points_up_to(f, after), left = f->n - from;
    struct front_part part = {.n = left < most ? left : most,
                              .has_more = left > most,
                              .is_empty = f->n == 0,
                              .hypervolume = s->hypervolume};
    part.numbers = arena_alloc(a, part.n + 1, sizeof *part.numbers);
    part.reference = arena_alloc(a, f->m, sizeof *part.reference);
    if (!part.numbers || !part.reference)
        return as_fail_nomem(err);
    for (size_t i = 0; i < part.n; i++)
        part.numbers[i] = f->points[from + i].number;
    memcpy(part.reference, s->reference, f->m * sizeof *part.reference);
    *ret = part;
    return AS_OK;
}

as_status sweep_fronts_read(struct store *db, struct sweep_fronts *x, struct arena *a,
                            const struct front_ask *ask, int64_t after, size_t most,
                            struct front_part *ret, struct as_err *err)
{
    struct sweep_front *s = (struct sweep_front *)kept_list_take(&x->fronts, ask);
    if (!s)
        return as_fail_nomem(err);
    pthread_mutex_lock(&s->mu);
    as_status st = bring_up_to_date(db, s, ask, err);
    if (st == AS_OK)
        st = copy_part(s, a, after, most, ret, err);
    size_t bytes = sizeof *s + s->front.cap * sizeof *s->front.points;
    pthread_mutex_unlock(&s->mu);
    kept_list_give_back(&x->fronts, &s->kept, bytes);
    return st;
}
