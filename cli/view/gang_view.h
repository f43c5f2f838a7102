/* The ranks of an attempt (Gang of the API) as rows. */
#ifndef ASSAY_CLI_VIEW_GANG_VIEW_H
#define ASSAY_CLI_VIEW_GANG_VIEW_H

#include <jansson.h>

#include "cli/view/pairs.h"

#define GANG_VIEW_SEATS 16 /* rows of members, and of seats that were lost or left */

/* Add a row about all ranks, then one for each member of the current world, and one for each seat
 * that is no member any more, the last ones first. Past GANG_VIEW_SEATS of a kind one row says how
 * many there are. No rows when gang is NULL or null. */
void gang_view_rows(struct pairs *p, const json_t *gang);

#endif
