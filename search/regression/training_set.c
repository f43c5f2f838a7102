/* From observations to rows of numbers. Finding the point of a configuration bit for bit is as
 * expensive as all else, so the points of earlier sets of the same sweep are kept and found again
 * by comparing configurations. The arrays have a row for every trial, and the models choose their
 * rows from them. */
#include "search/regression/training_set.h"

#include <math.h>
#include <string.h>

#include "search/problem/credible.h"
#include "search/regression/apart.h"
#include "search/regression/doubt.h"
#include "search/regression/neighbour_test.h"

/* A best value that fell by less than this share of (median - best) has stagnated. What a stagnant
 * sweep does is in decision 4005; a threshold for what counts as a gain gave nothing more
 * (bench/notes/gp-tuning.md). */
#define STAGNANT_SHARE 1e-3
#define STAGNANT_TRIALS 10 /* and one more for each parameter */

/* The trials crowd: a quarter of them are this close to the best, as a share of (median of the
 * first trials - best), and the newest gained less than the second share. Seven of twelve sweeps on
 * lcbench-126029 stood in such a crowd (decision 4005). Measured and no better on 14 problems of
 * numbers, 8 seeds: 0.03 instead of 0.01, a gain of 0.005, the newest 0.4
 * (bench/notes/gp-tuning.md). */
#define CROWD_SHARE 0.01
#define CROWD_GAIN 2e-3
#define CROWD_NEWEST 0.6 /* of the trials after which a sweep stagnates */

/* The sweep stalls: its last trials, so many and so large a share, gained at most this share of
 * (median of the first trials - best). */
#define STALLED_TRIALS 8
#define STALLED_SHARE 0.2
#define STALLED_GAIN 0.02
#define STALLED_FIRST 16

void training_set_free(struct training_set *s)
{
    if (!s)
        return;
    encoding_free(s->enc);
    config_free(s->scratch);
    free(s->group);
    free(s->state);
    free(s->points);
    free(s->x);
    free(s->z);
    free(s->costs);
    free(s->rungs);
    free(s->rung_from);
    free(s->expected);
    free(s->feasible);
    free(s->avoided);
    free(s);
}

static as_status allocate_arrays(struct training_set *s, struct as_err *err)
{
    const struct encoding *e = s->enc;
    s->scratch = config_create(s->spec->space);
    s->group = as_calloc(e->n_real, sizeof *s->group);
    s->state = as_calloc(s->n, sizeof *s->state);
    s->points = as_calloc(s->n, e->n * sizeof *s->points);
    s->x = as_calloc(s->n, e->n_real * sizeof *s->x);
    s->z = as_calloc(s->n, e->n_category * sizeof *s->z);
    s->costs = as_calloc(s->n, s->spec->n_objectives * sizeof *s->costs);
    s->feasible = as_calloc(s->n, sizeof *s->feasible);
    s->avoided = as_calloc(s->n, sizeof *s->avoided);
    if (!s->scratch || !s->group || !s->state || !s->points || !s->x || !s->z || !s->costs ||
        !s->feasible || !s->avoided)
        return as_fail(err, AS_E_NOMEM, "out of memory for the history of %zu trials", s->n);
    for (size_t j = 0; j < e->n_real; j++)
        s->group[j] = (uint32_t)e->real_length[j];
    s->columns = (struct gp_columns){
        .n_real = e->n_real, .n_cat = e->n_category, .n_groups = e->n_groups, .group = s->group};
    return AS_OK;
}

/* The largest credible magnitude of each value (credible.h). */
struct limits {
    double values[SEARCH_MAX_OBJECTIVES], outcomes[SEARCH_MAX_OUTCOMES];
};

/* scratch: [n]. of_outcomes: of outcome k, not of objective k. */
static as_status find_limit(const struct training_set *s, bool of_outcomes, size_t k,
                            double *scratch, double *ret, struct as_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct observation *o = &s->trials[i];
        if (o->state == OBSERVED_COMPLETED)
            scratch[n++] = of_outcomes ? o->outcomes[k] : o->values[k];
    }
    return credible_limit(scratch, n, CREDIBLE_FIRST, ret, err);
}

