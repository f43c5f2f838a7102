/* What the files about trials share, and the lock of many trials in two halves, so that several
 * statements of a batch share a round trip (tx_send()): one sends it, the other reads its result
 * after the wait. Private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_TRIAL_STORE_PRIV_H
#define ASSAY_SCHEDULER_STORE_TRIAL_STORE_PRIV_H

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sql_columns_priv.h"
#include "scheduler/store/trial_store.h"

#define TRIAL_HEAD_FIELDS(FIRST, NEXT)                                                             \
    FIRST(i64, sweep_key, "t.sweep_key")                                                           \
    NEXT(i64, number, "t.number")                                                                  \
    NEXT(trial_state, state, "t.state")                                                            \
    NEXT(i64, attempt, "t.attempt")                                                                \
    NEXT(i64, restarts, "t.restarts")                                                              \
    NEXT(bool, has_value, "t.value is not null")                                                   \
    NEXT(f64, value, "t.value")                                                                    \
    NEXT(text, runner, "t.runner")                                                                 \
    NEXT(text, client, "t.client")                                                                 \
    NEXT(i64, epoch, "t.epoch")                                                                    \
    NEXT(bool, gang, "t.gang")                                                                     \
    NEXT(bool, is_known, "t.origin = 'known'")                                                     \
    NEXT(bool, is_fork, "t.fork_step is not null")                                                 \
    NEXT(i64, step, "t.step")                                                                      \
    NEXT(i64, spent, "t.spent")                                                                    \
    NEXT(i64, at.rung, "t.rung")                                                                   \
    NEXT(decision, at.decision, "t.decision")                                                      \
    NEXT(text, at.reason, "case when t.decision is not null then t.reason end")
COLUMNS_WHOLE_ROW(struct trial_head, TRIAL_HEAD_FIELDS)
COLUMNS_READER(trial_head, struct trial_head, TRIAL_HEAD_FIELDS)
#define TRIAL_HEAD_COLUMNS COLUMNS_SQL(TRIAL_HEAD_FIELDS)

/* Read a result whose rows are heads. */
AS_MUST_CHECK as_status trial_heads_read(const struct result *r, struct arena *a,
                                         struct trial_list_heads *ret, struct as_err *err);

/* Trials by sweep and number: $1, $2, in their order. The lateral query cannot be merged into the
 * outer one, so each trial is found by its key and locked in this order. */
#define EACH_TRIAL(query)                                                                          \
    "select u.place - 1, h.* from unnest($1::bigint[], $2::bigint[]) with ordinality as u(key, "   \
    "number, place) cross join lateral (" query ") h"
/* The keys of trials as $1 and $2. */
AS_MUST_CHECK as_status trial_keys_format(struct arrays *x, const struct trial_key *keys, size_t n,
                                          struct as_err *err);

/* Lock the rows of n trials, in the order of `keys` (ascending, each once). */
AS_MUST_CHECK as_status trial_lock_send(struct tx *t, const struct trial_key *keys, size_t n,
                                        bool is_patient, struct result *ret, struct as_err *err);
/* ret_locked: false: there is no such trial, or, unless is_patient, another transaction holds its
 * row. */
AS_MUST_CHECK as_status trial_lock_read(const struct result *r, struct arena *a, size_t n,
                                        struct trial_head *ret, bool *ret_locked,
                                        struct as_err *err);

#endif
