/* The names of parameters: one rule for documents, expressions, references, tables and the CLI. A
 * name has what people write in Optuna, Hydra and W&B: optimizer/lr, model.width, layers[0],
 * learning rate, β. What a name must not have ends it somewhere: = in arguments (--lr=0.1), a comma
 * in lists of columns, : ? and braces in references (${lr:-0.1}), a backquote in expressions.
 * Quotes and the signs of a shell are left out, because names stand in messages and commands. A
 * digit is not first: an expression reads a number there. api/openapi.yaml (ParameterName) says the
 * same. */
#ifndef ASSAY_BASE_PARAM_NAME_H
#define ASSAY_BASE_PARAM_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define PARAM_NAME_MAX 63                     /* characters */
#define PARAM_NAME_BYTES (4 * PARAM_NAME_MAX) /* of UTF-8 */
#define PARAM_NAME_RULE                                                                            \
    "a letter or _, then letters, digits, _ . - / @ ( ) [ ] and single blanks inside, at most 63 " \
    "characters"

/* Is it a name of a parameter? Letters are those of every alphabet: each character beyond ASCII
 * that can be seen. */
bool param_name_valid(const char *name);

/* How many of the bytes at s may stand in a name. What they make may yet be none. */
size_t param_name_span(const char *s);

/* May it stand in an expression without backquotes? So may letters, digits, _ . - and /; the other
 * characters mean something there. */
bool param_name_is_bare(const char *name);

/* The environment variable of a parameter: ASSAY_PARAM_ and the name, with _ for each character
 * that is no letter or digit. Nothing is added for a name with characters beyond ASCII, which has
 * no variable. */
#define PARAM_VARIABLE_PREFIX "ASSAY_PARAM_"
void param_name_variable(const char *name, struct str *ret);

#endif
