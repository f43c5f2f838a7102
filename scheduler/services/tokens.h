/* Bearer tokens: `assay_ROLE_ID_SECRET`. The database holds the SHA-256 of the secret. */
#ifndef ASSAY_SCHEDULER_SERVICES_TOKENS_H
#define ASSAY_SCHEDULER_SERVICES_TOKENS_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/page.h"
#include "scheduler/rows/token_row.h"
#include "scheduler/store/store.h"

#define TOKEN_TEXT_SIZE 96 /* with the NUL */

#define ATTEMPT_SWEEP_SIZE 81

/* The principal of a request: the id of its token, and what it may do. */
struct principal {
    char id[40];
    token_role role;
    int64_t left_ms; /* until the token expires; INT64_MAX: it does not; 0: ask again each time */
    /* of ROLE_TRIAL: the attempt that it is good for */
    char sweep[ATTEMPT_SWEEP_SIZE];
    int64_t number, attempt;
};

/* Create a token. `name` NULL allowed (at most 80 bytes); ttl_ms 0: it never expires. Only this
 * call returns the text. AS_E_INVAL, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status token_create(struct store *db, struct arena *a, token_role role,
                                     const char *name, int64_t ttl_ms, struct token_row *ret,
                                     char ret_text[TOKEN_TEXT_SIZE], struct as_err *err);

/* Store a token whose text is given. `assay up` uses it to keep the token of its token file valid.
 * A repeat with the same text is safe. AS_E_INVAL: not the text of a token. AS_E_CONFLICT: revoked,
 * or another secret has this id. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status token_import(struct store *db, const char *text, const char *name,
                                     struct as_err *err);

/* Make the text of a new token of that role, without storing it. */
void token_make(token_role role, char ret_text[TOKEN_TEXT_SIZE]);

/* The principal of a token. AS_E_DENIED: unknown, wrong, expired or revoked (one message for all of
 * them). AS_E_UNAVAILABLE. Compares in constant time; records the use at most once a minute, if the
 * database takes writes. */
AS_MUST_CHECK as_status token_verify(struct store *db, const char *text, struct principal *ret,
                                     struct as_err *err);

struct token_check {
    const char *text;     /* borrowed */
    struct principal who; /* if is_valid */
    bool is_valid;
};

/* The same for many tokens, by one query: so a guess costs far less than a query. Sets is_valid of
 * each. AS_E_UNAVAILABLE, AS_E_NOMEM: of all of them. */
AS_MUST_CHECK as_status token_verify_all(struct store *db, struct token_check *checks, size_t n,
                                         struct as_err *err);
/* What AS_E_DENIED of token_verify() says. */
as_status token_deny(struct as_err *err);

/* Newest first, without revoked tokens. AS_E_INVAL: the cursor. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status token_list(struct store *db, struct arena *a, const struct page_req *page,
                                   struct token_page *ret, struct as_err *err);

/* AS_E_NOT_FOUND: unknown or already revoked. AS_E_CONFLICT: it is the last admin token that never
 * expires. AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status token_revoke(struct store *db, const char *id, struct as_err *err);

#endif
