/* Who makes a request: bearer tokens.
 *
 * A token that was valid a moment ago is in a cache, so that not every request queries the
 * database. It stores the SHA-256 of a token for AUTH_CACHE_MS, and never longer than the token is
 * valid. All other tokens are looked up by one thread, which takes what waits, up to AUTH_BATCH
 * tokens, in one query. So guesses cost the database little, and nobody has to be refused unseen: a
 * token that is valid is always found, whatever else its address has sent, also just after a start.
 * The limit of an address decides only how a token that was not found is answered.
 *
 * The token of an attempt is never in the cache: it ends with its attempt (attempt_tokens.h). */
#ifndef ASSAY_API_SERVER_AUTH_H
#define ASSAY_API_SERVER_AUTH_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/services/attempt_tokens.h"
#include "scheduler/services/tokens.h"
#include "scheduler/store/store.h"

#define AUTH_CACHE_MS 3000
#define AUTH_KNOWN_MS 3600000
#define AUTH_BATCH 256

struct auth;

/* A token that is looked up. Embedded in the struct of a request. */
struct auth_check {
    struct auth_check *next;
    const char *token, *peer; /* borrowed until done is called */
    /* Called in the thread of auth, once: must not block. */
    void (*done)(struct auth_check *c);
    /* The result: AS_OK; AS_E_DENIED: not valid; AS_E_UNAVAILABLE, AS_E_NOMEM: not known now. */
    struct as_err err;
    struct principal who; /* of AS_OK */
    bool is_one_too_many; /* of AS_E_DENIED: its address has sent too many of them */
};

/* db and attempts are borrowed. bad_tokens: how many tokens that are not valid one address may send
 * in a minute before the answer to them changes; 0: any. AS_E_NOMEM. */
AS_MUST_CHECK as_status auth_create(struct store *db, struct attempt_key *attempts,
                                    size_t bad_tokens, struct auth **ret, struct as_err *err);
/* No token may be looked up any more. NULL is fine. */
void auth_free(struct auth *a);
AS_DEFINE_FREEP(struct auth, auth_free)

/* The token of an Authorization header, as a view of it; NULL if the header is not "Bearer
 * TOKEN". */
const char *auth_bearer(const char *authorization);

/* Is this token in the cache? Makes no query; any thread. */
bool auth_recall(struct auth *a, const char *token, struct principal *ret);

/* Was this token valid in the last AUTH_KNOWN_MS, as far as this process remembers? For what may be
 * said while the database is away. Any thread. */
bool auth_knew(struct auth *a, const char *token);

/* Look the token up, and store a valid one in the cache. auth owns *c until it calls c->done. Any
 * thread; does not wait. */
void auth_look_up(struct auth *a, struct auth_check *c);

/* Look every token up again: one was revoked through this process. */
void auth_forget(struct auth *a);

/* Does the principal's role have its bit in `roles`? */
bool auth_allows(unsigned roles, const struct principal *p);

#endif
