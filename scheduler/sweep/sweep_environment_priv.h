/* The environment of a program: the fields environment, venv, env_file, modules and container of
 * `trial`, which say where its interpreter, its libraries and its variables come from
 * (docs/trials.md). */
#ifndef ASSAY_SCHEDULER_SWEEP_SWEEP_ENVIRONMENT_PRIV_H
#define ASSAY_SCHEDULER_SWEEP_SWEEP_ENVIRONMENT_PRIV_H

#include "scheduler/sweep/sweep_trial_priv.h"

/* Take these fields of `trial` as they were given. *ret: an object, a new reference; NULL when
 * there are none. AS_E_NOMEM. */
AS_MUST_CHECK as_status sweep_environment_read(struct json_fields *f, json_t **ret,
                                               struct as_err *err);

/* Check what was read. *ret: the same in canonical form (a container is an object with its image),
 * a new reference. AS_E_INVAL and AS_E_TOO_LARGE with the field's pointer; faults are noted in
 * r->faults. AS_E_NOMEM. */
AS_MUST_CHECK as_status sweep_environment_parse(const struct trial_reader *r, const json_t *given,
                                                json_t **ret, struct as_err *err);

#endif
