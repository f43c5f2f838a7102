/* Table client: one row is one client's lease on all that it holds in a sweep. Its row is locked
 * before the sweep's row. */
#ifndef ASSAY_SCHEDULER_STORE_CLIENT_STORE_H
#define ASSAY_SCHEDULER_STORE_CLIENT_STORE_H

#include "base/arena.h"
#include "scheduler/store/tx.h"

/* Create the lease, or start it again with another length; locks its row. *ret_until_ms: its end.
 *   token   id of the token that asks; NULL: none is asked for
 * AS_E_CONFLICT with /client: the lease was begun with another token. */
AS_MUST_CHECK as_status store_client_lease(struct tx *t, int64_t sweep_key, const char *name,
                                           const char *token, int64_t lease_ms,
                                           int64_t *ret_until_ms, struct as_err *err);

/* Start the lease again: with lease_ms, or, if 0, with its last length; locks its row.
 * *ret_until_ms is 0 if the client has none. */
AS_MUST_CHECK as_status store_client_extend(struct tx *t, int64_t sweep_key, const char *name,
                                            int64_t lease_ms, int64_t *ret_until_ms,
                                            struct as_err *err);

struct client_head {
    int64_t sweep_key;
    const char *name;
};

/* Leases that had run out at as_of_ms (Unix milliseconds of the database's clock), in the order of
 * sweeps; at most 1000. */
AS_MUST_CHECK as_status store_client_expired(struct tx *t, struct arena *a, int64_t as_of_ms,
                                             struct client_head **ret, size_t *ret_n,
                                             struct as_err *err);

/* Remove a lease if it has run out by now; locks its row. */
AS_MUST_CHECK as_status store_client_lose(struct tx *t, int64_t sweep_key, const char *name,
                                          bool *ret_done, struct as_err *err);

#endif
