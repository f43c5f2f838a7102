/* What a search has learned of the parameters of a sweep, for people: which numbers have no effect
 * under which values of choices, and the `when` that would declare it. */
#ifndef ASSAY_SEARCH_LEARNED_H
#define ASSAY_SEARCH_LEARNED_H

#include <jansson.h>

/* From the reason of a suggestion (suggest.h) and the `parameters` of the sweep's document, both
 * borrowed: [{"parameter", "no_effect": [{"where": {choice: value}, "trials"}], "when": {choice:
 * [values]}}], in the order of the reason. `when` can be pasted as it is. It names the values that
 * are left; it is absent where none is, because such a number has no effect at all.
 * A new reference, empty if nothing was learned; NULL: out of memory. */
json_t *learned_of_reason(const json_t *reason, const json_t *parameters);

#endif
