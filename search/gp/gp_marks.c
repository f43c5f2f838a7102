/* What an acquisition compares with: the value that logEI improves on, PE's threshold, the front of
 * several objectives. */
#include "search/gp/gp_priv.h"

#include <math.h>
#include <string.h>

#include "search/pareto/pareto.h"

/* UCB's number of deviations, without pending trials and with this many. Pending trials shrink the
 * deviations and so already spread the suggestions. A smaller number moves each suggestion closer
 * to the best. Sums of log10 regret with 8 pending, 4 functions, 6 seeds: 1.8 -7.3, 1.2 -9.2, 0.8
 * -8.6; without pending trials 1.4 instead of 1.8 costs 0.02, 0.02, 0.08 (bench/notes). */
#define UCB_BETA 1.8
#define UCB_BETA_PARALLEL 1.2
#define UCB_PARALLEL 4
#define LOOK 64 /* PE searches its threshold among this many best trials, predicted at once */

double gp_ucb_beta(const struct training_set *s)
{
    double share = fmin(1, (double)s->n_pending / UCB_PARALLEL);
    return UCB_BETA + share * (UCB_BETA_PARALLEL - UCB_BETA);
}

/* Predict n <= LOOK trials with the first model. */
static as_status predict_trials(struct gp_ask *a, const size_t *trials, size_t n, double *mean,
                                double *var, struct as_err *err)
{
    const struct training_set *s = a->set;
    const struct surrogate *m = &a->models[0];
    size_t n_real = s->columns.n_real, n_cat = s->columns.n_cat;
    AS_AUTO(as_freep) double *x = as_calloc(LOOK, n_real * sizeof *x);
    AS_AUTO(as_freep) int32_t *z = as_calloc(LOOK, n_cat * sizeof *z);
    struct gp_work **work = &a->cache->optimizer.predict;
    if (!x || !z || (!*work && !(*work = gp_work_create())))
        return as_fail_nomem(err);
    as_status st = surrogate_reserve(m, *work, LOOK, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n; i++) {
        memcpy(x + i * n_real, s->x + trials[i] * n_real, n_real * sizeof *x);
        memcpy(z + i * n_cat, s->z + trials[i] * n_cat, n_cat * sizeof *z);
    }
    surrogate_predict(m, *work, &(struct gp_rows){n, x, z}, mean, var);
    return AS_OK;
}

/* Set PE's threshold: the mean of the best trial with the lowest mean - 1.8 sigma. */
static as_status set_threshold(struct gp_ask *a, struct as_err *err)
{
    size_t top[LOOK], n = gp_candidates_top(a->set, LOOK, top);
    double mean[LOOK], var[LOOK], lowest = INFINITY;
    as_status st = predict_trials(a, top, n, mean, var, err);
    if (st < 0)
        return st;
    for (size_t i = 0; i < n; i++) {
        double bound = mean[i] - UCB_BETA * sqrt(var[i]);
        if (bound < lowest) {
            lowest = bound;
            a->acquisition.threshold = mean[i];
        }
    }
    return AS_OK;
}

/* The worst feasible value of objective k as its model sees it. It is cut, so that a diverged trial
 * does not determine it. The warp's values are those of the completed trials; with rungs, of these
 * too, and the worst of all is taken. */
static double worst_of(const struct gp_ask *a, size_t k)
{
    const struct training_set *s = a->set;
    const double *v = gp_warp_values(a->models[k].warp);
    double worst = -INFINITY;
    for (size_t i = 0; s->rungs && i < a->models[k].n_values; i++)
        worst = fmax(worst, v[i]);
    for (size_t i = 0; i < s->n && !s->rungs; i++) {
        if (s->state[i] != OBSERVED_COMPLETED)
            continue;
        if (s->feasible[i])
            worst = fmax(worst, *v);
        v++;
    }
    return worst;
}

