/* The tokens of attempts: what the process of a trial may show to the API.
 *
 * A token is `assay_trial_SWEEP.NUMBER.ATTEMPT_MAC`: the key of the sweep (which is never used
 * again), the trial's number, the attempt's number, and a MAC of these three under the key of the
 * installation (HMAC-SHA-256, cut to 160 bits). The attempt's number is what fences the writes of a
 * trial, so a token needs no other fence. It has no row: it is valid while the trial runs and this
 * is its attempt, and a claim that is repeated gets the same text again. Who writes a token without
 * the key is found out before any query. */
#ifndef ASSAY_SCHEDULER_SERVICES_ATTEMPT_TOKENS_H
#define ASSAY_SCHEDULER_SERVICES_ATTEMPT_TOKENS_H

#include "base/mem.h"
#include "scheduler/services/tokens.h"
#include "scheduler/store/attempt_token_store.h"

/* The key of the installation, which is read when it is first needed. Any thread. */
struct attempt_key;

/* db is borrowed. AS_E_NOMEM. */
AS_MUST_CHECK as_status attempt_key_create(struct store *db, struct attempt_key **ret,
                                           struct as_err *err);
void attempt_key_free(struct attempt_key *k); /* NULL is fine */
AS_DEFINE_FREEP(struct attempt_key, attempt_key_free)

/* The token of this attempt. AS_E_UNAVAILABLE, AS_E_NOT_FOUND: the key cannot be read;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status attempt_token_make(struct attempt_key *k, const struct attempt_name *name,
                                           char ret[TOKEN_TEXT_SIZE], struct as_err *err);

/* Set is_valid, and who, of those checks whose text is the token of an attempt that is current.
 * Leaves the others alone. One query, and none if no text has the right MAC. AS_E_UNAVAILABLE,
 * AS_E_NOMEM: of all of them. */
AS_MUST_CHECK as_status attempt_tokens_verify(struct attempt_key *k, struct token_check *checks,
                                              size_t n, struct as_err *err);

#endif
