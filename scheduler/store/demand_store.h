/* What sweeps wait for, and what live runners have left. */
#ifndef ASSAY_SCHEDULER_STORE_DEMAND_STORE_H
#define ASSAY_SCHEDULER_STORE_DEMAND_STORE_H

#include "base/arena.h"
#include "scheduler/rows/demand_row.h"
#include "scheduler/store/tx.h"

#define DEMAND_SWEEPS_MAX 1000

/* The sweeps with something to hand out to runners, in about the order in which they get slots; at
 * most DEMAND_SWEEPS_MAX. *ret_now_ms is the database's time. */
AS_MUST_CHECK as_status store_demand_sweeps(struct tx *t, struct arena *a,
                                            struct demand_sweep **ret, size_t *ret_n,
                                            int64_t *ret_now_ms, struct as_err *err);

/* The live runners; those of one machine stand together. */
AS_MUST_CHECK as_status store_demand_runners(struct tx *t, struct arena *a,
                                             struct demand_runner **ret, size_t *ret_n,
                                             struct as_err *err);

#endif
