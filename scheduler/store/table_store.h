/* All trials of a sweep in few columns, their points and attempts, and which trials changed since
 * an event. */
#ifndef ASSAY_SCHEDULER_STORE_TABLE_STORE_H
#define ASSAY_SCHEDULER_STORE_TABLE_STORE_H

#include "base/arena.h"
#include "scheduler/rows/table_row.h"
#include "scheduler/store/tx.h"

/* The sweep's key, and the metric of its first objective. AS_E_NOT_FOUND: the message has the id.
 */
AS_MUST_CHECK as_status store_table_sweep(struct tx *t, struct arena *a, const char *id,
                                          int64_t *ret_key, const char **ret_metric,
                                          struct as_err *err);

/* AS_E_NOT_FOUND: the sweep was deleted. */
AS_MUST_CHECK as_status store_table_head(struct tx *t, struct arena *a, int64_t sweep_key,
                                         bool with_document, struct table_head *ret,
                                         struct as_err *err);

/* The trials with numbers in [from, to), ascending. */
AS_MUST_CHECK as_status store_table_rows(struct tx *t, struct arena *a, int64_t sweep_key,
                                         int64_t from, int64_t to, struct table_row **ret,
                                         size_t *ret_n, struct as_err *err);

/* The trials with these numbers, ascending. */
AS_MUST_CHECK as_status store_table_rows_of(struct tx *t, struct arena *a, int64_t sweep_key,
                                            const struct table_change *changes, size_t n,
                                            struct table_row **ret, size_t *ret_n,
                                            struct as_err *err);

/* The trials that events with an id in (after, up_to] name, ascending by number. */
AS_MUST_CHECK as_status store_table_changes(struct tx *t, struct arena *a, int64_t sweep_key,
                                            int64_t after, int64_t up_to, struct table_change **ret,
                                            size_t *ret_n, struct as_err *err);

/* Points of one metric, at most `limit` of each trial: those with the lowest steps. They come trial
 * by trial in the order of `wants`, ascending by step. */
AS_MUST_CHECK as_status store_table_points(struct tx *t, struct arena *a, int64_t sweep_key,
                                           const char *metric, const struct point_want *wants,
                                           size_t n, int64_t limit, struct point_row **ret,
                                           size_t *ret_n, struct as_err *err);

/* Points of one metric in the order of the index, by trial, attempt and step: of a trial with
 * several attempts also those that do not count. [from, *ret_to) are the trials of which these are
 * all points; it is empty if the trial `from` has as many chunks as may be read, or more. */
AS_MUST_CHECK as_status store_table_points_in(struct tx *t, struct arena *a, int64_t sweep_key,
                                              const char *metric, const struct point_range *range,
                                              struct point_row **ret, size_t *ret_n,
                                              int64_t *ret_to, struct as_err *err);

/* The attempts of the trials with numbers in [from, to), and the seats of their gangs, ascending by
 * trial, attempt and seat. */
AS_MUST_CHECK as_status store_table_attempts(struct tx *t, struct arena *a, int64_t sweep_key,
                                             int64_t from, int64_t to, struct timeline_row **ret,
                                             size_t *ret_n, struct as_err *err);

/* The same of the trials with these numbers. */
AS_MUST_CHECK as_status store_table_attempts_of(struct tx *t, struct arena *a, int64_t sweep_key,
                                                const struct table_change *changes, size_t n,
                                                struct timeline_row **ret, size_t *ret_n,
                                                struct as_err *err);

/* Is every event after this id kept? True only if the last event up to it is younger than max_ms,
 * which must be less than events are kept. */
AS_MUST_CHECK as_status store_table_covered(struct tx *t, int64_t event, int64_t max_ms, bool *ret,
                                            struct as_err *err);

#endif
