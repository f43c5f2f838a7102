/* The history that a sweep's search uses: its progress, and the earlier trials. */
#ifndef ASSAY_SCHEDULER_STORE_HISTORY_STORE_H
#define ASSAY_SCHEDULER_STORE_HISTORY_STORE_H

#include "base/arena.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/trial_state.h"

struct history_head {
    sweep_state state;
    int64_t total, suggested, planned;
    int64_t finish_seq, search_mark;
    const char *search_state; /* JSON; NULL */
    const char *document;     /* NULL unless it was requested */
};

/* AS_E_NOT_FOUND: the sweep was deleted. */
AS_MUST_CHECK as_status store_history_head(struct tx *t, struct arena *a, int64_t sweep_key,
                                           bool with_document, struct history_head *ret,
                                           struct as_err *err);

struct history_trial {
    int64_t number;
    trial_state state;
    bool is_suggested;
    int64_t finish_seq;  /* 0: it has not ended */
    const char *retries; /* JSON, as trial_row.retries; NULL: none */
    const char *rungs;   /* JSON, as trial_row.rungs; NULL: none */
    const char *params;  /* JSON */
    double *values;      /* of the requested metrics; NaN: none; all NaN unless the trial
                           completed */
};

/* Trials of one statement: some 10 MB, a fifth of a second. */
#define HISTORY_PART 20000
#define HISTORY_NO_END INT64_MAX /* a `seq` after which no earlier trial ended */

/* What is new since a read that knew the trials below `known` and the ends up to `seq`: the trials
 * from `known` to below `total`, and earlier trials that ended, were retried, reached a rung or
 * were promoted after seq; ascending by number, perhaps several times. The range has at most
 * HISTORY_PART trials (AS_E_INTERNAL), and the caller sees to it that no more ended since. */
AS_MUST_CHECK as_status store_history_trials(struct tx *t, struct arena *a, int64_t sweep_key,
                                             int64_t known, int64_t seq, int64_t total,
                                             const char *const *metrics, size_t n_metrics,
                                             struct history_trial **ret, size_t *ret_n,
                                             struct as_err *err);

/* Every `every`-th trial, by number (0, every, 2 every, …), from `from` to below `to`, ascending.
 * The range has at most HISTORY_PART numbers (AS_E_INTERNAL). */
AS_MUST_CHECK as_status store_history_sample(struct tx *t, struct arena *a, int64_t sweep_key,
                                             int64_t from, int64_t to, int64_t every,
                                             const char *const *metrics, size_t n_metrics,
                                             struct history_trial **ret, size_t *ret_n,
                                             struct as_err *err);

#define HISTORY_VALUES_MAX 4 /* metrics of one statement */

/* The values of these metrics (at most HISTORY_VALUES_MAX) of the completed, feasible trials whose
 * place in the order of ends is above `after` and at most `to` (after + HISTORY_PART or less), in
 * any order.
 *   ret_values  n x n_metrics, row-major
 * AS_E_INTERNAL: more metrics or a longer range. */
AS_MUST_CHECK as_status store_history_values(struct tx *t, struct arena *a, int64_t sweep_key,
                                             int64_t after, int64_t to, const char *const *metrics,
                                             size_t n_metrics, int64_t **ret_numbers,
                                             double **ret_values, size_t *ret_n,
                                             struct as_err *err);

#endif
