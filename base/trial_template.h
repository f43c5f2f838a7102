/* `trial` of a sweep document as one trial runs it: each ${name} in it (template.h, command_line.h)
 * replaced. Pure: it reads and writes no files. */
#ifndef ASSAY_BASE_TRIAL_TEMPLATE_H
#define ASSAY_BASE_TRIAL_TEMPLATE_H

#include <jansson.h>

#include "base/status.h"

/* ${trial_dir} in the texts of a command's trial: the folder for its output. A parameter of this
 * name hides it. */
#define TRIAL_DIR_NAME "trial_dir"

/* What is replaced; all borrowed. */
struct trial_values {
    const json_t *params;   /* {name: value} of the active parameters */
    const json_t *inactive; /* the names of the others, a list; NULL: none */
    const char *files;      /* the folder that trial.files are in; NULL: not known, and
                               ${file:path} stays as it is */
    const char *trial_dir;  /* what ${trial_dir} stands for; NULL: it stays as it is */
};

/* *ret: a new reference to the object with
 *   train                                    its references replaced
 *   command                                  a list of texts, the arguments
 *   env, files                               {name: text}
 *   directory, venv, env_file, container     their references replaced
 *   report                                   the same for the paths of its sources
 * where `trial` has them; other fields are as they were. AS_E_INVAL names the field: a reference
 * that is not well formed, or a value that is no text; AS_E_TOO_LARGE as command_line_expand;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status trial_template_apply(const json_t *trial, const struct trial_values *values,
                                             json_t **ret, struct as_err *err);

#endif
