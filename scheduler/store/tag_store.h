/* Tags of trials: trial.tags. */
#ifndef ASSAY_SCHEDULER_STORE_TAG_STORE_H
#define ASSAY_SCHEDULER_STORE_TAG_STORE_H

#include "base/arena.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/trial_state.h"

/* All borrowed. */
struct trial_tagging {
    const int64_t *numbers; /* of trials */
    size_t n_numbers;
    const char *const *add, *const *remove;
    size_t n_add, n_remove;
};

/* A trial that has other tags now. */
struct tagged_trial {
    int64_t number;
    trial_state state;
    int64_t attempt;
    int64_t n_tags;
};

/* Change the tags of these trials of a sweep: one statement, which locks the trials in their order.
 * Returns those that changed, ascending by number. */
AS_MUST_CHECK as_status store_trial_tag(struct tx *t, struct arena *a, int64_t sweep_key,
                                        const struct trial_tagging *q, struct tagged_trial **ret,
                                        size_t *ret_n, struct as_err *err);

#endif
