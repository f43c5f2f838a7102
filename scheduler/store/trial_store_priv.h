/* The lock of many trials, in two halves, so that several statements of a batch share a round trip
 * (tx_send()): one sends it, the other reads its result after the wait. */
#ifndef ASSAY_SCHEDULER_STORE_TRIAL_STORE_PRIV_H
#define ASSAY_SCHEDULER_STORE_TRIAL_STORE_PRIV_H

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/trial_store.h"

/* Lock the rows of n trials, in the order of `keys` (ascending, each once). */
AS_MUST_CHECK as_status trial_lock_send(struct tx *t, const struct trial_key *keys, size_t n,
                                        bool is_patient, struct result *ret, struct as_err *err);
/* ret_locked: false: there is no such trial, or, unless is_patient, another transaction holds its
 * row. */
AS_MUST_CHECK as_status trial_lock_read(const struct result *r, struct arena *a, size_t n,
                                        struct trial_head *ret, bool *ret_locked,
                                        struct as_err *err);

#endif
