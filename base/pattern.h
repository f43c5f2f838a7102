/* Regular expressions that a user wrote, with named groups: PCRE2 with limits, so that no pattern
 * and no text hangs the program.
 *
 * A group is (?P<name>…) or (?<name>…). A name may stand several times, in alternatives. Text is
 * UTF-8; a byte that is not only ends the text there: nothing matches across it. One pattern
 * belongs to one thread at a time. */
#ifndef ASSAY_BASE_PATTERN_H
#define ASSAY_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"

#define PATTERN_MAX_BYTES 4096  /* of the pattern's text */
#define PATTERN_MAX_STEPS 50000 /* of one match, as PCRE2 counts them: about a millisecond */

struct pattern;

/* Compile a pattern.
 *   ret         owned by the caller, free with pattern_free()
 *   ret_offset  may be NULL; of AS_E_INVAL: the byte of the pattern where the fault is
 * AS_E_INVAL: PCRE2's message with the offset; AS_E_TOO_LARGE: past PATTERN_MAX_BYTES;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status pattern_compile(const char *text, struct pattern **ret, size_t *ret_offset,
                                        struct as_err *err);
void pattern_free(struct pattern *p);
AS_DEFINE_FREEP(struct pattern, pattern_free)

/* The distinct names of its groups, sorted; views of p. */
size_t pattern_n_names(const struct pattern *p);
const char *pattern_name(const struct pattern *p, size_t i);

/* Does it match somewhere in the text? *ret_found is set on AS_OK. AS_E_TOO_LARGE: the limit of
 * steps or of memory was reached, and nothing is known. */
AS_MUST_CHECK as_status pattern_match(struct pattern *p, const char *text, size_t len,
                                      bool *ret_found, struct as_err *err);

/* What the i-th name stands for in the last match that was found: a view of its text. False: the
 * group took no part in the match. */
bool pattern_group(const struct pattern *p, size_t i, const char **ret, size_t *ret_len);

/* The characters with which every match begins, as far as the text of the pattern says so, without
 * leading blanks; "" if it begins with something else. A view of p. */
const char *pattern_literal(const struct pattern *p);

#endif
