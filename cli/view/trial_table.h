/* Tables of trials, for several verbs. */
#ifndef ASSAY_CLI_VIEW_TRIAL_TABLE_H
#define ASSAY_CLI_VIEW_TRIAL_TABLE_H

#include <jansson.h>

#include "base/status.h"
#include "cli/view/terminal.h"
#include "cli/view/table.h"

typedef enum trial_table_kind {
    TRIAL_TABLE_ALL,   /* number, state, values, feasible, step, duration, parameters, reason */
    TRIAL_TABLE_BEST,  /* rank, number, values, duration, parameters */
    TRIAL_TABLE_FRONT, /* as BEST without rank: no trial of a front is better than another */
} trial_table_kind;

/* A table of `items`, which are trials of `sweep` (a Sweep of the API with its document). It has a
 * column for each parameter in the order of the document; on a terminal only for parameters that
 * some trial has. It has a column for each objective and each constrained metric. If the sweep has
 * constraints, the column "feasible" shows whether a trial keeps them. AS_E_NOMEM. Owned by the
 * caller. */
AS_MUST_CHECK as_status trial_table_create(const json_t *items, trial_table_kind kind,
                                           const json_t *sweep, const struct terminal *terminal,
                                           struct table **ret, struct as_err *err);

/* The names of the parameters of `sweep` in the order of its document, followed by those that only
 * the items have. The result is as of trial_table_names(). */
json_t *trial_table_params(const json_t *items, const json_t *sweep);

/* The names of all members of the objects at `field` of the items, in order of appearance: an array
 * of strings, owned by the caller; NULL when memory is out. */
json_t *trial_table_names(const json_t *items, const char *field);

#endif
