/* Runs a lockstep: steps, and at the end of an epoch reports, checkpoints and artifacts. Locksteps
 * run side by side in lanes; they share struct watch with the main thread. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_RUN_H
#define ASSAY_TRIAL_RUNNER_TRAIN_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "trial-runner/train/lockstep.h"
#include "trial-runner/train/shared_step.h"

struct watch {
    const atomic_bool *stop;   /* every member is to stop */
    int fd;                    /* the socket to the runner; -1: none */
    int64_t checkpoint_ns;     /* least time between two checkpoints at epoch ends */
    atomic_bool meet;          /* locksteps must return: the main thread has work */
    _Atomic int64_t looked_ns; /* when a lockstep last looked at fd */
    _Atomic uint64_t rows;     /* rows trained on, over all members */
    void (*started)(void *arg, const struct member *m); /* called in the lockstep's thread, once for
                                                         * each member, after its first step */
    void *arg;
    struct shared_step *shared; /* this process is a rank of a large trial; NULL: it trains alone */
};

/* Run ls for one turn. The turn ends when some milliseconds and an epoch are over, when w->meet is
 * set, or when all members have ended. A member that ends (member_end) stays in its slot, and
 * w->meet is set, so that the caller takes it out. An error is an error of the device and concerns
 * all members. */
AS_MUST_CHECK as_status run_lockstep(struct lockstep *ls, struct backend *lane, struct watch *w,
                                     struct as_err *err);

/* Write a checkpoint if the member has a path for it. A full disk, or no memory for a copy, is a
 * warning on stderr and not an error: the previous checkpoint is still there, and the next one may
 * find room. Other errors are errors of the device. */
AS_MUST_CHECK as_status run_save(struct lockstep *ls, size_t slot, struct as_err *err);

struct evaluation;

/* Write a report of the member, with the metrics that its document has. It becomes m->last_report.
 *   best_step  of a last report: the step that its values are of; 0: it is no such report
 * AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status run_report(struct member *m, int64_t step, double mean_loss, double lr,
                                   const struct evaluation *e, int64_t best_step,
                                   struct as_err *err);

/* The value by which `patience` judges a report; NaN: it has none. */
double run_judged(const struct member *m, double mean_loss, const struct evaluation *e);

#endif
