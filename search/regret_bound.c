/* The bound by a plain model of the sweep, which is fitted for this question alone: no state and no
 * cache of the suggestions takes part, so that the answer depends on the trials only. The plain
 * model, because its transform is affine: ends of intervals keep their distances in the metric's
 * unit. The lowest lower end over the space is the maximum of the acquisition UCB with the bound's
 * own width, which the optimizer of suggestions finds; it never looks at tried configurations, so
 * these are predicted apart. */
#include "search/regret_bound.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/gp/gp.h"
#include "search/gp/optimize.h"

#define DELTA 0.1
#define SCALE 5.0
#define BATCH 64
#define FIRST_COUNT 4
#define GROWTH 16

size_t regret_bound_next(size_t n)
{
    size_t count = FIRST_COUNT;
    while (count <= n)
        count += count < GROWTH ? 1 : count / GROWTH;
    return count;
}

size_t regret_bound_latest(size_t n)
{
    size_t latest = 0;
    for (size_t count; (count = regret_bound_next(latest)) <= n;)
        latest = count;
    return latest;
}

bool regret_bound_follows(size_t before, size_t count)
{
    if (count < REGRET_BOUND_EACH || count <= before)
        return count == regret_bound_next(before);
    return regret_bound_latest(count) == count;
}

struct bounding {
    struct training_set *set;
    struct history history; /* without pending trials */
    struct observation *trials;
    struct surrogate_store store;
    struct surrogate model;
    struct gp_optimizer_work work;
    double *point; /* [enc->n] */
    double beta;
};

static void bounding_done(struct bounding *b)
{
    surrogate_done(&b->model);
    surrogate_store_done(&b->store);
    gp_optimizer_work_done(&b->work);
    training_set_free(b->set);
    free(b->trials);
    free(b->point);
}

/* Pending trials shrink deviations as if they were done. Their rung results count. */
static as_status read_trials(struct bounding *b, const struct search_spec *spec,
                             const struct history *history, struct as_err *err)
{
    size_t n = history ? history->n : 0;
    b->trials = as_calloc(n, sizeof *b->trials);
    if (!b->trials)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        struct observation o = history->trials[i];
        if (o.state == OBSERVED_PENDING && !o.n_rungs)
            continue;
        if (o.state == OBSERVED_PENDING)
            o.state = OBSERVED_PARTIAL;
        b->trials[b->history.n++] = o;
    }
    b->history.trials = b->trials;
    as_status st = training_set_create(spec, &b->history, NULL, &b->set, err);
    if (st < 0)
        return st;
    b->point = as_calloc(b->set->enc->n, sizeof *b->point);
    return b->point ? AS_OK : as_fail_nomem(err);
}

/* The ends of the trials in rows i.. of the list, at most BATCH of them. */
static void bound_rows(struct bounding *b, const struct gp_rows *rows, const size_t *trials,
                       double *upper, double *lower)
{
    double mean[BATCH], var[BATCH];
    surrogate_predict(&b->model, b->work.predict, rows, mean, var);
    for (size_t j = 0; j < rows->n; j++) {
        double reach = b->beta * sqrt(var[j]);
        *lower = fmin(*lower, mean[j] - reach);
        if (b->set->feasible[trials[j]])
            *upper = fmin(*upper, mean[j] + reach);
    }
}

/* The lowest upper end of the feasible trials, and the lowest lower end of all trials. */
static as_status bound_trials(struct bounding *b, double *upper, double *lower, struct as_err *err)
{
    const struct training_set *s = b->set;
    size_t n_real = s->columns.n_real, n_cat = s->columns.n_cat, trials[BATCH];
    AS_AUTO(as_freep) double *x = as_calloc(BATCH, n_real * sizeof *x);
    AS_AUTO(as_freep) int32_t *z = as_calloc(BATCH, n_cat * sizeof *z);
    if (!x || !z || !(b->work.predict = gp_work_create()))
        return as_fail_nomem(err);
    as_status st = surrogate_reserve(&b->model, b->work.predict, BATCH, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < s->n;) {
        size_t n = 0;
        for (; i < s->n && n < BATCH; i++) {
            memcpy(x + n * n_real, s->x + i * n_real, n_real * sizeof *x);
            memcpy(z + n * n_cat, s->z + i * n_cat, n_cat * sizeof *z);
            trials[n++] = i;
        }
        bound_rows(b, &(struct gp_rows){n, x, z, NULL}, trials, upper, lower);
    }
    return AS_OK;
}

/* The lowest lower end of what was not tried. */
static as_status bound_space(struct bounding *b, double *lower, struct as_err *err)
{
    const struct acquisition lowest = {.kind = ACQUISITION_UCB, .n_objectives = 1, .beta = b->beta};
    const struct gp_optimizer_problem p = {
        .set = b->set, .acquisition = &lowest, .models = &b->model, .number = b->history.n};
    struct gp_found found = {0};
    as_status st = gp_optimize(&p, &b->work, b->point, &found, err);
    if (st == AS_E_EXHAUSTED)
        return AS_OK;
    if (st == AS_OK && found.is_found)
        *lower = fmin(*lower, -found.value);
    return st;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median less best of the feasible trials. */
static as_status span_of(const struct training_set *s, double *ret, struct as_err *err)
{
    AS_AUTO(as_freep) double *v = as_calloc(s->n_feasible, sizeof *v);
    size_t n = 0;
    if (!v)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++)
        if (s->feasible[i])
            v[n++] = s->costs[i];
    qsort(v, n, sizeof *v, by_value);
    *ret = v[n / 2] - v[0];
    return AS_OK;
}

/* AS_E_NUMERIC: there is no model. */
static as_status compute(struct bounding *b, struct regret_bound *ret, struct as_err *err)
{
    const struct training_set *s = b->set;
    struct surrogate_spec spec = {SURROGATE_PLAIN, 0, GP_MAX_ROWS, b->history.n};
    double upper = INFINITY, lower = INFINITY, t = (double)s->n_completed, span = 0;
    double d = (double)s->enc->n_varied;
    b->beta = sqrt(2 / SCALE * log(d * t * t * M_PI * M_PI / (6 * DELTA)));
    as_status st = surrogate_prepare(&b->store, s, &spec, NULL, &b->model, err);
    if (st < 0 || (st = bound_trials(b, &upper, &lower, err)) < 0 ||
        (st = bound_space(b, &lower, err)) < 0 || (st = span_of(s, &span, err)) < 0)
        return st;
    ret->bound = surrogate_back(&b->model, upper) - surrogate_back(&b->model, lower);
    ret->relative = span > 0 ? ret->bound / span : INFINITY;
    ret->is_enough = s->n_completed >= REGRET_BOUND_TRIALS + s->enc->n_varied;
    ret->is_known = true;
    return AS_OK;
}

as_status regret_bound_compute(const struct search_spec *spec, const struct history *history,
                               struct regret_bound *ret, struct as_err *err)
{
    AS_AUTO(bounding_done) struct bounding b = {0};
    struct regret_bound made = {0};
    struct as_err why = {0};
    as_status st = read_trials(&b, spec, history, err);
    if (st < 0)
        return st;
    if (spec->n_objectives == 1 && b.set->n_feasible >= 2 && b.set->enc->n_varied)
        st = compute(&b, &made, &why);
    if (st == AS_E_NUMERIC) {
        made = (struct regret_bound){0};
        st = AS_OK;
    }
    if (st < 0) {
        if (err)
            *err = why;
        return st;
    }
    *ret = made;
    return AS_OK;
}
