/* Statistics of methods on problems at one number of trials: quartiles, mean ranks, ratios, wins.
 *
 * A *cell* is (problem, seed): it counts when every method has a trace of it that is long enough.
 * Regret below 1e-7 of the problem's scale counts as that floor, so that irrelevant digits have no
 * effect. A sweep without a success counts as 10 scales. Intervals are 95 % bootstrap percentiles:
 * problems are drawn with replacement, then seeds within each. */
#ifndef ASSAY_BENCH_SEARCH_RANKING_H
#define ASSAY_BENCH_SEARCH_RANKING_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "bench/search/problems.h"
#include "bench/search/traces.h"

#define RANKING_FLOOR 1e-7
#define RANKING_WINSOR 100.0 /* a winsorised ratio of one problem lies within 1/100 and 100 */
#define RANKING_MAX_METHODS 12

struct ranked_method {
    const char *label; /* in reports: "gp", "gp:8" */
    const char *name;
    size_t slots;
};

struct ranking_spec {
    struct problem *const *problems;
    size_t n_problems;
    const struct ranked_method *methods; /* at most RANKING_MAX_METHODS */
    size_t n_methods;
    const struct traces *traces;
    uint64_t first_seed;
    size_t seeds;
};

struct interval {
    double value, low, high;
};

struct ranking;

/* `spec` is borrowed and must outlive the ranking. AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status ranking_create(const struct ranking_spec *spec, size_t trials,
                                       struct ranking **ret, struct as_err *err);
void ranking_free(struct ranking *r);
AS_DEFINE_FREEP(struct ranking, ranking_free)

/* seeds that count; 0: not compared */
size_t ranking_seeds(const struct ranking *r, size_t problem);
size_t ranking_problems(const struct ranking *r); /* with at least one seed */

/* Regret's quartiles of one method on one problem with a seed that counts: value is the median, low
 * and high are the other two. The floor is not applied. */
struct interval ranking_regret(const struct ranking *r, size_t problem, size_t method);

/* Mean rank, 1 is best; ties share a rank. Averaged over seeds, then over problems. */
struct interval ranking_mean_rank(const struct ranking *r, size_t method);

/* Geometric mean over problems of (geometric mean over seeds of a's regret) / (of b's). */
struct interval ranking_ratio(const struct ranking *r, size_t a, size_t b, bool winsorised);

/* Is a's median regret below (-1), above (1) or the same as (0) b's, with the floor? */
int ranking_compare(const struct ranking *r, size_t problem, size_t a, size_t b);

/* The number of problems on which a's median regret is below b's, and on which they are equal. */
void ranking_wins(const struct ranking *r, size_t a, size_t b, size_t *ret_wins, size_t *ret_ties);

#endif
