/* What a trial that says that it is done is worth: does it have the values that its sweep asks for,
 * and do they lie within the outcome constraints? */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_FEASIBILITY_H
#define ASSAY_SCHEDULER_LIFECYCLE_FEASIBILITY_H

#include "base/arena.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"

struct feasibility {
    const char *missing; /* the metric that is not there or not finite; NULL: none is */
    bool was_measured;   /* it is there, and not finite: */
    double value;
    bool feasible; /* when nothing is missing */
};

/* Judge the trial by its latest measurements. `x` is as the row is now. One query where the sweep
 * has several objectives or constraints, none otherwise. */
AS_MUST_CHECK as_status trial_feasibility(struct tx *t, struct arena *a, const struct sweep_head *s,
                                          const struct trial_head *x, struct feasibility *ret,
                                          struct as_err *err);

#endif
