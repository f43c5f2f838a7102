/* One message as a line of JSON, for all protocols of this folder. */
#ifndef ASSAY_TRIAL_RUNNER_PROTOCOL_LINE_H
#define ASSAY_TRIAL_RUNNER_PROTOCOL_LINE_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"
#include "base/str.h"

#define LINE_MAX_BYTES ((size_t)1 << 20) /* without the newline; in both directions */

/* Parse one line, without its newline. ret is a new reference. AS_E_INVAL, AS_E_TOO_LARGE,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status line_parse(const char *line, size_t len, json_t **ret, struct as_err *err);

/* Append a tree as one line with its newline. Takes the tree; NULL counts as out of memory, so that
 * callers need not check the result of json_pack. AS_E_NOMEM; AS_E_TOO_LARGE: then nothing is
 * appended. */
AS_MUST_CHECK as_status line_append(json_t *tree, struct str *out, struct as_err *err);

#endif
