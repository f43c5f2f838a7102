/* Table measurement, and the latest values in the trial's row. */
#ifndef ASSAY_SCHEDULER_STORE_MEASUREMENT_STORE_H
#define ASSAY_SCHEDULER_STORE_MEASUREMENT_STORE_H

#include "base/arena.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/store/tx.h"

/* Insert new points and update trial.metrics, value and step. The caller holds the trial's row and
 * has checked the attempt. */
AS_MUST_CHECK as_status store_measurement_add(struct tx *t, int64_t sweep_key, int64_t number,
                                              int64_t attempt, const struct measurement *points,
                                              size_t n, struct measured *ret, struct as_err *err);

/* The same for n sets, in at most five statements, with the effect of store_measurement_add() for
 * one after the other. An attempt may stand in several sets; `ret.value` is then that after the
 * last one. */
AS_MUST_CHECK as_status store_measurement_add_many(struct tx *t, struct trial_points *sets,
                                                   size_t n, struct as_err *err);

/* The highest step that an attempt has measured; -1: none. */
AS_MUST_CHECK as_status store_measurement_latest_step(struct tx *t, int64_t sweep_key,
                                                      int64_t number, int64_t attempt, int64_t *ret,
                                                      struct as_err *err);

struct measured_other {
    int64_t place; /* index of the point; -1: none */
    bool has_value;
    double value; /* what is recorded */
};

/* The first of these points that an attempt has not recorded, or has recorded with another value.
 * A point with a negative step means the latest value of its metric. NaN equals NaN. */
AS_MUST_CHECK as_status store_measurement_other(struct tx *t, int64_t sweep_key, int64_t number,
                                                int64_t attempt, const struct measurement *points,
                                                size_t n, struct measured_other *ret,
                                                struct as_err *err);

/* The same for n sets, in one statement: ret[i] is that of sets[i]. */
AS_MUST_CHECK as_status store_measurement_other_many(struct tx *t, const struct trial_points *sets,
                                                     size_t n, struct measured_other *ret,
                                                     struct as_err *err);

/* The points that the query names, by metric and step. */
AS_MUST_CHECK as_status store_measurement_series(struct tx *t, struct arena *a, int64_t sweep_key,
                                                 int64_t number, const struct series_query *q,
                                                 struct series_list *ret, struct as_err *err);

#endif
