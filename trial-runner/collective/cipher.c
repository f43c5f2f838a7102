/* The context keeps the key's schedule; only the nonce is new for each frame. 2^64 frames are more
 * than a connection lives for, so no nonce is used twice with one key. */
#include "trial-runner/collective/cipher.h"

#include <endian.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <string.h>

#define NONCE_BYTES 12 /* of GCM: the number of the frame, behind zeros */

struct cipher {
    EVP_CIPHER_CTX *context;
    uint64_t frames;
};

as_status cipher_create(const uint8_t key[CIPHER_KEY_BYTES], struct cipher **ret,
                        struct as_err *err)
{
    AS_AUTO(cipher_freep) struct cipher *c = as_calloc(1, sizeof *c);
    if (!c || !(c->context = EVP_CIPHER_CTX_new()) ||
        EVP_CipherInit_ex(c->context, EVP_aes_256_gcm(), NULL, key, NULL, 1) != 1)
        return as_fail_nomem(err);
    *ret = as_steal(c);
    return AS_OK;
}

void cipher_free(struct cipher *c)
{
    if (c)
        EVP_CIPHER_CTX_free(c->context);
    free(c);
}

/* Begin the next frame, with its head as what is authenticated beside it. */
static bool begin(struct cipher *c, bool encrypt, const uint8_t *head, size_t n)
{
    uint8_t nonce[NONCE_BYTES] = {0};
    uint64_t number = htobe64(c->frames++);
    int done;
    memcpy(nonce + NONCE_BYTES - sizeof number, &number, sizeof number);
    return EVP_CipherInit_ex(c->context, NULL, NULL, NULL, nonce, encrypt) == 1 &&
           EVP_CipherUpdate(c->context, NULL, &done, head, (int)n) == 1;
}

/* GCM gives out all bytes at once: none are left for the end. */
static bool convert(struct cipher *c, const uint8_t *bytes, size_t n, uint8_t *ret)
{
    int done;
    return n == 0 || EVP_CipherUpdate(c->context, ret, &done, bytes, (int)n) == 1;
}

static bool finish(struct cipher *c)
{
    uint8_t none[EVP_MAX_BLOCK_LENGTH];
    int done;
    return EVP_CipherFinal_ex(c->context, none, &done) == 1;
}

as_status cipher_encrypt(struct cipher *c, const uint8_t *head, size_t head_bytes,
                         const uint8_t *bytes, size_t n, uint8_t *ret, struct as_err *err)
{
    if (begin(c, true, head, head_bytes) && convert(c, bytes, n, ret) && finish(c) &&
        EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_GET_TAG, CIPHER_TAG_BYTES, ret + n) == 1)
        return AS_OK;
    return as_fail_nomem(err);
}

as_status cipher_decrypt(struct cipher *c, const uint8_t *head, size_t head_bytes, uint8_t *bytes,
                         size_t n, struct as_err *err)
{
    if (begin(c, false, head, head_bytes) && convert(c, bytes, n, bytes) &&
        EVP_CIPHER_CTX_ctrl(c->context, EVP_CTRL_AEAD_SET_TAG, CIPHER_TAG_BYTES, bytes + n) == 1 &&
        finish(c))
        return AS_OK;
    return as_fail(err, AS_E_IO,
                   "frame %llu is not what the peer sent: it was changed, repeated, or another is "
                   "missing",
                   (unsigned long long)c->frames - 1);
}
