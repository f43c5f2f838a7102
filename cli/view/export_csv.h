/* Trials as CSV: a row for each trial, a column for each parameter of the sweep and for each metric
 * that any of the trials has. */
#ifndef ASSAY_CLI_VIEW_EXPORT_CSV_H
#define ASSAY_CLI_VIEW_EXPORT_CSV_H

#include <jansson.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/view/trial_facts.h"

/* Append the line of headers, or a line per trial of `items`. `f` has the facts of all trials. The
 * columns: number, state, value, attempt, restarts, param.NAME… (in the order of the sweep's
 * document), metric.NAME…, runner, reason, created_at, started_at, finished_at, client, origin,
 * feasible, index, seen, finish_seq, shape, group. The cell of an absent field is empty. Numbers
 * read back exactly. AS_E_NOMEM. */
AS_MUST_CHECK as_status export_csv_head(const struct trial_facts *f, struct str *b,
                                        struct as_err *err);
AS_MUST_CHECK as_status export_csv_rows(const struct trial_facts *f, const json_t *items,
                                        struct str *b, struct as_err *err);

#endif
