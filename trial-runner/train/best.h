/* The best report of a member so far, and the weights that it was made with: for `patience`.
 *
 * The copy lies in the host's memory: it is made when a report is better, which is seldom, and the
 * device has no room to spare. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_BEST_H
#define ASSAY_TRIAL_RUNNER_TRAIN_BEST_H

#include <stdbool.h>

#include "base/status.h"
#include "trial-runner/train/lockstep.h"

/* The member in a slot has reported `value` in m->last_report: keep its weights if none was better.
 * NaN is never better. Without `patience` nothing happens. AS_E_NOMEM. */
AS_MUST_CHECK as_status best_consider(struct lockstep *ls, size_t slot, double value,
                                      struct as_err *err);

/* Have as many reports as `patience` says gone by since the best one? */
bool best_is_past(const struct member *m);

/* Put the best weights into the slot, and make m->last_report the final report: the values of the
 * best one, one step after the last, with "best_step". Without `patience` nothing happens.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status best_restore(struct lockstep *ls, size_t slot, struct as_err *err);

#endif
