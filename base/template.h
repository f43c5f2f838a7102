/* ${name} in a trial's command or train document.
 *
 *   ${name}            the parameter's value
 *   ${name:-default}   the same, or the default while the parameter is inactive
 *   $${                a literal ${
 * In a JSON tree, a string that is exactly one reference becomes the typed value: a number stays a
 * number, and a default is read as a scalar of YAML's core schema. Inside a longer string, and
 * everywhere in text (command arguments, environment), the value is written as text: numbers in the
 * shortest form that reads back the same, true, false. Object keys are not changed. A default ends
 * at the first }.
 *
 * An inactive parameter without a default: a field or list element of a tree that consists of this
 * reference alone is left out. Inside a longer string, or in text, the reference becomes empty. */
#ifndef ASSAY_BASE_TEMPLATE_H
#define ASSAY_BASE_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

/* Is `name` a parameter, active or not? */
typedef bool template_known_fn(const void *arg, const char *name);

/* Check every string of a tree (a string, list or object) that is at `pointer` in its document.
 * AS_E_INVAL, with the pointer of the string: a reference that is not closed, a name that is not
 * [A-Za-z_][A-Za-z0-9_.-]{0,62}, or a name for which known() returns false. */
AS_MUST_CHECK as_status template_check(const json_t *tree, const char *pointer,
                                       template_known_fn *known, const void *arg,
                                       struct as_err *err);

/* The distinct names that a tree refers to, in order of first use: a new reference to a list of
 * strings. AS_E_INVAL as template_check; AS_E_NOMEM. */
AS_MUST_CHECK as_status template_names(const json_t *tree, json_t **ret, struct as_err *err);

/* A copy of the tree with every reference replaced. `params` is {name: value} of the active
 * parameters; a name that is not in it counts as inactive (template_check has refused names that do
 * not exist). If the whole tree is one inactive reference, *ret is JSON's null. New reference.
 * AS_E_INVAL: a reference that is not well formed; AS_E_NOMEM. */
AS_MUST_CHECK as_status template_apply(const json_t *tree, const json_t *params, json_t **ret,
                                       struct as_err *err);

/* One command argument or environment value. Owned by the caller (free). Errors as template_apply.
 */
AS_MUST_CHECK as_status template_apply_text(const char *text, const json_t *params, char **ret,
                                            struct as_err *err);

#endif
