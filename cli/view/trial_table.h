/* Tables of trials, and the rows of name and value that show one thing: what several verbs print.
 */
#ifndef ASSAY_CLI_VIEW_TRIAL_TABLE_H
#define ASSAY_CLI_VIEW_TRIAL_TABLE_H

#include <jansson.h>

#include "base/status.h"
#include "cli/view/terminal.h"
#include "cli/view/table.h"

typedef enum trial_table_kind {
    TRIAL_TABLE_ALL,   /* number, state, values, feasible, step, duration, parameters, reason */
    TRIAL_TABLE_BEST,  /* rank, number, values, duration, parameters */
    TRIAL_TABLE_FRONT, /* the same without rank: no trial of a front is better than another */
} trial_table_kind;

/* A table of `items`, trials of `sweep` (of the API, with its document), with a column for each
 * parameter in the order of the document; on a terminal only for those that some trial has. There
 * is a column for each objective and each constrained metric, headed by its name, and where the
 * sweep has constraints one that says whether the trial keeps them. AS_E_NOMEM. Owned by the
 * caller.
 */
AS_MUST_CHECK as_status trial_table_create(const json_t *items, trial_table_kind kind,
                                           const json_t *sweep, const struct terminal *terminal,
                                           struct table **ret, struct as_err *err);

/* The names of the parameters of `sweep` in the order of its document, then those that only the
 * items have: as trial_table_names(). */
json_t *trial_table_params(const json_t *items, const json_t *sweep);

/* The names of all members of the objects at `field` of the items, in order of appearance: an array
 * of strings, owned by the caller; NULL when memory is out. */
json_t *trial_table_names(const json_t *items, const char *field);

#endif
