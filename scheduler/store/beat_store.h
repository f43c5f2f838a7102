/* Heartbeats of many runners, read and written as sets: the same rows as one after the other
 * (runner_store.h, trial_held_store.h), in three statements. */
#ifndef ASSAY_SCHEDULER_STORE_BEAT_STORE_H
#define ASSAY_SCHEDULER_STORE_BEAT_STORE_H

#include "scheduler/store/runner_store.h"

/* What a runner says. */
struct beat_ask {
    struct runner_id id;
    const struct attempt_ref *attempts; /* that it holds; none twice */
    size_t n;
    const struct attempt_said *said; /* about some of them */
    size_t n_said;
};

/* What became of it. */
struct beat_fact {
    /* Its lease was extended, what it said of processes is recorded, it holds what it lists and no
     * rank of a gang, and nobody asks anything of these attempts. Otherwise the heartbeat has to be
     * looked at alone; what was written of it may be written again. */
    bool is_plain;
    bool is_draining; /* it is to leave; if is_plain */
};

/* `facts` has n places. Rows of runners that another transaction holds are skipped: they are not
 * plain. In a TX_BATCH, whose plans need no statistics. AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status store_beat_many(struct tx *t, const struct beat_ask *asks, size_t n,
                                        struct beat_fact *facts, struct as_err *err);

#endif
