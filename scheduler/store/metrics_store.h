/* Counts over all tables, for /metrics. */
#ifndef ASSAY_SCHEDULER_STORE_METRICS_STORE_H
#define ASSAY_SCHEDULER_STORE_METRICS_STORE_H

#include "base/arena.h"
#include "scheduler/store/tx.h"

struct metric_count {
    const char *table; /* sweep, trial, runner */
    const char *state;
    int64_t n;
};

AS_MUST_CHECK as_status store_metrics_counts(struct tx *t, struct arena *a,
                                             struct metric_count **ret, size_t *ret_n,
                                             struct as_err *err);

/* Dead rows of one hot table, as PostgreSQL estimates them. */
struct metric_dead {
    const char *table;
    int64_t n;
};
AS_MUST_CHECK as_status store_metrics_dead(struct tx *t, struct arena *a, struct metric_dead **ret,
                                           size_t *ret_n, struct as_err *err);

#endif
