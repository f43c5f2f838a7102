/* What the files that parse a space share. */
#ifndef ASSAY_SEARCH_SPACE_SPACE_PRIV_H
#define ASSAY_SEARCH_SPACE_SPACE_PRIV_H

#include "search/space/space.h"

/* Is `name` in the document's `parameters` (NULL: no name is), but at fault and therefore not in
 * the space? What refers to it cannot be checked. */
bool space_lacks(const struct space *s, const json_t *parameters, const char *name);

#endif
