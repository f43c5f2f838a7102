/* Idempotency keys: the same request twice within 24 hours has one effect and one answer.
 *
 * The server asks idempotency_find() before a creating POST. IDEM_REPEATED: send what is stored.
 * IDEM_NEW: call the operation (with the key, where it takes one), then idempotency_store() the
 * answer unless it is a 5xx. An operation that takes the key writes it in its own transaction, so
 * that a crash between creation and idempotency_store() makes nothing twice. */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_IDEMPOTENCY_H
#define ASSAY_SCHEDULER_LIFECYCLE_IDEMPOTENCY_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/idem_row.h"
#include "scheduler/store/store.h"
#include "scheduler/store/tx.h"

typedef enum idem_outcome { IDEM_NEW, IDEM_REPEATED, IDEM_OTHER_BODY } idem_outcome;

struct idem_answer {
    idem_outcome outcome;
    int64_t status;       /* IDEM_REPEATED: the HTTP status */
    const char *body;     /* IDEM_REPEATED: as it was sent */
    const char *location; /* IDEM_REPEATED: the Location header; NULL: none */
};

/* Find the stored answer of a key. AS_E_INVAL: the key is empty or longer than 128 bytes.
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status idempotency_find(struct store *db, struct arena *a,
                                         const struct idem_key *k, struct idem_answer *ret,
                                         struct as_err *err);

/* Store the answer of a key. The first stored answer stays. `location` NULL allowed.
 * AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status idempotency_store(struct store *db, const struct idem_key *k,
                                          int64_t status, const char *body, const char *location,
                                          struct as_err *err);

/* What an operation created when the key was first used. */
struct idem_made {
    const char *sweep; /* NULL: the key is new, or there is none */
    int64_t number;    /* the number of the trial; -1: the operation created the sweep */
};

/* The first step of a transaction that creates something: write the key, or find what it created.
 * Waits for a transaction that uses the same key.
 *   k      NULL: the request has no key
 *   sweep  NULL: the operation creates a sweep; else a trial of that sweep
 *   ret    its string is in `a`
 * AS_E_CONFLICT: the key was used with another body, or for something else. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status idempotency_begin(struct tx *t, struct arena *a, const struct idem_key *k,
                                          const char *sweep, struct idem_made *ret,
                                          struct as_err *err);

/* Record in the same transaction what was created: the trial of that number, or the sweep (-1).
 * Does nothing if k is NULL. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status idempotency_end(struct tx *t, const struct idem_key *k, const char *sweep,
                                        int64_t number, struct as_err *err);

#endif
