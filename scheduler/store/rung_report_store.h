/* What early stopping has done in a sweep, for people. Strings and lists that come out are in the
 * arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_RUNG_REPORT_STORE_H
#define ASSAY_SCHEDULER_STORE_RUNG_REPORT_STORE_H

#include "base/arena.h"
#include "scheduler/rows/rung_row.h"
#include "scheduler/store/tx.h"

#define RUNG_STEPS_SHOWN 9 /* one more than a warning names */

/* Trials that ended and did not fail. */
struct rung_ended {
    int64_t n, n_with_result; /* the latter have a value at some rung */
    int64_t n_completed;      /* of n */
    int64_t furthest;         /* the latest step that one of these reported; -1: none did */
};
AS_MUST_CHECK as_status store_rung_ended(struct tx *t, int64_t sweep_key, struct rung_ended *ret,
                                         struct as_err *err);

/* The steps at which the first ended trial without a value below the last rung reported the metric,
 * ascending; at most RUNG_STEPS_SHOWN. In `a`. */
AS_MUST_CHECK as_status store_rung_reported(struct tx *t, struct arena *a, int64_t sweep_key,
                                            const char *metric, const int64_t **ret, size_t *ret_n,
                                            struct as_err *err);

/* Without its warning. */
AS_MUST_CHECK as_status store_rung_report(struct tx *t, struct arena *a, int64_t sweep_key,
                                          struct stopping_report *ret, struct as_err *err);

#endif
