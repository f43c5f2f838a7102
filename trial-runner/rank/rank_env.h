/* What a rank of a user's own program sees of its gang: the environment that torchrun gives, and a
 * hostfile for mpirun. Pure. */
#ifndef ASSAY_TRIAL_RUNNER_RANK_RANK_ENV_H
#define ASSAY_TRIAL_RUNNER_RANK_RANK_ENV_H

#include "base/str.h"
#include "trial-runner/attempt/attempt_id.h"
#include "trial-runner/process/child_env.h"
#include "trial-runner/rank/rank_world.h"

/* In the endpoint of a member: before the port of its rendezvous, if it has one. */
#define RANK_ENV_MEET "rendezvous="

/* Set the variables of the member with id->seat.
 *   hostfile  path of the file that rank_env_hostfile() fills; borrowed
 *   launched  the program is a launcher, which gives its processes Horovod's variables itself
 * A node, in torchrun's sense, is a runner: LOCAL_RANK counts the gang's ranks of one runner, and
 * GROUP_RANK the runners, both in the order of ranks. AS_E_INVAL: the seat is no member, or rank 0
 * has no address and port; AS_E_NOMEM. */
AS_MUST_CHECK as_status rank_env_set(struct child_env *e, const struct rank_world *w,
                                     const struct attempt_id *id, const char *hostfile,
                                     bool launched, struct as_err *err);

/* Append a line "HOST slots=N" for each host, in the order of ranks. A member without the name of
 * its host counts by its address. */
void rank_env_hostfile(const struct rank_world *w, struct str *ret);

#endif
