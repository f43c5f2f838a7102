/* An ensemble as text and table: its metric, the metric of the best single model on the same rows,
 * its members. */
#ifndef ASSAY_CLI_VIEW_ENSEMBLE_VIEW_H
#define ASSAY_CLI_VIEW_ENSEMBLE_VIEW_H

#include <jansson.h>

#include "base/status.h"
#include "cli/view/terminal.h"
#include "cli/view/text_table.h"

/* Append lines with the metrics of the best single model and of the ensemble, the interval of their
 * difference, which of them is recommended, and how they were measured. If there is no ensemble,
 * append the reason. */
void ensemble_view_summary(const json_t *ensemble, const struct terminal *terminal, struct str *b);

/* A row per member: trial, weight, how often it was chosen, its own metric, parameters. Owned by
 * the caller. */
AS_MUST_CHECK as_status ensemble_view_members(const json_t *ensemble,
                                              const struct terminal *terminal, struct table **ret,
                                              struct as_err *err);

/* A row per ensemble that was asked for: number, method, size, metric, its value and the best
 * single trial's, the gain with its interval, whether that is noise, which of them is recommended.
 * Owned by the caller. */
AS_MUST_CHECK as_status ensemble_view_list(const json_t *items, const struct terminal *terminal,
                                           struct table **ret, struct as_err *err);

#endif