static as_status find_limits(const struct training_set *s, struct limits *ret, struct as_err *err)
{
    AS_AUTO(as_freep) double *scratch = as_calloc(s->n, sizeof *scratch);
    as_status st = scratch ? AS_OK : as_fail(err, AS_E_NOMEM, "out of memory for %zu values", s->n);
    for (size_t k = 0; k < s->spec->n_objectives && st == AS_OK; k++)
        st = find_limit(s, false, k, scratch, &ret->values[k], err);
    for (size_t k = 0; k < s->spec->n_outcomes && st == AS_OK; k++)
        st = find_limit(s, true, k, scratch, &ret->outcomes[k], err);
    return st;
}

/* Did it complete, with values that are finite and within the limits? */
static bool is_within(const struct search_spec *spec, const struct observation *o,
                      const struct limits *limits)
{
    bool ret = o->state == OBSERVED_COMPLETED;
    for (size_t k = 0; k < spec->n_objectives; k++)
        ret &= isfinite(o->values[k]) && fabs(o->values[k]) <= limits->values[k];
    for (size_t k = 0; k < spec->n_outcomes; k++)
        ret &= isfinite(o->outcomes[k]) && fabs(o->outcomes[k]) <= limits->outcomes[k];
    return ret;
}

/* Did it complete, with finite values? */
static bool is_finite(const struct search_spec *spec, const struct observation *o)
{
    struct limits none;
    for (size_t k = 0; k < SEARCH_MAX_OBJECTIVES; k++)
        none.values[k] = INFINITY;
    for (size_t k = 0; k < SEARCH_MAX_OUTCOMES; k++)
        none.outcomes[k] = INFINITY;
    return is_within(spec, o, &none);
}

static bool is_feasible(const struct search_spec *spec, const struct observation *o)
{
    for (size_t k = 0; k < spec->n_outcomes; k++) {
        if (o->outcomes[k] < spec->outcomes[k].min || o->outcomes[k] > spec->outcomes[k].max)
            return false;
    }
    return true;
}

void training_places_done(struct training_places *p)
{
    free(p->entries);
    free(p->points);
    *p = (struct training_places){0};
}

size_t training_places_bytes(const struct training_places *p)
{
    return p->cap_entries * sizeof *p->entries + p->cap_points * sizeof *p->points;
}

/* Make room for n rows; existing rows stay. */
static as_status reserve_places(struct training_places *p, size_t n, const struct encoding *e,
                                struct as_err *err)
{
    size_t d = e->n;
    if (p->d != d || p->bends != e->bends)
        p->n = 0;
    p->d = d;
    p->bends = e->bends;
    if (n * d > p->cap_entries) {
        as_status st = as_grow(&p->entries, 2 * n * d, sizeof *p->entries, err);
        if (st < 0)
            return st;
        p->cap_entries = 2 * n * d;
    }
    if (n * d > p->cap_points) {
        as_status st = as_grow(&p->points, 2 * n * d, sizeof *p->points, err);
        if (st < 0)
            return st;
        p->cap_points = 2 * n * d;
    }
    return AS_OK;
}

/* Values are compared by their bits, because every kind of value uses all eight bytes. */
static bool is_same_config(const struct config_entry *a, const struct config_entry *b, size_t d)
{
    for (size_t i = 0; i < d; i++) {
        if (a[i].active != b[i].active || a[i].value.integer != b[i].value.integer)
            return false;
    }
    return true;
}

