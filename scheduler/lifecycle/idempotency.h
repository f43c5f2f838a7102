/* Idempotency keys: the same request twice within 24 hours has one effect and one answer.
 *
 * The server asks idempotency_find() before a creating POST. IDEM_REPLAY: send what is stored.
 * IDEM_NEW: call the operation (with the key, where it takes one), then idempotency_store() the
 * answer unless it is a 5xx. sweep_create() writes the key in its own transaction, so that a crash
 * between creation and idempotency_store() makes no second sweep. */
#ifndef ASSAY_SCHEDULER_IDEMPOTENCY_H
#define ASSAY_SCHEDULER_IDEMPOTENCY_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/idem_row.h"
#include "scheduler/store/store.h"

typedef enum idem_outcome { IDEM_NEW, IDEM_REPLAY, IDEM_OTHER_BODY } idem_outcome;

struct idem_answer {
    idem_outcome outcome;
    int64_t status;       /* IDEM_REPLAY: the HTTP status */
    const char *body;     /* IDEM_REPLAY: as it was sent */
    const char *location; /* IDEM_REPLAY: of the Location header; NULL for none */
};

/* AS_E_INVAL: the key is empty or longer than 128 bytes. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status idempotency_find(struct store *db, struct arena *a,
                                         const struct idem_key *k, struct idem_answer *ret,
                                         struct as_err *err);

/* The first answer stored stays. `location` NULL allowed. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status idempotency_store(struct store *db, const struct idem_key *k,
                                          int64_t status, const char *body, const char *location,
                                          struct as_err *err);

#endif
