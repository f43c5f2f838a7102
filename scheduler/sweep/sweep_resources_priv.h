/* The section `resources` of a sweep document, and `priority`. */
#ifndef ASSAY_SCHEDULER_SWEEP_SWEEP_RESOURCES_PRIV_H
#define ASSAY_SCHEDULER_SWEEP_SWEEP_RESOURCES_PRIV_H

#include <jansson.h>

#include "base/json.h"
#include "base/status.h"
#include "scheduler/sweep/sweep_doc.h"

/* Is `trial` given, but so wrong that its kind is not known? Then nothing is said about fields that
 * depend on it. */
bool sweep_trial_is_unclear(const struct json_fields *doc, const struct sweep_doc *d);

/* Parse both into d, whose `trial` is parsed. AS_E_INVAL, AS_E_UNSUPPORTED: the field of the
 * pointer. Faults are noted in doc->faults if it is not NULL. */
AS_MUST_CHECK as_status sweep_resources_parse(struct json_fields *doc, struct sweep_doc *d,
                                              struct as_err *err);

/* With how many ranks a configuration runs. The space and the ranks of d are right. */
int64_t sweep_resources_ranks(const struct sweep_doc *d, const struct config *c);

/* Add the canonical fields to `j`. Returns 0, or -1 when memory is out. */
int sweep_resources_to_json(const struct sweep_doc *d, json_t *j);

#endif