/* Find the point of trial i, in `places` if it is there. */
static void find_place(const struct training_set *s, size_t i, struct training_places *places,
                       double *point)
{
    const struct config *c = s->trials[i].config;
    size_t d = s->enc->n;
    if (places && i < places->n && is_same_config(places->entries + i * d, c->entries, d)) {
        memcpy(point, places->points + i * d, d * sizeof *point);
        return;
    }
    encoding_from_config(s->enc, c, point);
    if (!places)
        return;
    memcpy(places->entries + i * d, c->entries, d * sizeof *c->entries);
    memcpy(places->points + i * d, point, d * sizeof *point);
    places->n = i + 1 > places->n ? i + 1 : places->n;
}

static void encode_trial(struct training_set *s, size_t i, struct training_places *places)
{
    const struct encoding *e = s->enc;
    double *point = s->points + i * e->n;
    find_place(s, i, places, point);
    encoding_features(e, point, s->x + i * e->n_real, s->z + i * e->n_category);
}

/* Trial i is the best one if it is better than that. */
static void note_best(struct training_set *s, size_t i)
{
    size_t m = s->spec->n_objectives;
    if (s->feasible[i] && (s->best == TRAINING_SET_NONE || s->costs[i * m] < s->costs[s->best * m]))
        s->best = i;
}

static void take_result(struct training_set *s, size_t i, const struct limits *limits)
{
    const struct observation *o = &s->trials[i];
    size_t m = s->spec->n_objectives;
    bool is_lost = o->state == OBSERVED_COMPLETED && !is_within(s->spec, o, limits);
    s->state[i] = is_lost ? OBSERVED_FAILED : o->state;
    for (size_t k = 0; k < m; k++) {
        double v = s->spec->maximize[k] ? -o->values[k] : o->values[k];
        s->costs[i * m + k] = s->state[i] == OBSERVED_COMPLETED ? v : NAN;
    }
    s->n_completed += s->state[i] == OBSERVED_COMPLETED;
    s->n_failed += s->state[i] == OBSERVED_FAILED;
    s->n_pending += s->state[i] == OBSERVED_PENDING;
    s->n_partial += s->state[i] == OBSERVED_PARTIAL;
    s->feasible[i] = s->state[i] == OBSERVED_COMPLETED && is_feasible(s->spec, o);
    s->n_feasible += s->feasible[i];
    note_best(s, i);
}

/* Take the values of the rungs of a trial, after its result. A completed trial has a value of the
 * last step already. */
static void take_rungs(struct training_set *s, size_t i)
{
    const struct observation *o = &s->trials[i];
    size_t n = s->rung_from[i], m = s->spec->n_objectives;
    double last = log(s->spec->max_step);
    for (size_t r = 0; r < o->n_rungs && s->state[i] != OBSERVED_FAILED; r++) {
        const struct trial_rung *from = &o->rungs[r];
        struct training_rung *to = &s->rungs[n];
        if (s->state[i] == OBSERVED_COMPLETED && from->step >= s->spec->max_step)
            continue;
        to->place = last > 0 ? fmin(1, fmax(0, log(from->step) / last)) : 1;
        for (size_t k = 0; k < m; k++) {
            double v = s->spec->maximize[k] ? -from->values[k] : from->values[k];
            to->costs[k] = isfinite(v) ? v : INFINITY;
        }
        n++;
    }
    s->rung_from[i + 1] = n;
    s->n_rungs += training_set_rung(s, i) != NULL;
}

static as_status reserve_rungs(struct training_set *s, struct as_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->trials[i].n_rungs;
    s->rungs = as_calloc(n, sizeof *s->rungs);
    s->rung_from = as_calloc(s->n + 1, sizeof *s->rung_from);
    return s->rungs && s->rung_from ? AS_OK
                                    : as_fail(err, AS_E_NOMEM, "out of memory for %zu rungs", n);
}

/* Copy the features of trial i to row n. */
static void take_row(const struct training_set *s, size_t i, size_t n, double *x, int32_t *z)
{
    size_t n_real = s->enc->n_real, n_cat = s->enc->n_category;
    memcpy(x + n * n_real, s->x + i * n_real, n_real * sizeof *x);
    memcpy(z + n * n_cat, s->z + i * n_cat, n_cat * sizeof *z);
}