as_status gp_set_expected(struct gp_ask *a, struct as_err *err)
{
    struct training_set *s = a->set;
    size_t some[LOOK];
    double mean[LOOK], var[LOOK];
    if ((!s->n_rungs && s->repeats.noise != NOISE_SEEN) || s->spec->n_objectives > 1 ||
        !a->acquisition.n_objectives)
        return AS_OK;
    s->expected = as_calloc(s->n, sizeof *s->expected);
    if (!s->expected)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n;) {
        size_t n = 0;
        for (; i < s->n && n < LOOK; i++) {
            s->expected[i] = NAN;
            if (s->state[i] == OBSERVED_COMPLETED || training_set_rung(s, i))
                some[n++] = i;
        }
        as_status st = n ? predict_trials(a, some, n, mean, var, err) : AS_OK;
        if (st < 0)
            return st;
        for (size_t j = 0; j < n; j++)
            s->expected[some[j]] = mean[j];
    }
    return AS_OK;
}

/* The lowest expected value at the last step of a trial at a rung; INFINITY: none. */
static double lowest_expected(const struct training_set *s)
{
    double lowest = INFINITY;
    for (size_t i = 0; s->expected && i < s->n; i++)
        if (training_set_rung(s, i))
            lowest = fmin(lowest, s->expected[i]);
    return lowest;
}

/* Set the value that logEI improves on: the lowest of the best result and the means of the pending
 * trials and of those at a rung. A pending trial counts as observed at its mean, so reaching that
 * mean is no improvement. Whether it meets the bounds is unknown and is ignored. */
static as_status set_best(struct gp_ask *a, struct as_err *err)
{
    const struct training_set *s = a->set;
    size_t some[LOOK];
    double mean[LOOK], var[LOOK];
    size_t best = a->row->point == POINT_BRANCH ? a->branch.best : s->best;
    double expected = s->spec->n_outcomes ? INFINITY : lowest_expected(s);
    if (best == TRAINING_SET_NONE && a->row->point != POINT_BRANCH && isfinite(expected)) {
        a->acquisition.best = expected; /* no trial has completed yet */
        return AS_OK;
    }
    if (best == TRAINING_SET_NONE) { /* the branch has no value yet: any will do */
        a->acquisition.best = worst_of(a, 0);
        return AS_OK;
    }
    a->acquisition.best = surrogate_forward(&a->models[0], s->costs[best]);
    if (a->row->point == POINT_BRANCH)
        return AS_OK;
    a->acquisition.best = fmin(a->acquisition.best, expected);
    for (size_t i = 0; i < s->n && !s->spec->n_outcomes;) {
        size_t n = 0;
        for (; i < s->n && n < LOOK; i++) {
            if (s->state[i] == OBSERVED_PENDING)
                some[n++] = i;
        }
        as_status st = n ? predict_trials(a, some, n, mean, var, err) : AS_OK;
        if (st < 0)
            return st;
        for (size_t j = 0; j < n; j++)
            a->acquisition.best = fmin(a->acquisition.best, mean[j]);
    }
    return AS_OK;
}

static as_status set_front(struct gp_ask *a, struct as_err *err)
{
    const struct training_set *s = a->set;
    size_t m = s->spec->n_objectives, n = 0, n_front = 0;
    double reference[SEARCH_MAX_OBJECTIVES];
    AS_AUTO(as_freep) double *costs = as_calloc(s->n, m * sizeof *costs);
    AS_AUTO(as_freep) size_t *front = as_calloc(s->n, sizeof *front);
    if (!costs || !front)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        for (size_t k = 0; k < m && s->feasible[i]; k++)
            costs[n * m + k] = surrogate_forward(&a->models[k], s->costs[i * m + k]);
        n += s->feasible[i];
    }
    as_status st = gp_pareto_front(costs, n, m, NULL, front, &n_front, err);
    if (st < 0)
        return st;
    gp_pareto_reference(costs, n, m, NULL, front, n_front, reference);
    /* beyond the front's ends, because otherwise they would never improve */
    for (size_t k = 0; k < m; k++)
        reference[k] = fmax(reference[k], worst_of(a, k));
    st = gp_ehvi_create(costs, n, m, reference, &a->ehvi, err);
    a->acquisition.ehvi = a->ehvi;
    return st;
}

as_status gp_set_marks(struct gp_ask *a, struct as_err *err)
{
    if (a->row->kind == ACQUISITION_EHVI)
        return set_front(a, err);
    if (a->row->kind == ACQUISITION_PE)
        return set_threshold(a, err);
    return a->row->kind == ACQUISITION_LOGEI ? set_best(a, err) : AS_OK;
}
