/* Trials that people add, many in one statement. */
#ifndef ASSAY_SCHEDULER_STORE_ADDITION_STORE_H
#define ASSAY_SCHEDULER_STORE_ADDITION_STORE_H

#include "base/arena.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/tx.h"

struct added_trial {
    int64_t number, seed;
    trial_state state;      /* QUEUED, or the end of a known result: COMPLETED, FAILED */
    const char *params;     /* JSON */
    const char *suggestion; /* JSON: {"method": "known" or "enqueued", "key"} */
    const char *shape;      /* NULL: it has none */
    int64_t bytes_per_member;
    const char *reason; /* of a failure; NULL: none */
    /* of a known result: */
    bool has_value, feasible;
    double value;               /* of the sweep's metric */
    const char *metrics_json;   /* JSON {name: number} */
    struct measurement *points; /* the same, at step 0 */
    size_t n_points;
};

/* Insert the rows with their measurements and events. Known results raise the planned trials, and
 * take the next places in the order of ends. The caller holds the sweep's row, of which `s` is the
 * present state. */
AS_MUST_CHECK as_status store_addition_insert(struct tx *t, const struct sweep_head *s,
                                              const struct added_trial *rows, size_t n,
                                              struct as_err *err);

/* Which of these keys were used before: ret_numbers[i] is the trial of keys[i], or -1. ret_same[i]:
 * with the same digest. The caller has both arrays. */
AS_MUST_CHECK as_status store_addition_find(struct tx *t, const char *scope,
                                            const char *const *keys, const char *const *digests,
                                            size_t n, int64_t *ret_numbers, bool *ret_same,
                                            struct as_err *err);

/* Store the keys of added trials. */
AS_MUST_CHECK as_status store_addition_keys(struct tx *t, const char *scope, const char *sweep,
                                            const char *const *keys, const char *const *digests,
                                            const int64_t *numbers, size_t n, struct as_err *err);

#endif
