/* `ensemble: {method: bucketing, by: COLUMN}` of a new sweep. */
#ifndef ASSAY_SCHEDULER_SWEEP_BUCKETS_RULE_H
#define ASSAY_SCHEDULER_SWEEP_BUCKETS_RULE_H

#include <jansson.h>

#include "base/status.h"

/* Move /ensemble/by of a document that somebody sent to /trial/train/buckets: the trials have to
 * leave the values of the column while they run, and the stored document says only that.
 *   doc  borrowed, not changed
 *   ret  a new reference, which may be `doc` itself
 * AS_E_INVAL at /ensemble/by: no text, another method, no trial of the built-in trainer, or
 * /trial/train/buckets is another column. AS_E_NOMEM. */
AS_MUST_CHECK as_status buckets_rule_apply(const json_t *doc, json_t **ret, struct as_err *err);

#endif
