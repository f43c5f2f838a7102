/* Tables of trials, and the rows of name and value that show one thing: what several verbs print.
 */
#ifndef ASSAY_CLI_TRIAL_TABLE_H
#define ASSAY_CLI_TRIAL_TABLE_H

#include <jansson.h>

#include "base/status.h"
#include "cli/look.h"
#include "cli/table.h"

typedef enum trial_table_kind {
    TRIAL_TABLE_ALL,  /* number, state, value, step, duration, parameters, reason */
    TRIAL_TABLE_BEST, /* rank, number, value, duration, parameters */
} trial_table_kind;

/* A table of `items` (trials of the API) with a column for each parameter, in the order in which
 * they appear. `metric` heads the column of the value. AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status trial_table_create(const json_t *items, trial_table_kind kind,
                                           const char *metric, const struct look *look,
                                           struct table **ret, struct as_err *err);

/* The names of all members of the objects at `field` of the items, in order of appearance: an array
 * of strings, owned by the caller; NULL when memory is out. */
json_t *trial_table_names(const json_t *items, const char *field);

#endif