/* Do the trials whose values are not credible lie together? */
static as_status ask_scatter(const struct training_set *s, bool *ret, struct as_err *err)
{
    AS_AUTO(as_freep) double *x = as_calloc(s->n, s->enc->n_real * sizeof *x);
    AS_AUTO(as_freep) int32_t *z = as_calloc(s->n, s->enc->n_category * sizeof *z);
    AS_AUTO(as_freep) bool *marked = as_calloc(s->n, sizeof *marked);
    size_t n = 0;
    if (!x || !z || !marked)
        return as_fail(err, AS_E_NOMEM, "out of memory for the failures of %zu trials", s->n);
    for (size_t i = 0; i < s->n; i++) {
        if ((s->state[i] != OBSERVED_COMPLETED && s->state[i] != OBSERVED_FAILED) || s->avoided[i])
            continue;
        marked[n] = s->state[i] == OBSERVED_FAILED;
        take_row(s, i, n++, x, z);
    }
    *ret = scatter_is_local(&s->columns, &(struct gp_rows){n, x, z}, marked);
    return AS_OK;
}

static as_status find_avoided(struct training_set *s, struct as_err *err)
{
    bool is_local = false;
    for (size_t i = 0; i < s->n; i++) {
        const struct observation *o = &s->trials[i];
        s->avoided[i] = s->state[i] == OBSERVED_FAILED && !is_finite(s->spec, o);
        s->n_avoided += s->avoided[i];
    }
    if (s->n_avoided == s->n_failed)
        return AS_OK;
    as_status st = ask_scatter(s, &is_local, err);
    for (size_t i = 0; i < s->n && is_local; i++)
        s->avoided[i] = s->state[i] == OBSERVED_FAILED;
    s->n_avoided = is_local ? s->n_failed : s->n_avoided;
    return st;
}

static void drop(struct training_set *s, size_t i)
{
    s->state[i] = OBSERVED_FAILED;
    s->costs[i] = NAN;
    s->feasible[i] = false;
    s->n_completed--;
    s->n_feasible--;
    s->n_failed++;
}

