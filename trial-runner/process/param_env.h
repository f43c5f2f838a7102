/* The parameters of a trial as environment variables: ASSAY_PARAM_lr is the value of `lr`. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_PARAM_ENV_H
#define ASSAY_TRIAL_RUNNER_PROCESS_PARAM_ENV_H

#include <jansson.h>

#include "trial-runner/process/child_env.h"

#define PARAM_ENV_VALUE_MAX 65536     /* bytes; the kernel takes twice as many */
#define PARAM_ENV_TOTAL_MAX (1 << 18) /* of all names and values */

/* Set a variable for each active parameter, as param_name_variable() names it; its value is what
 * ${name} would be in the command. When several parameters would have one variable, the one whose
 * own name is the variable's rest has it, and the others have none; if there is no such one, none
 * of them has it. That depends on the document alone, not on which parameters are active. A value
 * above PARAM_ENV_VALUE_MAX, or one that comes after PARAM_ENV_TOTAL_MAX bytes, is left out:
 * ASSAY_PARAMS has all of them.
 *   params    the active parameters and their values
 *   inactive  the names of the others; NULL: none
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status param_env_set(struct child_env *e, const json_t *params,
                                      const json_t *inactive, struct as_err *err);

#endif
