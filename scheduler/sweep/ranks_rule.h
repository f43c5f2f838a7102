/* `resources: {ranks: {min: A, max: B}}` of a new sweep. */
#ifndef ASSAY_SCHEDULER_SWEEP_RANKS_RULE_H
#define ASSAY_SCHEDULER_SWEEP_RANKS_RULE_H

#include <jansson.h>

#include "base/status.h"

/* Write /resources/ranks of a document that somebody sent as a parameter: /parameters/ranks is the
 * range, and /resources/ranks becomes ${ranks}. So the search, tables and files have the number of
 * ranks as they have every parameter.
 *   doc  borrowed, not changed
 *   ret  a new reference, which may be `doc` itself
 * AS_E_INVAL at /resources/ranks or below it: other fields than min, max, scale and step, a bound
 * that is not 1 to SWEEP_MAX_RANKS, min above max, or there is a parameter `ranks`. AS_E_NOMEM. */
AS_MUST_CHECK as_status ranks_rule_apply(const json_t *doc, json_t **ret, struct as_err *err);

#endif
