/* The reason for the parameters of a trial, in words. docs/search.md lists the fields. */
#ifndef ASSAY_CLI_VIEW_REASON_H
#define ASSAY_CLI_VIEW_REASON_H

#include <jansson.h>

#include "base/str.h"

/* Append a sentence for the `suggestion` of a trial of the API, such as
 *   chosen by upper confidence bound: predicted 0.031 ± 0.004; the best so far was trial 12 with
 *   0.034; 40 results seen, 3 pending
 * Appends nothing when there is no suggestion, and only the name of a method that it does not know.
 * `metrics` are the objectives of the sweep ([{name, goal}]), NULL when they are unknown. */
void reason_words(const json_t *suggestion, const json_t *metrics, struct str *b);

#endif
