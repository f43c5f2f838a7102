/* Table measurement, and the latest values that trial carries. */
#ifndef ASSAY_SCHEDULER_STORE_MEASUREMENT_STORE_H
#define ASSAY_SCHEDULER_STORE_MEASUREMENT_STORE_H

#include "base/arena.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/store/tx.h"

struct measured {
    int64_t recorded; /* how many were new */
    bool has_value;   /* the sweep's metric afterwards; only when something was recorded */
    double value;
};

/* Insert what is new and bring trial.metrics, value and step up to date. The caller holds the
 * trial's row and has checked the attempt. */
AS_MUST_CHECK as_status store_measurement_add(struct tx *t, int64_t sweep_key, int64_t number,
                                              int64_t attempt, const struct measurement *points,
                                              size_t n, struct measured *ret, struct as_err *err);

/* The highest step that an attempt has measured; -1 when it has nothing. */
AS_MUST_CHECK as_status store_measurement_latest_step(struct tx *t, int64_t sweep_key,
                                                      int64_t number, int64_t attempt, int64_t *ret,
                                                      struct as_err *err);

/* metric NULL: all. */
AS_MUST_CHECK as_status store_measurement_series(struct tx *t, struct arena *a, int64_t sweep_key,
                                                 int64_t number, const char *metric,
                                                 struct series_list *ret, struct as_err *err);

#endif
