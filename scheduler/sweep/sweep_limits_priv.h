/* The section `limits` of a sweep document, for sweep_doc.c. */
#ifndef ASSAY_SCHEDULER_SWEEP_SWEEP_LIMITS_PRIV_H
#define ASSAY_SCHEDULER_SWEEP_SWEEP_LIMITS_PRIV_H

#include "base/json.h"
#include "scheduler/sweep/sweep_doc.h"

/* What holds where a document says nothing. */
extern const struct sweep_limits sweep_limits_default;

/* Read the fields, each by itself, and refuse unknown ones. *l has the defaults. */
AS_MUST_CHECK as_status sweep_limits_read(struct json_fields *f, struct sweep_limits *l,
                                          struct as_err *err);

/* What the limits mean beside each other, the metrics and the space. AS_E_INVAL with pointer: a
 * target or stop_when beside several metrics, stop_when where no parameter has two values, or
 * on_timeout: keep without trial_timeout. */
AS_MUST_CHECK as_status sweep_limits_check(const struct sweep_doc *d, struct as_err *err);
/* The same for max_steps; stops: the document has early_stopping. */
AS_MUST_CHECK as_status sweep_limits_check_steps(const struct sweep_doc *d, bool stops,
                                                 struct as_err *err);

/* The limits with every default written out. New reference; NULL when memory is out. */
json_t *sweep_limits_to_json(const struct sweep_limits *l);

#endif
