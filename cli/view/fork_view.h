/* Forks for people (early_stopping: pbt): the tree of a sweep, and the parent and the forks of a
 * trial. */
#ifndef ASSAY_CLI_VIEW_FORK_VIEW_H
#define ASSAY_CLI_VIEW_FORK_VIEW_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/view/pairs.h"

#define FORK_ROWS_MAX 60      /* of a tree; the others are counted */
#define FORK_TRIALS_MAX 20000 /* that are looked at */

/* Can the trials of this sweep be forks? */
bool fork_view_forks(const json_t *sweep);

/* Add a row for each of the trials (Trial of the API, by number) that was forked and each fork,
 * below its parent: its number, the step where it goes on, the parameters that are not its
 * parent's, its value and state. AS_E_NOMEM. */
AS_MUST_CHECK as_status fork_view_tree(struct pairs *p, const json_t *trials, struct as_err *err);

/* Add what the trial (TrialDetail of the API) goes on from, and which trials go on from it. */
void fork_view_trial(struct pairs *p, const json_t *trial);

#endif
