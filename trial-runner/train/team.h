/* This process as one rank of a large trial: where it listens, which world it is in, and the
 * collective operations of that world.
 *
 * A thread reads the runner's lines (protocol/ranks.h), because the trainer's thread may be inside
 * an operation that only a new world ends. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_TEAM_H
#define ASSAY_TRIAL_RUNNER_TRAIN_TEAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "trial-runner/collective/collective.h"

struct team;

struct team_opts {
    int64_t silence_ms; /* a rank that shows no life so long is lost; 0: 5,000 */
    int64_t join_ms;    /* a rank of a new world that has not connected by then is; 0: 10,000 */
};

/* Listens on `address`. The runner is told the endpoint by the first team_meet().
 *   fd     the socket to the runner; borrowed
 *   stop   set when the runner asks this rank to stop or is gone; also read here: who else sets it
 *          (a signal handler) stops the rank. Borrowed
 *   ret    owned by the caller, team_free()
 * AS_E_INVAL: no numeric address. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status team_create(int fd, const char *address, const struct team_opts *opts,
                                    atomic_bool *stop, struct team **ret, struct as_err *err);
void team_free(struct team *t);
AS_DEFINE_FREEP(struct team, team_free)

/* The collective operations of the current world, or NULL: then team_meet(). */
struct coll *team_coll(const struct team *t);

/* Waits for the next world and connects to its ranks; tries further worlds if that fails. The first
 * call reports the endpoint to the runner, after which worlds hold this rank and their ranks wait
 * for it: so it comes when this rank has loaded its data and can begin.
 *   encrypt   what travels to other hosts (trial.train.distributed.encrypt); equal on all ranks
 * AS_E_UNAVAILABLE: the rank is to stop, or the runner is gone. */
AS_MUST_CHECK as_status team_meet(struct team *t, bool encrypt, struct as_err *err);
/* Reports to the runner that this rank has joined its world, at a step of the optimizer. */
void team_joined(struct team *t, int64_t step);
/* Reports how far this rank is, at most once a second. A call costs a look at the clock.
 *   step_ns  the mean time of its steps; 0: none yet */
void team_progress(struct team *t, int64_t step, int64_t step_ns);
/* The same at the end of the training, whenever the last report was. */
void team_progress_last(struct team *t, int64_t step, int64_t step_ns);
/* All ranks, when rank 0 has the trial's files complete. Who is through the first of three barriers
 * knows that they are; through the second, that all know; nobody ends before all are there but for
 * another world. A loss after the first barrier changes nothing for ranks from 1 on: they have
 * nothing left to do. Rank 0, which alone can tell those that do not know, leaves when all know.
 *   position  equal on all
 * AS_E_UNAVAILABLE: a rank was lost before; another world follows. */
AS_MUST_CHECK as_status team_leave_together(struct team *t, uint64_t position, struct as_err *err);
/* An operation failed with AS_E_UNAVAILABLE: closes the connections. Who is lost has been reported
 * when it was noticed. */
void team_part(struct team *t);

/* Bytes that this rank has sent, in all worlds. */
uint64_t team_bytes_sent(const struct team *t);

bool team_stop_asked(const struct team *t);

#endif
