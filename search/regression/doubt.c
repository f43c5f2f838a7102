/* Only feasible trials take part: another one is nobody's best, whatever its value. What is decided
 * follows from the history alone, so that it is undone when another repeat says so. */
#include "search/regression/doubt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "search/regression/apart.h"
#include "search/regression/neighbour_test.h"

#define ATTEMPTS 3  /* repeats that failed: then it is not asked again */
#define BAD_LEAST 3 /* values, of which it can be said that they come anywhere */

/* The costs of the feasible trials, ascending; returns how many. */
static size_t sort_costs(const struct training_set *s, double *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->feasible[i])
            ret[n++] = s->costs[i];
    qsort(ret, n, sizeof *ret, as_order_f64);
    return n;
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

static void find_best(struct training_set *s)
{
    s->best = TRAINING_SET_NONE;
    for (size_t i = 0; i < s->n; i++)
        if (s->feasible[i] && (s->best == TRAINING_SET_NONE || s->costs[i] < s->costs[s->best]))
            s->best = i;
}

/* ---- bad values ---- */

static as_status ask_region(const struct training_set *s, double above, bool *ret,
                            struct as_err *err)
{
    size_t n_real = s->enc->n_real, n_cat = s->enc->n_category, n = 0;
    AS_AUTO(as_freep) double *x = as_calloc(s->n_feasible, n_real * sizeof *x);
    AS_AUTO(as_freep) int32_t *z = as_calloc(s->n_feasible, n_cat * sizeof *z);
    AS_AUTO(as_freep) bool *marked = as_calloc(s->n_feasible, sizeof *marked);
    if (!x || !z || !marked)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        if (!s->feasible[i])
            continue;
        memcpy(x + n * n_real, s->x + i * n_real, n_real * sizeof *x);
        memcpy(z + n * n_cat, s->z + i * n_cat, n_cat * sizeof *z);
        marked[n++] = s->costs[i] > above;
    }
    *ret = scatter_is_local(&s->columns, &(struct gp_rows){n, x, z, NULL, NULL}, marked);
    return AS_OK;
}

/* sorted: the n costs of the feasible trials. */
static as_status judge_bad(struct training_set *s, const double *sorted, size_t n,
                           struct as_err *err)
{
    size_t g = apart_highest(sorted, n);
    bool is_region = false;
    if (g < BAD_LEAST)
        return AS_OK;
    double above = sorted[n - g - 1];
    as_status st = ask_region(s, above, &is_region, err);
    for (size_t i = 0; i < s->n && st == AS_OK && !is_region; i++)
        if (s->feasible[i] && s->costs[i] > above)
            drop(s, i);
    return st;
}

/* ---- good values ---- */

/* What the repeats say of the trials whose costs are below a boundary. */
struct answers {
    double confirmed; /* the highest cost of a trial that was confirmed; -INFINITY: none */
    double refuted;   /* the highest cost of one that was refuted; -INFINITY: none */
};

/* What the other trials of trial i's configuration say. */
static void ask_repeats(const struct training_set *s, size_t i, double boundary,
                        struct answers *ret)
{
    for (size_t j = 0; j < s->n; j++) {
        if (j == i || s->state[j] != OBSERVED_COMPLETED ||
            !config_equal(s->spec->space, s->trials[i].config, s->trials[j].config))
            continue;
        if (s->costs[j] < boundary)
            ret->confirmed = fmax(ret->confirmed, fmax(s->costs[i], s->costs[j]));
        else
            ret->refuted = fmax(ret->refuted, s->costs[i]);
    }
}

/* May the best trial be measured once more? Not while that is under way, nor if it failed often. */
static bool may_be_repeated(const struct training_set *s)
{
    size_t failed = 0;
    for (size_t j = 0; j < s->n; j++) {
        if (j == s->best ||
            !config_equal(s->spec->space, s->trials[s->best].config, s->trials[j].config))
            continue;
        if (s->state[j] == OBSERVED_PENDING)
            return false;
        failed += s->state[j] == OBSERVED_FAILED;
    }
    return failed < ATTEMPTS;
}

/* sorted: the n costs of the feasible trials. */
static void judge_good(struct training_set *s, double *sorted, size_t n)
{
    double known = INFINITY;
    for (;;) {
        size_t g = apart_lowest(sorted, n, known);
        if (!g)
            return;
        double boundary = sorted[g];
        struct answers a = {-INFINITY, -INFINITY};
        for (size_t i = 0; i < s->n; i++)
            if (s->feasible[i] && s->costs[i] < boundary)
                ask_repeats(s, i, boundary, &a);
        if (isfinite(a.confirmed)) {
            known = a.confirmed;
            continue;
        }
        if (!isfinite(a.refuted)) {
            find_best(s);
            s->in_doubt = may_be_repeated(s);
            return;
        }
        double half_way = a.refuted / 2 + boundary / 2;
        for (size_t i = 0; i < s->n; i++)
            if (s->feasible[i] && s->costs[i] < half_way)
                drop(s, i);
        n = sort_costs(s, sorted);
    }
}

as_status doubt_judge(struct training_set *s, struct as_err *err)
{
    if (s->spec->n_objectives > 1 || s->spec->max_step > 0 || s->n_feasible < APART_LEAST)
        return AS_OK;
    AS_AUTO(as_freep) double *sorted = as_calloc(s->n_feasible, sizeof *sorted);
    if (!sorted)
        return as_fail_nomem(err);
    size_t n = sort_costs(s, sorted), before = n;
    as_status st = judge_bad(s, sorted, n, err);
    if (st < 0)
        return st;
    if (s->n_feasible != before)
        n = sort_costs(s, sorted);
    if (!s->spec->is_exact)
        judge_good(s, sorted, n);
    if (s->n_feasible != before)
        find_best(s);
    return AS_OK;
}
