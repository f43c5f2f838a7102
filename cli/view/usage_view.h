/* What a trial used of its machine, for people (TrialUsage of the API). */
#ifndef ASSAY_CLI_VIEW_USAGE_VIEW_H
#define ASSAY_CLI_VIEW_USAGE_VIEW_H

#include <jansson.h>

#include "cli/view/pairs.h"

/* Add a row of figures and one with the processor over time, for the attempt or for each of its
 * first ranks. No rows when usage is NULL or has no items. */
void usage_view_rows(struct pairs *p, const json_t *usage);

#endif
