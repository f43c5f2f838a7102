/* How well the ranks at each rung agree with the ranks at the end, measured on trials that ran in
 * full without having been compared.
 *
 * A trial that was compared and went on says less: only those that looked good are left, and their
 * ranks agree less than those of all. So `min_steps: auto` lets some trials run in full
 * (agreement_is_control()), and trials that were compared are left out. The measure is Kendall's
 * tau: the share of pairs in the same order at both rungs, less the share in opposite order. */
#ifndef ASSAY_SEARCH_STOPPING_AGREEMENT_H
#define ASSAY_SEARCH_STOPPING_AGREEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/stopping/standings.h"
#include "search/stopping/stop_spec.h"

#define AGREEMENT_EVERY 8   /* one trial in so many runs in full, the first one included */
#define AGREEMENT_ENOUGH 2  /* complete runs, before anything is known */
#define AGREEMENT_OPEN 1024 /* runs that are not complete; failed ones never will be */
#define AGREEMENT_LATEST 64 /* complete runs that are looked at */
/* Before the first pair is seen a rung is taken for one with this tau, as if so many pairs had
 * shown it: most rungs of most trainings agree, and waiting can be undone. */
#define AGREEMENT_PRIOR_TAU 0.7
#define AGREEMENT_PRIOR_PAIRS 3
#define AGREEMENT_LEAST_TAU 0.5

struct full_run; /* agreement.c */

/* Zeroed, with the two numbers set: nothing is known. */
struct agreement {
    size_t n_metrics, n_rungs;
    struct full_run *runs; /* in order of their first result; of those that are not complete, the
                              latest AGREEMENT_OPEN */
    size_t n, cap;
    size_t n_complete;
    double tau[STOP_RUNGS_MAX]; /* of each rung with the last one, with the prior pairs */
};
void agreement_done(struct agreement *a);

/* Does this trial run in full whatever its ranks are? */
bool agreement_is_control(uint64_t number);

/* A result of a trial that was compared at no rung so far. AS_E_NOMEM. */
AS_MUST_CHECK as_status agreement_add(struct agreement *a, uint32_t rung,
                                      const struct standing *row, struct as_err *err);
/* The trial was compared. */
void agreement_drop(struct agreement *a, uint64_t number);

/* Are there enough complete runs to say anything? */
bool agreement_is_known(const struct agreement *a);

/* The lowest rung from which on, at every rung, the ranks agree with those at the end: the last
 * rung if none does. */
uint32_t agreement_first_rung(const struct agreement *a);

#endif
