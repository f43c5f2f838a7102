/* How many trials sweeps may hand out now. */
#ifndef ASSAY_SCHEDULER_STORE_CAPACITY_STORE_H
#define ASSAY_SCHEDULER_STORE_CAPACITY_STORE_H

#include "base/arena.h"
#include "scheduler/store/tx.h"

struct sweep_capacity {
    int64_t key;    /* 0: all sweeps together that do not learn */
    int64_t queued; /* queued trials; set only for sweeps that learn */
    int64_t room;   /* trials that it may hand out, the queued ones included */
    bool learns;
    bool has_ended; /* or it was deleted */
};

/* For runners: one row for all sweeps that do not learn, and one for each sweep that learns and has
 * room. */
AS_MUST_CHECK as_status store_capacity_pending(struct tx *t, struct arena *a,
                                               struct sweep_capacity **ret, size_t *ret_n,
                                               struct as_err *err);
/* For clients: one row for each of these keys, in their order. */
AS_MUST_CHECK as_status store_capacity_askable(struct tx *t, struct arena *a, const int64_t *keys,
                                               size_t n, struct sweep_capacity **ret,
                                               struct as_err *err);

#endif
