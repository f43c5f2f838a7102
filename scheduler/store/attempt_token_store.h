/* Table installation_key, and which attempts are current. */
#ifndef ASSAY_SCHEDULER_STORE_ATTEMPT_TOKEN_STORE_H
#define ASSAY_SCHEDULER_STORE_ATTEMPT_TOKEN_STORE_H

#include "base/arena.h"
#include "base/hash.h"
#include "scheduler/store/tx.h"

/* The key of the installation for the tokens of attempts, as hexadecimal text. AS_E_NOT_FOUND:
 * somebody deleted it. */
AS_MUST_CHECK as_status store_attempt_key(struct tx *t, char ret[SHA256_HEX_SIZE],
                                          struct as_err *err);

struct attempt_name {
    int64_t sweep_key, number, attempt;
};

struct attempt_current {
    int64_t place; /* of the attempt in the question */
    const char *sweep;
};

/* Those of v[0..n) that are current: the trial runs, and this is its attempt. In any order, with
 * the id of the sweep, in one query. */
AS_MUST_CHECK as_status store_attempt_current(struct tx *t, struct arena *a,
                                              const struct attempt_name *v, size_t n,
                                              struct attempt_current **ret, size_t *ret_n,
                                              struct as_err *err);

#endif