/* Results that are faults of the measurement count as none. */
static as_status drop_faults(struct training_set *s, struct as_err *err)
{
    if (s->spec->n_objectives > 1 || s->rungs || s->n_feasible < APART_LEAST)
        return AS_OK;
    AS_AUTO(as_freep) bool *dropped = as_calloc(s->n, sizeof *dropped);
    if (!dropped)
        return as_fail_nomem(err);
    const struct doubt_rows rows = {
        s->spec->space, s->spec->is_exact, s->n, s->trials, s->state, s->costs,
        s->feasible,    &s->columns,       s->x, s->z,      dropped};
    size_t before = s->n_feasible;
    as_status st = doubt_judge(&rows, &s->in_doubt, err);
    for (size_t i = 0; i < s->n && st == AS_OK; i++)
        if (dropped[i])
            drop(s, i);
    if (s->n_feasible == before)
        return st;
    s->best = TRAINING_SET_NONE;
    for (size_t i = 0; i < s->n; i++)
        note_best(s, i);
    return st;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sort_for_median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

static double best_before(const double *v, size_t n, size_t newest)
{
    double best = INFINITY;
    for (size_t i = 0; i + newest < n; i++)
        best = fmin(best, v[i]);
    return best;
}

/* v: the costs of the n feasible trials. */
static bool is_stalled(const double *v, size_t n)
{
    size_t newest = (size_t)fmax(STALLED_TRIALS, STALLED_SHARE * (double)n);
    double first[STALLED_FIRST];
    if (n < STALLED_FIRST || n <= newest)
        return false;
    memcpy(first, v, sizeof first);
    double median = sort_for_median(first, STALLED_FIRST), best = best_before(v, n, 0);
    return best_before(v, n, newest) - best <= STALLED_GAIN * (median - best);
}

static as_status judge_progress(struct training_set *s, struct as_err *err)
{
    size_t window = STAGNANT_TRIALS + s->enc->n_varied, n = 0;
    if (s->spec->n_objectives > 1)
        return AS_OK;
    AS_AUTO(as_freep) double *v = as_calloc(s->n_feasible, sizeof *v);
    if (!v)
        return as_fail(err, AS_E_NOMEM, "out of memory for %zu values", s->n_feasible);
    for (size_t i = 0; i < s->n; i++) {
        if (s->feasible[i])
            v[n++] = s->costs[i];
    }
    s->stalled = is_stalled(v, n);
    if (n <= window)
        return AS_OK;
    double before = best_before(v, n, window);
    double lately = best_before(v, n, (size_t)(CROWD_NEWEST * (double)window));
    double first = sort_for_median(v, window), median = sort_for_median(v, n), best = v[0];
    s->stagnant = before - best <= STAGNANT_SHARE * (median - best);
    s->crowded = v[n / 4] - best <= CROWD_SHARE * (first - best) &&
                 lately - best <= CROWD_GAIN * (first - best);
    return AS_OK;
}

as_status training_set_create(const struct search_spec *spec, const struct history *history,
                              struct training_places *places, struct training_set **ret,
                              struct as_err *err)
{
    return training_set_create_with(spec, history, NULL, places, ret, err);
}

as_status training_set_create_with(const struct search_spec *spec, const struct history *history,
                                   const struct encoding_learned *learned,
                                   struct training_places *places, struct training_set **ret,
                                   struct as_err *err)
{
    AS_AUTO(training_set_freep) struct training_set *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail(err, AS_E_NOMEM, "out of memory for a search");
    s->spec = spec;
    s->best = TRAINING_SET_NONE;
    s->n = history ? history->n : 0;
    s->trials = history ? history->trials : NULL;
    as_status st = encoding_create_with(spec->space, learned, &s->enc, err);
    if (st < 0)
        return st;
    st = allocate_arrays(s, err);
    if (st < 0)
        return st;
    if (places) {
        st = reserve_places(places, s->n, s->enc, err);
        if (st < 0)
            return st;
    }
    if (spec->max_step > 0 && (st = reserve_rungs(s, err)) < 0)
        return st;
    struct limits limits;
    if ((st = find_limits(s, &limits, err)) < 0)
        return st;
    for (size_t i = 0; i < s->n; i++) {
        encode_trial(s, i, places);
        take_result(s, i, &limits);
        if (s->rungs)
            take_rungs(s, i);
    }
    if ((st = drop_faults(s, err)) < 0 || (st = find_avoided(s, err)) < 0 ||
        (st = judge_progress(s, err)) < 0 ||
        (st = repeats_judge(spec, s->trials, s->n, &s->repeats, err)) < 0)
        return st;
    *ret = as_steal(s);
    return AS_OK;
}

size_t training_set_find(const struct training_set *s, const double *point, double tolerance,
                         size_t from)
{
    /* most trials already differ in the first continuous parameter, so the check ends early */
    size_t d = s->enc->n, k = 0;
    while (k < d &&
           (s->enc->params[k].kind != ENCODED_CONTINUOUS || s->enc->params[k].is_conditional))
        k++;
    for (size_t n = 0, i = from < s->n ? from : 0; n < s->n; n++, i = i + 1 < s->n ? i + 1 : 0) {
        if (k < d && fabs(point[k] - s->points[i * d + k]) > tolerance)
            continue;
        if (encoding_same(s->enc, point, training_set_point(s, i), tolerance))
            return i;
    }
    return TRAINING_SET_NONE;
}

bool training_set_tried(const struct training_set *s, const double *point, double tolerance)
{
    return training_set_find(s, point, tolerance, 0) != TRAINING_SET_NONE;
}
