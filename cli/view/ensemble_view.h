/* What is said about an ensemble: its figure, the best single model's on the same rows, its
 * members. */
#ifndef ASSAY_CLI_VIEW_ENSEMBLE_VIEW_H
#define ASSAY_CLI_VIEW_ENSEMBLE_VIEW_H

#include <jansson.h>

#include "base/status.h"
#include "cli/view/terminal.h"
#include "cli/view/table.h"

/* Append the figures as lines: the ensemble, the best single model, and which rows they come from.
 * An error rate is shown as accuracy, too. Why there is none, when there is none. */
void ensemble_view_summary(const json_t *ensemble, const struct terminal *terminal, struct str *b);

/* A row per member: trial, weight, how often chosen, its own figure, parameters. Owned by the
 * caller. */
AS_MUST_CHECK as_status ensemble_view_members(const json_t *ensemble,
                                              const struct terminal *terminal, struct table **ret,
                                              struct as_err *err);

#endif
