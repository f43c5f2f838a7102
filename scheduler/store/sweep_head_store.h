/* Heads of sweeps: the columns that decisions need, and the locks of their rows. Strings that come
 * out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_SWEEP_HEAD_STORE_H
#define ASSAY_SCHEDULER_STORE_SWEEP_HEAD_STORE_H

#include "base/arena.h"
#include "scheduler/rows/sweep_row.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/trial_state.h"

struct rung_board;

/* The columns of a sweep that decisions need. */
struct sweep_head {
    int64_t key;
    const char *id;
    sweep_state state;
    const char *metric;
    bool maximize;
    int64_t seed, planned, max_concurrent, max_failed, max_restarts, gpus, ensemble_size;
    const char *ensemble_method;
    bool ensemble_non_negative, ensemble_calibrate;
    int64_t trial_timeout_ms; /* 0: none */
    struct trial_counts counts;
    bool wall_time_over;
    bool target_reached;               /* by a completed, feasible trial */
    bool little_left;                  /* what may be left to gain is within limits.stop_when */
    bool keeps_timed_out;              /* on_timeout: keep */
    bool has_started;                  /* a trial of it has begun */
    const char *objectives, *outcomes; /* as in sweep_new */
    bool learns;
    int64_t suggested, known, known_failed; /* counts of trials, included in counts.total */
    int64_t finish_seq;                     /* of the trial that ended last; 0: none */
    int64_t search_mark;                    /* of the last suggestion; 0: none */
    int64_t max_group;                      /* as in sweep_new */
    bool group_given;
    int64_t ranks; /* of each trial */
    bool shrinks;  /* as in sweep_new */
    int64_t priority;
    int64_t cpus, memory_bytes; /* as in sweep_new */
    bool exclusive;
    bool stops;         /* it has early stopping */
    bool limits_steps;  /* it has limits.max_steps */
    bool is_spent;      /* nothing runs, and max_steps leaves no step to the next rung of a trial */
    bool is_strict;     /* rungs_strict, and no trial has a value at a rung below the last yet */
    int64_t forks_left; /* so many more may be made; each adds one to planned */
};

/* Lock the sweep's row until the transaction ends. A transaction that changes the state of a trial
 * must hold it. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_sweep_lock(struct tx *t, struct arena *a, int64_t key,
                                         struct sweep_head *ret, struct as_err *err);

/* A locked sweep, and what an end in it may reach. */
struct sweep_locked {
    struct sweep_head head;
    bool has_target;
    double target;
    struct rung_board *board; /* of early stopping; the transaction's. NULL: nobody needs it */
};

/* Lock the rows of many sweeps, in the order of `keys` (ascending, each once). ret: n views of `a`;
 * NULL: the sweep was deleted, or, unless is_patient, another transaction holds its row. */
AS_MUST_CHECK as_status store_sweep_lock_many(struct tx *t, struct arena *a, const int64_t *keys,
                                              size_t n, bool is_patient, struct sweep_locked **ret,
                                              struct as_err *err);

/* How many trials limits.max_steps lets these sweeps begin now: exact while the transaction holds
 * their rows. INT64_MAX: the sweep has no such limit. */
AS_MUST_CHECK as_status store_sweep_steps_room(struct tx *t, const int64_t *keys, size_t n,
                                               int64_t *ret, struct as_err *err);

/* The trial that reached the target first. */
struct sweep_target {
    int64_t number;
    double value, target;
};
/* AS_E_NOT_FOUND: none has. */
AS_MUST_CHECK as_status store_sweep_target(struct tx *t, int64_t key, struct sweep_target *ret,
                                           struct as_err *err);

/* Sweeps in which trials wait for a promotion. At most 100. */
AS_MUST_CHECK as_status store_sweep_waiting(struct tx *t, struct arena *a, int64_t **ret,
                                            size_t *ret_n, struct as_err *err);

/* Sweeps whose time or trials are over, and that still run or are paused. At most 100. */
AS_MUST_CHECK as_status store_sweep_due(struct tx *t, struct arena *a, int64_t **ret, size_t *ret_n,
                                        struct as_err *err);

#endif
