/* Snapshots of a training with cycles: the weights at the ends of its last cycles, whose mean
 * prediction is the model's. G. Huang, Y. Li, G. Pleiss, Z. Liu, J. Hopcroft, K. Weinberger,
 * "Snapshot ensembles: train 1, get M for free", ICLR 2017.
 *
 * The copies lie in the host's memory, as those of `patience` do (best.h). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_SNAPSHOTS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_SNAPSHOTS_H

#include "trial-runner/train/lockstep.h"

/* The epochs of the member in a slot have just become m->epoch: keep its weights if a cycle that
 * counts ended with them. AS_E_NOMEM. */
AS_MUST_CHECK as_status snapshots_take(struct lockstep *ls, size_t slot, struct as_err *err);

struct evaluation;

/* After the last epoch: compute the mean prediction of the held-out rows, and its metrics.
 *   ret    as of evaluate_predict(); owned by the caller; NULL when the member keeps no snapshots
 *   ret_e  its metrics; untouched when *ret is NULL
 * The slot has the last weights again. AS_E_NOMEM. */
AS_MUST_CHECK as_status snapshots_finish(struct lockstep *ls, struct backend *lane, size_t slot,
                                         float **ret, struct evaluation *ret_e, struct as_err *err);

#endif
