/* Files of environment variables ("dotenv"): one NAME=VALUE on a line.
 *
 *   # a comment, and empty lines
 *   NAME=value              to the end of the line, or to " #"; blanks at its ends do not count
 *   export NAME='value'     as it is, up to the next '; may span lines
 *   NAME="value"            the same up to the next ", with \n \t \r \" \\ \$; may span lines
 *
 * Nothing is substituted: $HOME stays $HOME. The last line of a name counts. Lines may end with
 * CR LF. */
#ifndef ASSAY_BASE_ENV_FILE_H
#define ASSAY_BASE_ENV_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* [A-Za-z_][A-Za-z0-9_]* */
bool env_name_valid(const char *name);

/* Called for each variable, in the file's order; both texts are borrowed for the call. What it
 * fails with gets the line before its message. */
typedef as_status env_file_fn(void *arg, const char *name, const char *value, struct as_err *err);

/* Read `len` bytes. AS_E_INVAL "line 3: …": what is there is no variable, a quote is not closed, or
 * a byte is 0. No message contains a value, which may be a secret. AS_E_NOMEM; what fn fails
 * with. */
AS_MUST_CHECK as_status env_file_parse(const char *text, size_t len, env_file_fn *fn, void *arg,
                                       struct as_err *err);

#endif
