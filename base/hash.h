/* SHA-256 (libcrypto), hexadecimal text, and random bytes from the kernel. */
#ifndef ASSAY_BASE_HASH_H
#define ASSAY_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define SHA256_BYTES 32
#define SHA256_HEX_SIZE 65 /* with the NUL */

/* A running digest; owned by the caller. NULL when memory is out. */
struct sha256 *sha256_create(void);
void sha256_free(struct sha256 *h);
AS_DEFINE_FREEP(struct sha256, sha256_free)
AS_MUST_CHECK as_status sha256_add(struct sha256 *h, const void *bytes, size_t len,
                                   struct as_err *err);
/* Ends the digest; only sha256_free may follow. */
AS_MUST_CHECK as_status sha256_end(struct sha256 *h, uint8_t ret[SHA256_BYTES], struct as_err *err);

AS_MUST_CHECK as_status sha256_of(const void *bytes, size_t len, char ret_hex[SHA256_HEX_SIZE],
                                  struct as_err *err);
AS_MUST_CHECK as_status sha256_of_file(const char *path, char ret_hex[SHA256_HEX_SIZE],
                                       int64_t *ret_size, struct as_err *err);

/* The digest of what is left of an open file, which may be a pipe.
 *   on_piece  NULL, or called after each piece with the bytes so far; an error that it returns ends
 *             the digest. It may write the piece elsewhere
 * Unlike sha256_of_file(), a signal ends a wait for the next piece (AS_E_IO). */
typedef as_status (*sha256_piece_fn)(void *arg, const void *piece, size_t len, int64_t so_far,
                                     struct as_err *err);
AS_MUST_CHECK as_status sha256_of_fd(int fd, sha256_piece_fn on_piece, void *arg,
                                     char ret_hex[SHA256_HEX_SIZE], int64_t *ret_size,
                                     struct as_err *err);

void hex_format(const uint8_t *bytes, size_t len, char *ret); /* 2 * len + 1 bytes, lower case */
bool sha256_hex_valid(const char *s);                         /* 64 lower-case digits */

/* HMAC-SHA-256 (RFC 2104). AS_E_NOMEM. */
AS_MUST_CHECK as_status hmac_sha256(const void *key, size_t key_len, const void *bytes, size_t len,
                                    uint8_t ret[SHA256_BYTES], struct as_err *err);

/* Are the bytes equal? Takes time that depends on len alone, so it leaks no secret. */
bool hash_equal(const void *a, const void *b, size_t len);

/* getrandom(2); never fails on a kernel that has booted. */
void random_bytes(void *ret, size_t len);

#endif
