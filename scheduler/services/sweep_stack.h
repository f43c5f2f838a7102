/* The trials that a new document names in trial.train.stack: its own trials see their predictions.
 */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_STACK_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_STACK_H

#include "base/arena.h"
#include "base/json.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/sweep_doc.h"

/* Are they completed trials of the same data set, with folds, which left a model and predictions?
 * All that is not so is noted in `faults`. AS_E_INVAL with the pointer: the first; errors of the
 * store. */
AS_MUST_CHECK as_status sweep_check_stack(struct tx *t, struct arena *a,
                                          const struct sweep_doc *doc, struct faults *faults,
                                          struct as_err *err);

#endif
