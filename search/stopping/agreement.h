/* How well the ranks at each rung agree with the ranks at the end, measured on trials that ran to
 * the end.
 *
 * The measure is Kendall's tau: the share of pairs in the same order at both rungs, less the share
 * in opposite order. Two trials that were compared on their way say little: only those that looked
 * good are left, and their ranks agree less than those of all. So `min_steps: auto` lets some
 * trials run in full (agreement_is_control()), and at least one trial of a pair has not been
 * compared. The other one may have been: whether a trial that went on for its rank ends better than
 * one that was not chosen is what the ranks are asked for (decision 4035). */
#ifndef ASSAY_SEARCH_STOPPING_AGREEMENT_H
#define ASSAY_SEARCH_STOPPING_AGREEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/stopping/standings.h"
#include "search/stopping/stop_spec.h"

#define AGREEMENT_EVERY 24  /* one trial in so many runs in full, the first one included */
#define AGREEMENT_SECOND 12 /* and this one, so that there is soon a second one */
#define AGREEMENT_ENOUGH 2  /* trials that ran to the end, before anything is known */
#define AGREEMENT_LATEST 64 /* trials that are looked at */
/* Before the first pair is seen a rung is taken for one with this tau, as if so many pairs had
 * shown it: most rungs of most trainings agree, and waiting can be undone. */
#define AGREEMENT_PRIOR_TAU 0.7
#define AGREEMENT_PRIOR_PAIRS 3
#define AGREEMENT_LEAST_TAU 0.5

/* A trial that ran to the end. */
struct agreement_run {
    uint32_t reached; /* a bit for each rung with a result; the last one's is set */
    bool is_compared; /* at some rung */
    struct standing rows[STOP_RUNGS_MAX];
};

/* Zeroed, with the two numbers set: nothing is known. */
struct agreement {
    size_t n_metrics, n_rungs;
    struct agreement_run *runs; /* the latest AGREEMENT_LATEST, in a ring */
    size_t n, cap, next;
    bool has_uncompared;        /* at least one of all runs was not compared */
    double tau[STOP_RUNGS_MAX]; /* of each rung with the last one, with the prior pairs */
};
void agreement_done(struct agreement *a);

/* Does this trial run in full whatever its ranks are? */
bool agreement_is_control(uint64_t number);

/* A trial has reached the last rung; `run` is copied. AS_E_NOMEM. */
AS_MUST_CHECK as_status agreement_add(struct agreement *a, const struct agreement_run *run,
                                      struct as_err *err);

/* Are there enough runs to say anything? */
bool agreement_is_known(const struct agreement *a);

/* The lowest rung from which on, at every rung, the ranks agree with those at the end: the last
 * rung if none does. */
uint32_t agreement_first_rung(const struct agreement *a);

#endif
