/* The section `early_stopping` of a sweep document, for sweep_doc.c and sweep_trial.c. */
#ifndef ASSAY_SCHEDULER_SWEEP_SWEEP_STOPPING_PRIV_H
#define ASSAY_SCHEDULER_SWEEP_SWEEP_STOPPING_PRIV_H

#include <jansson.h>

#include "base/json.h"
#include "base/status.h"
#include "model/document/train_spec.h"
#include "scheduler/sweep/sweep_doc.h"

/* Parse `early_stopping` of `doc` into d->stopping, after the metrics and the trial. Metrics or a
 * trial at fault: only its fields are read. Errors as stop_spec_parse(); AS_E_INVAL also for a
 * pause of a command that leaves no checkpoints. Faults are noted in doc->faults. */
AS_MUST_CHECK as_status sweep_stopping_parse(struct json_fields *doc, struct sweep_doc *d,
                                             struct as_err *err);

/* Check that a trial of this train document reports at every rung. AS_E_INVAL with the pointer of
 * the field that prevents it, in the train document or in early_stopping. */
AS_MUST_CHECK as_status sweep_stopping_check_train(const struct sweep_doc *d,
                                                   const struct train_spec *spec,
                                                   struct as_err *err);

/* The canonical section; d->stopping.method is not STOP_NONE. New reference; NULL when memory is
 * out. */
json_t *sweep_stopping_to_json(const struct sweep_doc *d);

#endif
