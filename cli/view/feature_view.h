/* What a model of trees makes of its columns (the artifact importance.json of a trial) as rows. */
#ifndef ASSAY_CLI_VIEW_FEATURE_VIEW_H
#define ASSAY_CLI_VIEW_FEATURE_VIEW_H

#include <jansson.h>

#include "cli/view/pairs.h"

#define FEATURE_VIEW_FILE "importance.json"
#define FEATURE_VIEW_MAX_BYTES (8 << 20) /* of a file that is shown */
#define FEATURE_VIEW_ROWS 20             /* on a terminal */

/* Is it what the built-in trainer writes: {"columns": [{"column": text, "share": number, …}]}? A
 * program may leave a file of this name with other content. */
bool feature_view_knows(const json_t *importance);

/* Add a row "importance.COLUMN" with the column's share of the whole gain for each column, in their
 * order; on a terminal at most FEATURE_VIEW_ROWS, and one that says how many more there are. No
 * rows when importance is NULL. */
void feature_view_rows(struct pairs *p, const json_t *importance);

#endif
