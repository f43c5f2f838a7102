/* What the strategy of a sweep's ranks may cost in loss: the cases of docs/distributed.md in which
 * it was measured to end above plain training with the same samples. */
#ifndef ASSAY_CLI_FILES_STRATEGY_NOTE_H
#define ASSAY_CLI_FILES_STRATEGY_NOTE_H

#include <jansson.h>

#include "base/str.h"

/* Appends a line without its end, or nothing: no ranks, another strategy, or one that depends on a
 * parameter.
 *   document  of a sweep, as the server has accepted it; borrowed */
void strategy_note(const json_t *document, struct str *ret);

#endif
