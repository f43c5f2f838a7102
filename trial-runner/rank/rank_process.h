/* The process of a rank, and the lines to it (trial-runner/protocol/ranks.h). The main thread alone
 * calls these. */
#ifndef ASSAY_TRIAL_RUNNER_RANK_RANK_PROCESS_H
#define ASSAY_TRIAL_RUNNER_RANK_RANK_PROCESS_H

#include "trial-runner/attempt/attempt.h"

/* Start the process of a rank that is ready: with a socket as its descriptor 0 (elastic), or with
 * the GPUs of all ranks of its gang on this runner, so that LOCAL_RANK counts them (fixed). A rank
 * that is held gets none.
 *   all  the attempts of this runner, n of them; borrowed
 * Errors as child_spawn. */
AS_MUST_CHECK as_status rank_process_start(struct attempt *t, struct attempt *const *all, size_t n,
                                           struct as_err *err);

/* Read what the process says, and write what it has to be told. A process that breaks the protocol
 * is killed. */
void rank_process_talk(struct attempt *t, struct attempt *const *all, size_t n);

/* Stop the process of an elastic rank if that is due. A rank that leaves is still needed until the
 * others have a world without it; else it is killed at once, because a signal to end would stop the
 * others too (the wish to stop is part of a step). */
void rank_process_stop_if_due(struct attempt *t);

/* Do what is due for a rank in phase running: talk with its process; a rank without one (launch:
 * first) ends when it is asked to. */
void rank_process_look(struct attempt *t, struct attempt *const *all, size_t n);

/* The process has ended and was reaped. */
void rank_process_ended(struct attempt *t);

#endif
