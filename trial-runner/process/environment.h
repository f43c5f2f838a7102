/* The environment of a user's program: fields of `trial` that say where its interpreter, libraries
 * and variables come from (docs/trials.md). Errors name the field, and what this machine lacks. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_ENVIRONMENT_H
#define ASSAY_TRIAL_RUNNER_PROCESS_ENVIRONMENT_H

#include <jansson.h>

#include "trial-runner/process/child.h"

/* What the fields are read with. */
struct environment {
    const json_t *trial; /* the section of the document, each ${name} in it replaced */
    const char *folder;  /* what relative paths are below; NULL: the runner's own folder */
    const char *host;    /* the id of this machine (base/host_id.h); "": unknown */
};

/* Set the variables that `trial.environment`, `trial.env_file` and `trial.venv` stand for, in this
 * order. The variables of `environment` are set, or removed, only if it comes from this machine;
 * *ret_foreign: it comes from another. AS_E_INVAL: the file is at fault, with its line;
 * AS_E_NOT_FOUND: the file, or the venv's bin/python, is not there; AS_E_IO; AS_E_NOMEM. */
AS_MUST_CHECK as_status environment_set(const struct environment *s, struct child_env *e,
                                        bool *ret_foreign, struct as_err *err);

/* Let a shell load `trial.modules` before it becomes the program of spec->argv. Does nothing
 * without modules. AS_E_NOMEM. */
AS_MUST_CHECK as_status environment_load_modules(const struct environment *s,
                                                 struct child_spec *spec, struct as_err *err);

#endif
