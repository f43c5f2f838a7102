/* The judgement of a trial that reports success: does it have the values that its sweep requires,
 * and do they lie within the outcome constraints? */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_FEASIBILITY_H
#define ASSAY_SCHEDULER_LIFECYCLE_FEASIBILITY_H

#include "base/arena.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"
#include "scheduler/lifecycle/transition.h"
#include "search/suggest.h"

struct feasibility {
    const char *missing; /* a metric that is missing or not finite; NULL: there is none */
    bool was_measured;   /* that metric was measured and is not finite: */
    double value;
    bool feasible; /* only if nothing is missing */
};

#define METRICS_MAX (SEARCH_MAX_OBJECTIVES + SEARCH_MAX_OUTCOMES)

/* The metrics that a sweep requires: the objectives, then the constrained metrics. */
struct required_metrics {
    const char *names[METRICS_MAX]; /* in the arena */
    size_t n, n_objectives;
    double min[SEARCH_MAX_OUTCOMES], max[SEARCH_MAX_OUTCOMES];
};

/* Pure. AS_E_INTERNAL: what is stored cannot be read. */
AS_MUST_CHECK as_status required_metrics_of(struct arena *a, const struct sweep_head *s,
                                            struct required_metrics *ret, struct as_err *err);

/* Judge the latest values of the required metrics. Pure. */
struct feasibility feasibility_of(const struct required_metrics *w, const double *values,
                                  const bool *has);

/* What a reported success, or trial_timeout, does to a trial with that judgement: as trial_judge()
 * and trial_judge_timeout(). Pure. */
AS_MUST_CHECK as_status trial_judged(struct arena *a, const struct trial_head *x,
                                     const struct feasibility *v, struct trial_change *ret,
                                     struct as_err *err);
AS_MUST_CHECK as_status trial_judged_timeout(struct arena *a, const struct feasibility *v,
                                             struct trial_change *ret, struct as_err *err);

/* Judge the trial by its latest measurements. `x` is the current row. One query if the sweep has
 * several objectives or constraints, none otherwise. */
AS_MUST_CHECK as_status trial_feasibility(struct tx *t, struct arena *a, const struct sweep_head *s,
                                          const struct trial_head *x, struct feasibility *ret,
                                          struct as_err *err);

/* What a reported success does to the trial: it completes, or fails for a value that is not finite.
 * Sets event, outcome, reason and feasible of `ret`. AS_E_UNSUPPORTED with pointer (/metrics/NAME):
 * a metric was never reported. */
AS_MUST_CHECK as_status trial_judge(struct tx *t, struct arena *a, const struct sweep_head *s,
                                    const struct trial_head *x, struct trial_change *ret,
                                    struct as_err *err);

/* What trial_timeout does to the trial: by limits.on_timeout it fails, or completes with the values
 * that it reported, if every required value is there and finite. Sets event, feasible and, where
 * the caller gave none, reason of `ret`; the outcome of the attempt is the caller's. */
AS_MUST_CHECK as_status trial_judge_timeout(struct tx *t, struct arena *a,
                                            const struct sweep_head *s, const struct trial_head *x,
                                            struct trial_change *ret, struct as_err *err);

#endif
