/* A layer over libcrypto. Files are hashed in pieces, and the size that is returned is that of the
 * bytes that were hashed: another program may be writing to the file. hash_equal() takes the same
 * time for any difference, because secrets are compared with it. */
#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"

struct sha256 {
    EVP_MD_CTX *ctx;
};

struct sha256 *sha256_create(void)
{
    struct sha256 *h = as_calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->ctx = EVP_MD_CTX_new();
    if (!h->ctx || EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1) {
        sha256_free(h);
        return NULL;
    }
    return h;
}

void sha256_free(struct sha256 *h)
{
    if (!h)
        return;
    EVP_MD_CTX_free(h->ctx);
    free(h);
}

as_status sha256_add(struct sha256 *h, const void *bytes, size_t len, struct as_err *err)
{
    if (EVP_DigestUpdate(h->ctx, bytes, len) != 1)
        return as_fail(err, AS_E_INTERNAL, "libcrypto failed to digest %zu bytes", len);
    return AS_OK;
}

as_status sha256_end(struct sha256 *h, uint8_t ret[SHA256_BYTES], struct as_err *err)
{
    unsigned n = 0;
    if (EVP_DigestFinal_ex(h->ctx, ret, &n) != 1 || n != SHA256_BYTES)
        return as_fail(err, AS_E_INTERNAL, "libcrypto failed to end a digest");
    return AS_OK;
}

as_status hmac_sha256(const void *key, size_t key_len, const void *bytes, size_t len,
                      uint8_t ret[SHA256_BYTES], struct as_err *err)
{
    unsigned n = 0;
    if (!HMAC(EVP_sha256(), key, (int)key_len, bytes, len, ret, &n))
        return as_fail_nomem(err);
    return AS_OK;
}

void hex_format(const uint8_t *bytes, size_t len, char *ret)
{
    for (size_t i = 0; i < len; i++) {
        ret[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        ret[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    ret[2 * len] = 0;
}

bool sha256_hex_valid(const char *s)
{
    return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

as_status sha256_of(const void *bytes, size_t len, char ret_hex[SHA256_HEX_SIZE],
                    struct as_err *err)
{
    AS_AUTO(sha256_freep) struct sha256 *h = sha256_create();
    uint8_t digest[SHA256_BYTES];
    if (!h)
        return as_fail(err, AS_E_NOMEM, "out of memory for a digest");
    as_status st = sha256_add(h, bytes, len, err);
    if (st != AS_OK)
        return st;
    st = sha256_end(h, digest, err);
    if (st != AS_OK)
        return st;
    hex_format(digest, sizeof digest, ret_hex);
    return AS_OK;
}

static as_status digest_fd(int fd, bool retry, sha256_piece_fn on_piece, void *arg,
                           char ret_hex[SHA256_HEX_SIZE], int64_t *ret_size, struct as_err *err)
{
    AS_AUTO(sha256_freep) struct sha256 *h = sha256_create();
    uint8_t digest[SHA256_BYTES];
    char chunk[65536];
    int64_t size = 0;
    if (!h)
        return as_fail(err, AS_E_NOMEM, "out of memory for a digest");
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) != 0;) {
        if (n < 0 && errno == EINTR && retry)
            continue;
        if (n < 0)
            return as_fail(err, AS_E_IO, "cannot read: %s", strerror(errno));
        size += n;
        as_status st = sha256_add(h, chunk, (size_t)n, err);
        if (st == AS_OK && on_piece)
            st = on_piece(arg, chunk, (size_t)n, size, err);
        if (st != AS_OK)
            return st;
    }
    as_status st = sha256_end(h, digest, err);
    if (st != AS_OK)
        return st;
    hex_format(digest, sizeof digest, ret_hex);
    if (ret_size)
        *ret_size = size;
    return AS_OK;
}

as_status sha256_of_fd(int fd, sha256_piece_fn on_piece, void *arg, char ret_hex[SHA256_HEX_SIZE],
                       int64_t *ret_size, struct as_err *err)
{
    return digest_fd(fd, false, on_piece, arg, ret_hex, ret_size, err);
}

as_status sha256_of_file(const char *path, char ret_hex[SHA256_HEX_SIZE], int64_t *ret_size,
                         struct as_err *err)
{
    AS_AUTO(file_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return as_fail(err, errno == ENOENT ? AS_E_NOT_FOUND : AS_E_IO, "cannot open %.200s: %s",
                       path, strerror(errno));
    as_status st = digest_fd(fd, true, NULL, NULL, ret_hex, ret_size, err);
    return st < 0 ? as_err_prefix(err, st, "%.200s", path) : AS_OK;
}

bool hash_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

void random_bytes(void *ret, size_t len)
{
    char *p = ret;
    while (len) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0)
            continue; /* EINTR */
        p += n;
        len -= (size_t)n;
    }
}
