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

/* Does it take part, as far as is known? */
static bool counts(const struct doubt_rows *s, size_t i)
{
    return s->feasible[i] && !s->dropped[i];
}

/* The costs of the trials that take part, ascending; returns how many. */
static size_t sort_costs(const struct doubt_rows *s, double *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (counts(s, i))
            ret[n++] = s->costs[i];
    qsort(ret, n, sizeof *ret, as_order_f64);
    return n;
}

/* One of them must take part. */
static size_t find_best(const struct doubt_rows *s)
{
    size_t best = s->n;
    for (size_t i = 0; i < s->n; i++)
        if (counts(s, i) && (best == s->n || s->costs[i] < s->costs[best]))
            best = i;
    return best;
}

/* ---- bad values ---- */

/* Do the values above this come anywhere: not in one region, and where others are, too? */
static as_status ask_scatter(const struct doubt_rows *s, double above, bool *ret,
                             struct as_err *err)
{
    size_t n_real = s->columns->n_real, n_cat = s->columns->n_cat, n = 0;
    AS_AUTO(as_freep) double *x = as_calloc(s->n, n_real * sizeof *x);
    AS_AUTO(as_freep) int32_t *z = as_calloc(s->n, n_cat * sizeof *z);
    AS_AUTO(as_freep) bool *marked = as_calloc(s->n, sizeof *marked);
    if (!x || !z || !marked)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->n; i++) {
        if (!counts(s, i))
            continue;
        memcpy(x + n * n_real, s->x + i * n_real, n_real * sizeof *x);
        memcpy(z + n * n_cat, s->z + i * n_cat, n_cat * sizeof *z);
        marked[n++] = s->costs[i] > above;
    }
    const struct gp_rows rows = {n, x, z, NULL, NULL};
    *ret =
        !scatter_is_local(s->columns, &rows, marked) && scatter_is_amid(s->columns, &rows, marked);
    return AS_OK;
}

/* sorted: the *n costs of the trials that take part; both are left true. */
static as_status judge_bad(const struct doubt_rows *s, double *sorted, size_t *n,
                           struct as_err *err)
{
    size_t g = apart_highest(sorted, *n);
    bool is_anywhere = false;
    if (g < BAD_LEAST)
        return AS_OK;
    double above = sorted[*n - g - 1];
    as_status st = ask_scatter(s, above, &is_anywhere, err);
    for (size_t i = 0; i < s->n && st == AS_OK && is_anywhere; i++)
        s->dropped[i] = counts(s, i) && s->costs[i] > above;
    *n = sort_costs(s, sorted);
    return st;
}

/* ---- good values ---- */

/* What the repeats say of the trials whose costs are below a boundary. */
struct answers {
    double confirmed; /* the highest cost of a trial that was confirmed; -INFINITY: none */
    double refuted;   /* the highest cost of one that was refuted; -INFINITY: none */
};

/* What the other trials of trial i's configuration say. */
static void ask_repeats(const struct doubt_rows *s, size_t i, double boundary, struct answers *ret)
{
    for (size_t j = 0; j < s->n; j++) {
        if (j == i || s->state[j] != OBSERVED_COMPLETED || s->dropped[j] ||
            !config_equal(s->space, s->trials[i].config, s->trials[j].config))
            continue;
        if (s->costs[j] < boundary)
            ret->confirmed = fmax(ret->confirmed, fmax(s->costs[i], s->costs[j]));
        else
            ret->refuted = fmax(ret->refuted, s->costs[i]);
    }
}

/* May the best trial be measured once more? Not while that is under way, nor if it failed often. */
static bool may_be_repeated(const struct doubt_rows *s)
{
    size_t failed = 0, best = find_best(s);
    for (size_t j = 0; j < s->n; j++) {
        if (j == best || !config_equal(s->space, s->trials[best].config, s->trials[j].config))
            continue;
        if (s->state[j] == OBSERVED_PENDING)
            return false;
        failed += s->state[j] == OBSERVED_FAILED || s->dropped[j];
    }
    return failed < ATTEMPTS;
}

/* sorted: the n costs of the trials that take part. True: the best one is in doubt. */
static bool judge_good(const struct doubt_rows *s, double *sorted, size_t n)
{
    double known = INFINITY;
    for (;;) {
        size_t g = apart_lowest(sorted, n, known);
        if (!g)
            return false;
        double boundary = sorted[g];
        struct answers a = {-INFINITY, -INFINITY};
        for (size_t i = 0; i < s->n; i++)
            if (counts(s, i) && s->costs[i] < boundary)
                ask_repeats(s, i, boundary, &a);
        if (isfinite(a.confirmed)) {
            known = a.confirmed;
            continue;
        }
        if (!isfinite(a.refuted))
            return may_be_repeated(s);
        double half_way = a.refuted / 2 + boundary / 2;
        for (size_t i = 0; i < s->n; i++)
            s->dropped[i] |= s->feasible[i] && s->costs[i] < half_way;
        n = sort_costs(s, sorted);
    }
}

as_status doubt_judge(const struct doubt_rows *s, bool *ret_in_doubt, struct as_err *err)
{
    AS_AUTO(as_freep) double *sorted = as_calloc(s->n, sizeof *sorted);
    if (!sorted)
        return as_fail_nomem(err);
    size_t n = sort_costs(s, sorted);
    as_status st = judge_bad(s, sorted, &n, err);
    if (st < 0)
        return st;
    *ret_in_doubt = !s->is_exact && judge_good(s, sorted, n);
    return AS_OK;
}
