/* The environment of a trial's process: the runner's own, less what would mislead a training script
 * (the variables of batch systems, MPI and torchrun that the runner itself was started under) and
 * less the runner's credentials. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_CHILD_ENV_H
#define ASSAY_TRIAL_RUNNER_AGENT_CHILD_ENV_H

#include "base/mem.h"
#include "base/status.h"

struct child_env {
    char **v; /* n "NAME=value" and a NULL; owned */
    size_t n, cap;
};

/* A scrubbed copy of `base` (as environ), with PYTHONUNBUFFERED=1, and OMP_NUM_THREADS and
 * OPENBLAS_NUM_THREADS 1 where base does not set them (several trials share the machine). e must be
 * zeroed. AS_E_NOMEM. */
AS_MUST_CHECK as_status child_env_init(struct child_env *e, char *const *base, struct as_err *err);
void child_env_done(struct child_env *e);

/* Add or replace. AS_E_INVAL when the name is empty or holds '='; AS_E_NOMEM. */
AS_MUST_CHECK as_status child_env_set(struct child_env *e, const char *name, const char *value,
                                      struct as_err *err);
void child_env_unset(struct child_env *e, const char *name);

/* ASSAY_THREADS for the built-in trainer, where it is not set: the CPUs that this process may use,
 * shared by the slots; at least 1. AS_E_NOMEM. */
AS_MUST_CHECK as_status child_env_set_threads(struct child_env *e, int64_t slots,
                                              struct as_err *err);
const char *child_env_get(const struct child_env *e, const char *name); /* a view, or NULL */

#endif
