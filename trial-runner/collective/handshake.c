/* Fields have fixed places, little endian, so ranks on machines of any byte order agree. Proofs are
 * compared in constant time. A hello of another attempt or epoch is AS_E_STALE and not a stranger:
 * the dialler of a new epoch is right to try again. */
#include "trial-runner/collective/handshake.h"

#include <endian.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/hash.h"

/* 0 magic and version  8 attempt  16 epoch  20 from  24 to  28 encrypts  32 nonce */
static const char magic[8] = "ASYRANK\2";

static void put32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof v);
}

static uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

void hello_encode(const struct world *w, int32_t to, uint8_t ret[HELLO_BYTES])
{
    uint64_t attempt = htole64(w->attempt);
    memset(ret, 0, HELLO_BYTES);
    memcpy(ret, magic, sizeof magic);
    memcpy(ret + 8, &attempt, sizeof attempt);
    put32(ret + 16, w->epoch);
    put32(ret + 20, (uint32_t)w->rank);
    put32(ret + 24, (uint32_t)to);
    put32(ret + 28, w->encrypt);
    random_bytes(ret + 32, NONCE_BYTES);
}

as_status hello_decode(const struct world *w, const uint8_t hello[HELLO_BYTES], int32_t *ret_from,
                       struct as_err *err)
{
    uint64_t attempt;
    if (memcmp(hello, magic, sizeof magic) != 0)
        return as_fail(err, AS_E_INVAL, "a peer that does not speak this protocol");
    memcpy(&attempt, hello + 8, sizeof attempt);
    attempt = le64toh(attempt);
    uint32_t epoch = get32(hello + 16), from = get32(hello + 20), to = get32(hello + 24);
    if (attempt != w->attempt || epoch != w->epoch)
        return as_fail(err, AS_E_STALE, "a peer of attempt %llx, epoch %u; expected %llx, epoch %u",
                       (unsigned long long)attempt, (unsigned)epoch, (unsigned long long)w->attempt,
                       (unsigned)w->epoch);
    if (to != (uint32_t)w->rank || from >= (uint32_t)w->n || from == to)
        return as_fail(err, AS_E_INVAL, "rank %u calls rank %u; this is rank %d of %d",
                       (unsigned)from, (unsigned)to, (int)w->rank, (int)w->n);
    if (get32(hello + 28) != w->encrypt)
        return as_fail(err, AS_E_INVAL, "rank %u encrypts %s; this rank does%s", (unsigned)from,
                       w->encrypt ? "nothing" : "what it sends", w->encrypt ? "" : " not");
    *ret_from = (int32_t)from;
    return AS_OK;
}

static as_status prove(const struct world *w, const char *side, const uint8_t hello[HELLO_BYTES],
                       const uint8_t nonce[NONCE_BYTES], uint8_t ret[PROOF_BYTES],
                       struct as_err *err)
{
    uint8_t text[8 + HELLO_BYTES + NONCE_BYTES] = {0};
    unsigned len = PROOF_BYTES;
    memcpy(text, side, strlen(side));
    memcpy(text + 8, hello, HELLO_BYTES);
    memcpy(text + 8 + HELLO_BYTES, nonce, NONCE_BYTES);
    if (!HMAC(EVP_sha256(), w->secret, WORLD_SECRET_BYTES, text, sizeof text, ret, &len))
        return as_fail_nomem(err);
    return AS_OK;
}

as_status challenge_encode(const struct world *w, const uint8_t hello[HELLO_BYTES],
                           uint8_t ret[CHALLENGE_BYTES], struct as_err *err)
{
    random_bytes(ret, NONCE_BYTES);
    return prove(w, "accept", hello, ret, ret + NONCE_BYTES, err);
}

static as_status compare(const struct world *w, const char *side, const uint8_t hello[HELLO_BYTES],
                         const uint8_t challenge[CHALLENGE_BYTES], const uint8_t *proof,
                         struct as_err *err)
{
    uint8_t expected[PROOF_BYTES];
    as_status st = prove(w, side, hello, challenge, expected, err);
    if (st < 0)
        return st;
    if (!hash_equal(expected, proof, PROOF_BYTES))
        return as_fail(err, AS_E_DENIED, "a peer that does not know the attempt's secret");
    return AS_OK;
}

as_status challenge_answer(const struct world *w, const uint8_t hello[HELLO_BYTES],
                           const uint8_t challenge[CHALLENGE_BYTES], uint8_t ret_proof[PROOF_BYTES],
                           struct as_err *err)
{
    as_status st = compare(w, "accept", hello, challenge, challenge + NONCE_BYTES, err);
    return st < 0 ? st : prove(w, "dial", hello, challenge, ret_proof, err);
}

as_status proof_check(const struct world *w, const uint8_t hello[HELLO_BYTES],
                      const uint8_t challenge[CHALLENGE_BYTES], const uint8_t proof[PROOF_BYTES],
                      struct as_err *err)
{
    return compare(w, "dial", hello, challenge, proof, err);
}

as_status handshake_keys(const struct world *w, const uint8_t hello[HELLO_BYTES],
                         const uint8_t challenge[CHALLENGE_BYTES], bool dialled,
                         struct cipher_keys *ret, struct as_err *err)
{
    as_status st = prove(w, "dialler", hello, challenge, dialled ? ret->send : ret->receive, err);
    return st < 0 ? st
                  : prove(w, "acceptor", hello, challenge, dialled ? ret->receive : ret->send, err);
}
