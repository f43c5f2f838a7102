/* The metrics of a sweep: `metric` or `metrics`, and `constraints`. */
#ifndef ASSAY_SCHEDULER_SWEEP_SWEEP_METRICS_PRIV_H
#define ASSAY_SCHEDULER_SWEEP_SWEEP_METRICS_PRIV_H

#include <jansson.h>

#include "base/json.h"
#include "base/status.h"
#include "scheduler/sweep/sweep_doc.h"

/* Parse the three fields of `doc` into d. sweep_metrics_done() frees them, also after an error.
 * AS_E_INVAL, AS_E_TOO_LARGE, AS_E_NOMEM. Faults are noted in doc->faults if it is not NULL, and d
 * lacks what was at fault. */
AS_MUST_CHECK as_status sweep_metrics_parse(struct json_fields *doc, struct sweep_doc *d,
                                            struct as_err *err);
void sweep_metrics_done(struct sweep_doc *d);

/* Add the canonical fields to `j`. Returns 0, or -1 when memory is out. */
int sweep_metrics_to_json(const struct sweep_doc *d, json_t *j);

#endif
