/* Table client: one row is one client's lease on what it holds in a sweep. Locked before the
 * sweep's row. */
#ifndef ASSAY_SCHEDULER_STORE_CLIENT_STORE_H
#define ASSAY_SCHEDULER_STORE_CLIENT_STORE_H

#include "base/arena.h"
#include "scheduler/store/tx.h"

/* Make the lease, or begin it again with another length; locks its row. *ret_until_ms: its end. */
AS_MUST_CHECK as_status store_client_lease(struct tx *t, int64_t sweep_key, const char *name,
                                           int64_t lease_ms, int64_t *ret_until_ms,
                                           struct as_err *err);

/* Begin it again: with lease_ms, or 0: as long as before; locks its row. *ret_until_ms is 0 when
 * the client has none. */
AS_MUST_CHECK as_status store_client_extend(struct tx *t, int64_t sweep_key, const char *name,
                                            int64_t lease_ms, int64_t *ret_until_ms,
                                            struct as_err *err);

struct client_head {
    int64_t sweep_key;
    const char *name;
};

/* Those whose lease has run out, in the order of sweeps; at most 1000. */
AS_MUST_CHECK as_status store_client_expired(struct tx *t, struct arena *a,
                                             struct client_head **ret, size_t *ret_n,
                                             struct as_err *err);

/* Remove it, if its lease has run out still; locks its row. */
AS_MUST_CHECK as_status store_client_lose(struct tx *t, int64_t sweep_key, const char *name,
                                          bool *ret_done, struct as_err *err);

#endif
