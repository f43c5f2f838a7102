/* The lock of many sweeps, in two halves, so that several statements of a batch share a round trip
 * (tx_send()): one sends it, the other reads its result after the wait. */
#ifndef ASSAY_SCHEDULER_STORE_SWEEP_STORE_PRIV_H
#define ASSAY_SCHEDULER_STORE_SWEEP_STORE_PRIV_H

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sweep_store.h"

/* Lock the rows of n sweeps, in the order of `keys` (ascending, each once). */
AS_MUST_CHECK as_status sweep_lock_send(struct tx *t, const int64_t *keys, size_t n,
                                        bool is_patient, struct result *ret, struct as_err *err);
/* ret: n views of `a`; NULL: the sweep was deleted, or, unless is_patient, another transaction
 * holds its row. */
AS_MUST_CHECK as_status sweep_lock_read(const struct result *r, struct arena *a, size_t n,
                                        struct sweep_locked **ret, struct as_err *err);

#endif
