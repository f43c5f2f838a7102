/* The rule by which trials of a new sweep hold out rows. */
#ifndef ASSAY_SCHEDULER_SWEEP_SPLIT_RULE_H
#define ASSAY_SCHEDULER_SWEEP_SPLIT_RULE_H

#include <jansson.h>

#include "base/status.h"

/* Write `split: stratified` into /trial/train/validation of a document that somebody sent, unless
 * the document chooses a rule or a column itself or has no such place. Only a new sweep is changed:
 * a stored document without a rule means `random`, the rule of its time, so that its trials hold
 * out the same rows before and after an upgrade.
 *   doc  borrowed, not changed
 *   ret  a new reference, which may be `doc` itself
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status split_rule_choose(const json_t *doc, json_t **ret, struct as_err *err);

#endif
