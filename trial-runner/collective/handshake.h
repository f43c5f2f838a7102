/* How two ranks prove to each other, on a new connection, that they belong to the same world.
 *
 * The dialler sends a hello with a nonce; the acceptor answers with its own nonce and a proof; the
 * dialler sends its proof. A proof is HMAC-SHA256 (RFC 2104) under the attempt's secret over the
 * side's name, the hello and both nonces, so neither side can replay the other's. Pure: bytes in,
 * bytes out. The secret keeps strangers and other epochs out; what follows is hidden from who can
 * read the network only in a world that encrypts (world.h), with keys of this connection. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_HANDSHAKE_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_HANDSHAKE_H

#include <stdint.h>

#include "base/status.h"
#include "trial-runner/collective/cipher.h"
#include "trial-runner/collective/world.h"

#define NONCE_BYTES 16
#define PROOF_BYTES 32
#define HELLO_BYTES 48
#define CHALLENGE_BYTES (NONCE_BYTES + PROOF_BYTES)

/* The dialler's first message, to rank `to`; draws its nonce. */
void hello_encode(const struct world *w, int32_t to, uint8_t ret[HELLO_BYTES]);

/* Checks a hello that this rank received; *ret_from is the rank that dialled.
 * AS_E_INVAL   it is no hello, or is meant for another rank, or one of the two does not encrypt
 * AS_E_STALE   another attempt or epoch; the message names both */
AS_MUST_CHECK as_status hello_decode(const struct world *w, const uint8_t hello[HELLO_BYTES],
                                     int32_t *ret_from, struct as_err *err);

/* The acceptor's answer; draws its nonce. AS_E_NOMEM. */
AS_MUST_CHECK as_status challenge_encode(const struct world *w, const uint8_t hello[HELLO_BYTES],
                                         uint8_t ret[CHALLENGE_BYTES], struct as_err *err);

/* The dialler checks the answer and writes its proof. AS_E_DENIED: the acceptor does not know the
 * secret. */
AS_MUST_CHECK as_status challenge_answer(const struct world *w, const uint8_t hello[HELLO_BYTES],
                                         const uint8_t challenge[CHALLENGE_BYTES],
                                         uint8_t ret_proof[PROOF_BYTES], struct as_err *err);

/* The acceptor checks the dialler's proof. AS_E_DENIED: it does not know the secret. */
AS_MUST_CHECK as_status proof_check(const struct world *w, const uint8_t hello[HELLO_BYTES],
                                    const uint8_t challenge[CHALLENGE_BYTES],
                                    const uint8_t proof[PROOF_BYTES], struct as_err *err);

/* The keys of a connection whose two proofs were right: HMACs as the proofs, under names of their
 * own. `dialled`: of the side that dialled. AS_E_NOMEM. */
AS_MUST_CHECK as_status handshake_keys(const struct world *w, const uint8_t hello[HELLO_BYTES],
                                       const uint8_t challenge[CHALLENGE_BYTES], bool dialled,
                                       struct cipher_keys *ret, struct as_err *err);

#endif
