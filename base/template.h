/* ${name} in a trial's command or train document.
 *
 *   ${name}            the parameter's value
 *   ${name:-default}   the same, or the default while the parameter is inactive or null. It may be
 *                      a reference, too, up to eight in one another: ${rounds:-${trees:-100}}
 *   ${name?text}       the text if the parameter is true; nothing if it is false or inactive
 *   ${file:path}       the path of a file that the trial writes (trial.files)
 *   ${args:style}      all active parameters, as arguments of a command (command_line.h)
 *   ${trial_dir}       the folder for the output of a command's trial (trial_template.h)
 *   $${                a literal ${
 * In a JSON tree, a string that is exactly one reference becomes the typed value: a number stays a
 * number, and a default is read as a scalar of YAML's core schema. Inside a longer string, and
 * everywhere in text (command arguments, environment), the value is written as text: numbers in the
 * shortest form that reads back the same, true, false, null, lists as compact JSON. Object keys are
 * not changed. A default that is no reference, or a text, ends at the first }.
 *
 * A reference without a value (an inactive parameter without a default, or ${name?text} of one that
 * is not true): a field or list element of a tree that consists of this reference alone is left
 * out. Inside a longer string, or in text, the reference becomes empty. */
#ifndef ASSAY_BASE_TEMPLATE_H
#define ASSAY_BASE_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

#define TEMPLATE_PATH_MAX 255 /* bytes of the path in ${file:path} */

typedef enum template_form {
    TEMPLATE_VALUE,   /* ${name} */
    TEMPLATE_DEFAULT, /* ${name:-default} */
    TEMPLATE_WHEN,    /* ${name?text} */
    TEMPLATE_FILE,    /* ${file:path} */
    TEMPLATE_ARGS     /* ${args:style} */
} template_form;

/* One reference in a string; views of the string and of the caller's memory. */
struct template_ref {
    template_form form;
    const char *name; /* of the parameter; "file:path" and "args" for the last two forms */
    const char *text; /* the default, the text or the style; not terminated */
    size_t text_len;
    bool is_alone; /* the string is this reference and nothing else */
};

/* Call fn for each reference in the strings of a tree (a string, list or object) that is at
 * `pointer` in its document, until it fails. AS_E_INVAL, with the pointer of the string: a
 * reference that is not well formed, or what fn returned. */
typedef as_status template_visit_fn(void *arg, const struct template_ref *ref, struct as_err *err);
AS_MUST_CHECK as_status template_visit(const json_t *tree, const char *pointer,
                                       template_visit_fn *fn, void *arg, struct as_err *err);

/* Is `name` a parameter, active or not, or "file:path" of a file that the trial writes? */
typedef bool template_known_fn(const void *arg, const char *name);

/* The path in a name "file:path"; NULL if it is a parameter's name. A view of `name`. */
const char *template_file_path(const char *name);

/* Say what ${file:path} stands for: add {"file:path": text} to the names that texts are applied
 * with. AS_E_NOMEM. */
AS_MUST_CHECK as_status template_name_file(json_t *names, const char *path, const char *text,
                                           struct as_err *err);

/* Check every string of a tree (a string, list or object) that is at `pointer` in its document.
 * AS_E_INVAL, with the pointer of the string: a reference that is not closed, a name that no
 * parameter has (param_name.h), ${args:…}, or a name for which known() returns false. */
AS_MUST_CHECK as_status template_check(const json_t *tree, const char *pointer,
                                       template_known_fn *known, const void *arg,
                                       struct as_err *err);

/* The distinct parameters that a tree refers to, in order of first use: a new reference to a list
 * of strings. AS_E_INVAL as template_visit; AS_E_NOMEM. */
AS_MUST_CHECK as_status template_names(const json_t *tree, json_t **ret, struct as_err *err);

/* A copy of the tree with every reference replaced. `params` is {name: value} of the active
 * parameters and {"file:path": where it is} of the files; a name that is not in it counts as
 * inactive (template_check has refused names that do not exist). If the whole tree is one inactive
 * reference, *ret is JSON's null. New reference. AS_E_INVAL: a reference that is not well
 * formed; AS_E_NOMEM. */
AS_MUST_CHECK as_status template_apply(const json_t *tree, const json_t *params, json_t **ret,
                                       struct as_err *err);

/* One command argument or environment value. Owned by the caller (free). Errors as template_apply.
 */
AS_MUST_CHECK as_status template_apply_text(const char *text, const json_t *params, char **ret,
                                            struct as_err *err);

#endif
