/* Table idempotency. */
#ifndef ASSAY_SCHEDULER_STORE_IDEMPOTENCY_STORE_H
#define ASSAY_SCHEDULER_STORE_IDEMPOTENCY_STORE_H

#include "base/arena.h"
#include "scheduler/rows/idem_row.h"
#include "scheduler/store/tx.h"

/* Write the key; waits for a transaction that writes the same one. *ret_new is false if it
 * exists. */
AS_MUST_CHECK as_status store_idempotency_add(struct tx *t, const struct idem_key *k, bool *ret_new,
                                              struct as_err *err);

struct idem_row {
    bool same_body;
    const char *sweep; /* the sweep that it created; NULL: none */
    int64_t number;    /* the trial that it created; else -1 */
    int64_t status;    /* 0: no answer is stored */
    const char *body, *location;
};

/* AS_E_NOT_FOUND. */
AS_MUST_CHECK as_status store_idempotency_get(struct tx *t, struct arena *a,
                                              const struct idem_key *k, struct idem_row *ret,
                                              struct as_err *err);
/* The same, and the key stays until the transaction ends. This makes it one that writes, so it
 * waits until what the key created is on disk. */
AS_MUST_CHECK as_status store_idempotency_hold(struct tx *t, struct arena *a,
                                               const struct idem_key *k, struct idem_row *ret,
                                               struct as_err *err);
/* number -1: it created the sweep. */
AS_MUST_CHECK as_status store_idempotency_made(struct tx *t, const struct idem_key *k,
                                               const char *sweep, int64_t number,
                                               struct as_err *err);
/* Store the answer, unless one is stored. */
AS_MUST_CHECK as_status store_idempotency_answer(struct tx *t, const struct idem_key *k,
                                                 int64_t status, const char *body,
                                                 const char *location, struct as_err *err);
/* Remove keys that are older than 24 h. */
AS_MUST_CHECK as_status store_idempotency_prune(struct tx *t, int64_t *ret_removed,
                                                struct as_err *err);

#endif
