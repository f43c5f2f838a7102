/* What ranks compare when they meet in a new world: where each is, and of which job. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_RANK_STANDING_H
#define ASSAY_TRIAL_RUNNER_TRAIN_RANK_STANDING_H

#include "trial-runner/collective/collective.h"
#include "trial-runner/distributed/device_comm.h"
#include "trial-runner/train/member.h"

struct rank_standing {
    int64_t position;  /* who has more is ahead */
    int64_t reported;  /* the step of its last report; -1: none */
    uint64_t job;      /* of the member's fingerprint */
    uint64_t stopping; /* 1: it has done its last step before a stop */
    uint64_t written;  /* 1: it has finished the trial's files */
    struct device_card card;
};

/* The first tag of who uses it; others are behind. */
#define RANK_STANDING_TAG (1U << 16)

/* All ranks: *ret [ranks], the caller's to free. `own` is what m does not know; its `reported` and
 * `job` are filled in. AS_E_CONFLICT: a rank has another job. AS_E_NOMEM; errors of an operation of
 * the collective. */
AS_MUST_CHECK as_status rank_standing_exchange(struct coll *c, const struct member *m,
                                               const struct rank_standing *own,
                                               struct rank_standing **ret, struct as_err *err);

#endif
