/* A user's program in a container (`trial.container`): the engine's command line, and what makes
 * sure that no container outlives its attempt. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_CONTAINER_H
#define ASSAY_TRIAL_RUNNER_PROCESS_CONTAINER_H

#include <jansson.h>
#include <stdbool.h>

#include "trial-runner/process/child.h"

#define CONTAINER_NAME_SIZE 128

struct container_run {
    const json_t *container; /* trial.container: {image, engine, options}, names replaced */
    const char *engine;      /* "podman" or "apptainer" */
    const char *name;        /* the container's */
    const char *folder;      /* working directory; "/" is not mounted */
    const char *attempt;     /* the attempt's folder */
    const char *cache;       /* of data sets, mounted for reading; NULL: there is none */
    const char *gpus;        /* UUIDs with commas between them; "": none */
    bool is_rank; /* other machines reach its ports: podman gives it the network of the machine,
                   * unless `options` name one; apptainer does so always */
};

/* The engine of a container: the one that it names, else podman, else apptainer, whichever is in
 * the PATH of e. AS_E_NOT_FOUND names the field. */
AS_MUST_CHECK as_status container_engine(const json_t *container, const struct child_env *e,
                                         const char **ret, struct as_err *err);

/* A name that no other attempt of this machine has; `attempt` is the attempt's folder. */
void container_name(const char *attempt, char ret[CONTAINER_NAME_SIZE]);

/* Make the command line of a program and its variables those of the engine.
 *   r     borrowed
 *   spec  argv is the program; env has the variables of the program alone, and no others of the
 *         runner. Afterwards argv is the engine's, and env the engine's environment
 *   base  the runner's environment, as environ
 * The program's folder, its attempt's folder and the cache are mounted at the same paths.
 * podman's command line shows only the names of the variables, but for those that the engine itself
 * would follow (PATH, HOME, …). AS_E_INVAL: a path that is mounted contains : or ,; AS_E_NOMEM. */
AS_MUST_CHECK as_status container_wrap(const struct container_run *r, struct child_spec *spec,
                                       char *const *base, struct as_err *err);

/* The wait status that a program would have had without its engine, which exits with 128 + signal
 * when a signal ended the program. */
int container_wait_status(int wait_status);

/* Start a process that removes the container of an attempt's folder from podman, by force, when
 * *ret_fd is closed, also by the death of this process, and then ends. Call it in the main thread.
 * *ret_fd: owned by the caller. AS_E_IO. */
AS_MUST_CHECK as_status container_guard(const char *attempt, char *const *base, int *ret_fd,
                                        struct as_err *err);

#endif
