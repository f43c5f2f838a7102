/* The keys by which lists of trials are sorted. */
#ifndef ASSAY_SCHEDULER_STORE_ORDER_STORE_H
#define ASSAY_SCHEDULER_STORE_ORDER_STORE_H

#include "base/arena.h"
#include "scheduler/rows/order_row.h"
#include "scheduler/rows/table_row.h"
#include "scheduler/store/tx.h"

/* The keys of the trials with numbers in [from, to), in no order. */
AS_MUST_CHECK as_status store_order_rows(struct tx *t, struct arena *a, int64_t sweep_key,
                                         const struct order_key *k, int64_t from, int64_t to,
                                         struct order_row **ret, size_t *ret_n, struct as_err *err);

/* The keys of the trials that changed. */
AS_MUST_CHECK as_status store_order_rows_of(struct tx *t, struct arena *a, int64_t sweep_key,
                                            const struct order_key *k,
                                            const struct table_change *changes, size_t n,
                                            struct order_row **ret, size_t *ret_n,
                                            struct as_err *err);

#endif
