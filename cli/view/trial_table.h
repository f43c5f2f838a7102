/* Tables of trials, for several verbs. */
#ifndef ASSAY_CLI_VIEW_TRIAL_TABLE_H
#define ASSAY_CLI_VIEW_TRIAL_TABLE_H

#include <jansson.h>

#include "base/status.h"
#include "cli/view/terminal.h"
#include "cli/view/text_table.h"
#include "cli/view/trial_facts.h"

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

/* The same for rows that come in pieces (table_format_head()): the columns follow from the facts of
 * all trials; in a pipe, those of the sweep's document are enough. `terminal` is borrowed until
 * trial_table_free(). AS_E_NOMEM. Both are owned by the caller. */
struct trial_table;
AS_MUST_CHECK as_status trial_table_begin(const struct trial_facts *f, trial_table_kind kind,
                                          const json_t *sweep, const struct terminal *terminal,
                                          struct trial_table **ret, struct table **ret_table,
                                          struct as_err *err);
void trial_table_free(struct trial_table *l);
AS_DEFINE_FREEP(struct trial_table, trial_table_free)
void trial_table_add(struct trial_table *l, struct table *t, const json_t *items);

/* The names of all members of the objects at `field` of the items, in order of appearance: an array
 * of strings, owned by the caller; NULL when memory is out. */
json_t *trial_table_names(const json_t *items, const char *field);

#endif
