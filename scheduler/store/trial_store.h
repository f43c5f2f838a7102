/* Heads of trials: the columns that decisions need, and the locks of their rows. Strings that come
 * out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_TRIAL_STORE_H
#define ASSAY_SCHEDULER_STORE_TRIAL_STORE_H

#include "base/arena.h"
#include "scheduler/rows/rung_row.h"
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

struct trial_key {
    int64_t sweep_key, number;
};

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

/* The latest values of these metrics; NaN: never measured. AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_trial_measured(struct tx *t, int64_t sweep_key, int64_t number,
                                             const char *const *metrics, size_t n, double *ret,
                                             bool *ret_has, struct as_err *err);

#endif
