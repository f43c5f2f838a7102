/* Who makes a request: bearer tokens, with a short cache so that not every request queries the
 * database, and a limit for addresses that guess. The cache stores the SHA-256 of a token for
 * AUTH_CACHE_MS, and never longer than the token is valid. */
#ifndef ASSAY_API_SERVER_AUTH_H
#define ASSAY_API_SERVER_AUTH_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/status.h"
#include "scheduler/services/tokens.h"
#include "scheduler/store/store.h"

#define AUTH_CACHE_MS 3000
#define AUTH_GOOD_MS 3600000

struct auth;

/* bad_tokens: how many tokens that are not valid one address may send in a minute; 0: any. Returns
 * NULL when memory is out. */
struct auth *auth_create(size_t bad_tokens);
void auth_free(struct auth *a);
AS_DEFINE_FREEP(struct auth, auth_free)

/* The token of an Authorization header, as a view of it; NULL if the header is not "Bearer
 * TOKEN". */
const char *auth_bearer(const char *authorization);

/* Is this token in the cache? Makes no query; any thread. */
bool auth_recall(struct auth *a, const char *token, struct principal *ret);

/* May a token that is not in the cache be looked up for this address? False: the address has sent
 * too many tokens that were not valid. A token that was valid in the last AUTH_GOOD_MS may always,
 * so that a guesser behind the same proxy locks nobody out. Makes no query; any thread. */
bool auth_may_verify(struct auth *a, const char *peer, const char *token);

/* Query the database, and store a valid token in the cache. A token that is not valid is counted
 * for the address `peer`. AS_E_DENIED, AS_E_UNAVAILABLE. */
AS_MUST_CHECK as_status auth_verify(struct auth *a, struct store *db, const char *peer,
                                    const char *token, struct principal *ret, struct as_err *err);

/* Look every token up again: one was revoked through this process. */
void auth_forget(struct auth *a);

/* Does the principal's role have its bit in `roles`? */
bool auth_allows(unsigned roles, const struct principal *p);

#endif
