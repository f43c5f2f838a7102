/* The environment of a trial's process: the runner's own without what is the service's
 * (base/private_env.h), and without variables that would mislead a training script (those of the
 * batch system, MPI or torchrun that started the runner). What the document sets in trial.env is
 * added later, and is not touched. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_CHILD_ENV_H
#define ASSAY_TRIAL_RUNNER_PROCESS_CHILD_ENV_H

#include "base/mem.h"
#include "base/status.h"

struct child_env {
    char **v; /* n "NAME=value" and a NULL; owned */
    size_t n, cap;
};

/* Make a scrubbed copy of `base` (as environ) with PYTHONUNBUFFERED=1. e must be zeroed.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status child_env_init(struct child_env *e, char *const *base, struct as_err *err);
void child_env_done(struct child_env *e);

/* Add or replace a variable. AS_E_INVAL: the name is empty or holds '='; AS_E_NOMEM. */
AS_MUST_CHECK as_status child_env_set(struct child_env *e, const char *name, const char *value,
                                      struct as_err *err);
void child_env_unset(struct child_env *e, const char *name);

/* Set the variables that say how many threads a program uses, unless they are set.
 *   cpus   cores of the trial: so many threads, for the built-in trainer (ASSAY_THREADS) and for
 *          the libraries (OMP_NUM_THREADS and those of OpenBLAS, MKL and NumExpr). 0: the trial did
 *          not say; then libraries use one, because several trials share the machine, and the
 *          trainer the number of CPUs that this process may use divided by the slots, at least 1
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status child_env_set_threads(struct child_env *e, int64_t cpus, int64_t slots,
                                              struct as_err *err);
const char *child_env_get(const struct child_env *e, const char *name); /* a view, or NULL */

#endif
