/* One message as a line of JSON, for all protocols of this folder. */
#ifndef ASSAY_TRIAL_RUNNER_PROTOCOL_LINE_H
#define ASSAY_TRIAL_RUNNER_PROTOCOL_LINE_H

#include <jansson.h>
#include <stddef.h>

#include "base/json.h"
#include "base/str.h"

#define LINE_MAX_BYTES ((size_t)1 << 20) /* without the newline; in both directions */

/* Parse one line, without its newline, and read what kind of message it is.
 *   field     the name of the field that says so; `words` are its values, ended by NULL
 *   ret_doc   a new reference, also of a message whose field is wrong
 *   ret       the fields of *ret_doc; lasts as long as that
 *   ret_kind  the index of the word
 * AS_E_INVAL, AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status line_parse(const char *line, size_t len, const char *field,
                                   const char *const *words, json_t **ret_doc,
                                   struct json_fields *ret, int *ret_kind, struct as_err *err);

/* Append a tree as one line with its newline. Takes the tree; NULL counts as out of memory, so that
 * callers need not check the result of json_pack. AS_E_NOMEM; AS_E_TOO_LARGE: then nothing is
 * appended. */
AS_MUST_CHECK as_status line_append(json_t *tree, struct str *out, struct as_err *err);

#endif
