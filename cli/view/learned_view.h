/* What a search has learned of the parameters of a sweep, for people. */
#ifndef ASSAY_CLI_VIEW_LEARNED_VIEW_H
#define ASSAY_CLI_VIEW_LEARNED_VIEW_H

#include <jansson.h>

#include "cli/view/pairs.h"

/* Two rows for each parameter of `learned` of a sweep (NULL: none): where it has no effect, and the
 * `when` to paste, which is JSON and so YAML, too. */
void learned_view_pairs(const json_t *learned, struct pairs *p);

#endif
