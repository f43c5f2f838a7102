/* Table token. */
#ifndef ASSAY_SCHEDULER_STORE_TOKEN_STORE_H
#define ASSAY_SCHEDULER_STORE_TOKEN_STORE_H

#include "base/arena.h"
#include "base/hash.h"
#include "scheduler/rows/token_row.h"
#include "scheduler/store/tx.h"

struct token_new {
    const char *id, *role, *name, *sha256;
    int64_t ttl_ms; /* 0: never expires */
};

/* *ret_created is false if the id is taken. */
AS_MUST_CHECK as_status store_token_add(struct tx *t, const struct token_new *n, bool *ret_created,
                                        struct as_err *err);

struct token_secret {
    const char *id;
    token_role role;
    char sha256[SHA256_HEX_SIZE];
    bool valid;      /* neither revoked nor expired */
    bool note_use;   /* its last use was recorded more than a minute ago */
    int64_t left_ms; /* until it expires; INT64_MAX: it does not */
};

/* The tokens that have one of these ids, in any order: one query, however many ids are given. */
AS_MUST_CHECK as_status store_token_secrets(struct tx *t, struct arena *a, const char *const *ids,
                                            size_t n, struct token_secret **ret, size_t *ret_n,
                                            struct as_err *err);
/* Record that they were used now. Leaves out those that another transaction holds. */
AS_MUST_CHECK as_status store_token_used(struct tx *t, const char *const *ids, size_t n,
                                         struct as_err *err);

/* AS_E_NOT_FOUND: unknown or revoked. */
AS_MUST_CHECK as_status store_token_get(struct tx *t, struct arena *a, const char *id,
                                        struct token_row *ret, struct as_err *err);

/* Newest first, after (created, id) of the page before: `after_us` is in microseconds, 0 for all.
 * *ret_next_us is 0 on the last page. */
AS_MUST_CHECK as_status store_token_list(struct tx *t, struct arena *a, int64_t after_us,
                                         const char *after_id, int64_t size, struct token_row **ret,
                                         size_t *ret_n, int64_t *ret_next_us, struct as_err *err);

/* The number of admin tokens that never expire, without this one. Locks them. */
AS_MUST_CHECK as_status store_token_other_admins(struct tx *t, const char *id, int64_t *ret,
                                                 struct as_err *err);
/* AS_E_NOT_FOUND: unknown or already revoked. */
AS_MUST_CHECK as_status store_token_revoke(struct tx *t, const char *id, struct as_err *err);

#endif
