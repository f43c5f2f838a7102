/* Encryption of what travels between two ranks over TCP: AES-256-GCM (NIST SP 800-38D), by
 * OpenSSL's libcrypto, with a key of its own for each direction of each connection.
 *
 * The nonce is the number of the frame on its connection and does not travel. So a frame that was
 * changed, left out, repeated or moved is noticed. The head of a frame (step, tensor, length) is
 * not hidden, but nobody can change it. Threads: one at a time. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECTIVE_CIPHER_H
#define ASSAY_TRIAL_RUNNER_COLLECTIVE_CIPHER_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define CIPHER_KEY_BYTES 32
#define CIPHER_TAG_BYTES 16

/* The keys of a connection, as one side sees them. */
struct cipher_keys {
    uint8_t send[CIPHER_KEY_BYTES], receive[CIPHER_KEY_BYTES];
};

/* One direction of a connection. */
struct cipher;

/* `ret` is the caller's, free with cipher_free(), which erases the key. AS_E_NOMEM. */
AS_MUST_CHECK as_status cipher_create(const uint8_t key[CIPHER_KEY_BYTES], struct cipher **ret,
                                      struct as_err *err);
void cipher_free(struct cipher *c);
AS_DEFINE_FREEP(struct cipher, cipher_free)

/* The next frame: ret[n + CIPHER_TAG_BYTES] = the n encrypted bytes, and the tag of head and bytes.
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status cipher_encrypt(struct cipher *c, const uint8_t *head, size_t head_bytes,
                                       const uint8_t *bytes, size_t n, uint8_t *ret,
                                       struct as_err *err);
/* The same back, in place: bytes[n + CIPHER_TAG_BYTES]. AS_E_IO: this is not what the peer sent as
 * its next frame; the connection is of no use any more. */
AS_MUST_CHECK as_status cipher_decrypt(struct cipher *c, const uint8_t *head, size_t head_bytes,
                                       uint8_t *bytes, size_t n, struct as_err *err);

#endif
