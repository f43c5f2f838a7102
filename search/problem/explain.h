/* The words that methods have in common for their reasons: parts of a sentence, made of the fields
 * of a reason (docs/search.md). A field that is absent adds nothing. */
#ifndef ASSAY_SEARCH_PROBLEM_EXPLAIN_H
#define ASSAY_SEARCH_PROBLEM_EXPLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* A field as a text (NULL: it is none), and as a whole number (0: it is none). */
const char *explain_text(const json_t *reason, const char *field);
int64_t explain_count(const json_t *reason, const char *field);

/* Append `before` and a number (6 significant digits; NaN and the infinities are texts in JSON). */
void explain_number(const json_t *number, const char *before, struct str *b);

/* Append "point 3 of the initial design, …", or why there was no model. */
void explain_design(const json_t *reason, struct str *b);

/* Append ", with the priors at weight 0.83". */
void explain_prior(const json_t *reason, struct str *b);

/* Append "; 40 results seen, 1 failed, 3 pending". */
void explain_seen(const json_t *reason, struct str *b);

#endif
