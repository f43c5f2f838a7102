/* All trials of a sweep in few columns, and which of them changed since an event. */
#ifndef ASSAY_SCHEDULER_STORE_TABLE_STORE_H
#define ASSAY_SCHEDULER_STORE_TABLE_STORE_H

#include "base/arena.h"
#include "scheduler/rows/table_row.h"
#include "scheduler/store/tx.h"

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

/* Is every event after this id kept? True only if the last event up to it is younger than max_ms,
 * which must be less than events are kept. */
AS_MUST_CHECK as_status store_table_covered(struct tx *t, int64_t event, int64_t max_ms, bool *ret,
                                            struct as_err *err);

#endif
