/* Table trial. Strings that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_TRIAL_STORE_H
#define ASSAY_SCHEDULER_STORE_TRIAL_STORE_H

#include "base/arena.h"
#include "scheduler/rows/rung_row.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/trial_state.h"

/* The columns of a trial that decisions need. */
struct trial_head {
    int64_t sweep_key, number;
    trial_state state;
    int64_t attempt, restarts;
    bool has_value;
    double value;
    const char *runner; /* of the latest attempt; NULL: a client's, or a gang's */
    const char *client;
    int64_t epoch; /* 0: no runner's */
    bool gang;     /* the latest attempt is a gang's */
    bool is_known; /* it was added with its result */
    bool is_fork;
    int64_t step;  /* of the latest value of its row; 0: none */
    int64_t spent; /* steps, up to its latest rung or end */
    struct rung_place at;
};

/* Read it without a lock. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_trial_head(struct tx *t, struct arena *a, int64_t sweep_key,
                                         int64_t number, struct trial_head *ret,
                                         struct as_err *err);

/* Lock the row until the transaction ends. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_trial_lock(struct tx *t, struct arena *a, int64_t sweep_key,
                                         int64_t number, struct trial_head *ret,
                                         struct as_err *err);

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

struct trial_key {
    int64_t sweep_key, number;
};

/* Read many trials, each into the arena of its place. AS_E_NOT_FOUND: one is not there. */
AS_MUST_CHECK as_status store_trial_get_many(struct tx *t, const struct trial_key *keys, size_t n,
                                             struct arena *const *arenas, struct trial_row *ret,
                                             struct as_err *err);

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

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_trial_get(struct tx *t, struct arena *a, int64_t sweep_key,
                                        int64_t number, struct trial_row *ret, struct as_err *err);

/* The place where a list continues: after the trial with this sort key and this number. */
struct trial_place {
    bool set;
    bool has_key;
    double key;
    int64_t number;
};

/* At most q->page.size trials by number, fewer when they pass PAGE_BYTES_MAX. *ret_next is set if
 * there are more. Lists by other keys: trial_orders.h. */
AS_MUST_CHECK as_status store_trial_list(struct tx *t, struct arena *a, int64_t sweep_key,
                                         const struct trial_query *q,
                                         const struct trial_place *after, struct trial_page *ret,
                                         struct trial_place *ret_next, struct as_err *err);

/* The best `top` completed, feasible trials after a place; pages as above. */
AS_MUST_CHECK as_status store_trial_best(struct tx *t, struct arena *a, int64_t sweep_key,
                                         bool maximize, int64_t top,
                                         const struct trial_place *after, struct trial_page *ret,
                                         struct trial_place *ret_next, struct as_err *err);

/* Trials as (sweep, number), ordered by sweep, for a change of many trials. */
struct trial_list_heads {
    struct trial_head *rows;
    size_t n;
};

/* Lock the trials of a sweep that have not ended, by number: the first `limit` behind `after` (-1:
 * from the first on). */
AS_MUST_CHECK as_status store_trial_lock_live(struct tx *t, struct arena *a, int64_t sweep_key,
                                              int64_t after, int64_t limit,
                                              struct trial_list_heads *ret, struct as_err *err);
/* Lock those of these trials of one sweep that are there, by number. */
AS_MUST_CHECK as_status store_trial_lock_many(struct tx *t, struct arena *a,
                                              const struct trial_head *heads, size_t n,
                                              struct trial_list_heads *ret, struct as_err *err);
/* The trials in one of the states that are ends, by number, at most `limit`; without known
 * results. */
AS_MUST_CHECK as_status store_trial_ended(struct tx *t, struct arena *a, int64_t sweep_key,
                                          trial_state state, int64_t limit,
                                          struct trial_list_heads *ret, struct as_err *err);
/* The trials that a client runs in a sweep, by number, at most `limit`. */
AS_MUST_CHECK as_status store_trial_of_client(struct tx *t, struct arena *a, int64_t sweep_key,
                                              const char *client, int64_t limit,
                                              struct trial_list_heads *ret, struct as_err *err);
/* The trials that run on a runner, without the listed attempts. */
AS_MUST_CHECK as_status store_trial_held(struct tx *t, struct arena *a, const char *runner,
                                         const struct attempt_ref *but, size_t n,
                                         struct trial_list_heads *ret, struct as_err *err);
/* The trials whose latest attempt has run longer than trial_timeout, the grace period and slack_ms
 * together, as of as_of_ms (Unix milliseconds of the database's clock). The time counts from the
 * begin of the process if its runner said it (store_attempt_say), else from the claim. A process
 * that is still prepared, or that its runner says ended within trial_timeout, is not overdue. */
AS_MUST_CHECK as_status store_trial_overdue(struct tx *t, struct arena *a, int64_t as_of_ms,
                                            int64_t slack_ms, struct trial_list_heads *ret,
                                            struct as_err *err);
/* The same question for one trial. */
AS_MUST_CHECK as_status store_trial_is_overdue(struct tx *t, int64_t sweep_key, int64_t number,
                                               int64_t as_of_ms, int64_t slack_ms, bool *ret,
                                               struct as_err *err);

/* Move the attempts of a list that run on this runner to its new epoch. */
AS_MUST_CHECK as_status store_trial_resume(struct tx *t, const char *runner, int64_t epoch,
                                           const struct attempt_ref *refs, size_t n,
                                           struct as_err *err);

/* The listed attempts that are not current on that runner, and those that are told to end early,
 * each with the reason. The result borrows `refs`. */
AS_MUST_CHECK as_status store_trial_not_current(struct tx *t, struct arena *a, const char *runner,
                                                const struct attempt_ref *refs, size_t n,
                                                struct directive_list *ret, struct as_err *err);

/* Compare the trials that run on a runner with its list: count the heartbeats that missed a trial,
 * and return the trials that two heartbeats in a row missed and that were claimed more than
 * lease_ms ago. */
AS_MUST_CHECK as_status store_trial_missing(struct tx *t, struct arena *a, const char *runner,
                                            const struct attempt_ref *listed, size_t n,
                                            int64_t lease_ms, struct trial_list_heads *ret,
                                            struct as_err *err);

/* The latest values of these metrics; NaN: never measured. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_trial_measured(struct tx *t, int64_t sweep_key, int64_t number,
                                             const char *const *metrics, size_t n, double *ret,
                                             bool *ret_has, struct as_err *err);

#endif
