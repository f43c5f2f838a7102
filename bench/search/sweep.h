/* One simulated sweep on a problem: a method suggests, the problem returns values, and the best is
 * recorded.
 *
 * With q slots, q trials are always running. Each takes a time drawn by (seed, trial) from exp(N(0,
 * 0.5^2)), so that results arrive out of order, but in the same order in every run. A suggestion
 * sees the trials that ended before it. */
#ifndef ASSAY_BENCH_SEARCH_SWEEP_H
#define ASSAY_BENCH_SEARCH_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "bench/search/problems.h"

struct search_spec;
struct history;

/* Called when a trial has ended, with all that were suggested and the regret so far. */
typedef as_status sweep_ended_fn(void *ctx, const struct search_spec *spec,
                                 const struct history *history, double regret, struct as_err *err);

/* What a sweep found. The caller owns the arrays, which hold one number for each trial. */
struct sweep_record {
    double *regret; /* by the place in which trials ended: value of the best trial so far minus the
                       optimum. The best trial is the one that the sweep shows (search/incumbent.h):
                       that of the lowest observed value, unless values are noisy. Its value is
                       taken without noise. INFINITY while none succeeded */
    double *ms;     /* the time of the suggestion of trial i, by number */
    size_t failed;  /* trials */
    size_t late, failed_late; /* trials that were suggested after the tenth failure had ended, and
                                 how many of them failed */
    sweep_ended_fn *on_ended; /* set by the caller; NULL: none */
    void *ctx;
};

/* Run `trials` trials. A finite space that is exhausted keeps its last regret, with 0 ms. Errors
 * are those of the method. */
AS_MUST_CHECK as_status sweep_run(const struct problem *p, const char *method, uint64_t seed,
                                  size_t slots, size_t trials, struct sweep_record *ret,
                                  struct as_err *err);

#endif
