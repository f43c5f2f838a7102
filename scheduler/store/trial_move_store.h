/* Changes of a trial's state. */
#ifndef ASSAY_SCHEDULER_STORE_TRIAL_MOVE_STORE_H
#define ASSAY_SCHEDULER_STORE_TRIAL_MOVE_STORE_H

#include "base/arena.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/trial_state.h"

struct trial_move {
    trial_state from, to;
    int64_t attempt;
    bool burns_restart;
    bool feasible;  /* only for a trial that completes */
    bool timed_out; /* it completes with what it had reported at trial_timeout */
    const char *reason;
    int64_t seq;       /* of a trial that ends: its place in the sweep's order; 0: the next one */
    int64_t waited_ms; /* of its attempt (struct attempt_end) … */
    bool never_began;  /* … which had no process: a trial's first one is no start */
};

/* What a trial measured last. */
struct trial_latest {
    const char *metrics; /* JSON: the latest values by name, NaN and infinities as text; NULL: none
                            is new. Others that the trial has stay */
    int64_t step;        /* of the latest of them */
    bool has_value;
    double value; /* of what the sweep compares */
};

struct trial_moved {
    int64_t sweep_key, number;
    struct trial_move move;
    struct trial_latest latest; /* measured in the same transaction, if its points keep their row
                                   (struct trial_points); else empty */
    int64_t spent; /* steps that it adds to its sweep; for store_trial_move_counted() */
};
/* The guarded changes of state of n trials, in one statement; no trial stands twice. Trials that
 * end get the next finish_seq of their sweep in the order of the list, or the one that they name,
 * so the caller must hold the rows of the sweeps. The checkpoints of pruned trials go.
 * AS_E_CONFLICT: a trial is not in `from` at that attempt. */
AS_MUST_CHECK as_status store_trial_move_many(struct tx *t, const struct trial_moved *moves,
                                              size_t n, struct as_err *err);

/* The same, and the counts of the sweeps by a statement, which costs less than the triggers do.
 * From then on no trigger counts trials in this transaction, so it must not change others. No trial
 * is a fork, or was added with its result. `a`: for the call. */
AS_MUST_CHECK as_status store_trial_move_counted(struct tx *t, struct arena *a,
                                                 const struct trial_moved *moves, size_t n,
                                                 struct as_err *err);

/* Put a trial that has ended back into the queue. Guarded as store_trial_move_many() is. Its end
 * goes to its `retries`, and the retry takes the sweep's next finish_seq. Its restarts begin anew,
 * and so do its latest values unless it has a checkpoint. `by`: the id of a token; NULL: none. */
AS_MUST_CHECK as_status store_trial_retry(struct tx *t, const struct trial_head *x,
                                          const char *reason, const char *by, struct as_err *err);

#endif
