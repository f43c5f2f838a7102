/* Table attempt_usage: what an attempt used of its machine over time. */
#ifndef ASSAY_SCHEDULER_STORE_USAGE_STORE_H
#define ASSAY_SCHEDULER_STORE_USAGE_STORE_H

#include "base/arena.h"
#include "scheduler/rows/usage_row.h"
#include "scheduler/store/tx.h"

/* Replace what is stored of the attempt, or of this rank of it. The attempt exists. */
AS_MUST_CHECK as_status store_usage_put(struct tx *t, int64_t sweep_key, int64_t number,
                                        int64_t attempt, int64_t seat, const char *usage,
                                        struct as_err *err);

/* What is stored of the attempt, or with attempt 0 of the latest one that has any; by seat. */
AS_MUST_CHECK as_status store_usage_list(struct tx *t, struct arena *a, int64_t sweep_key,
                                         int64_t number, int64_t attempt, struct usage_row **ret,
                                         size_t *ret_n, struct as_err *err);

#endif
