/* Two versions of one sum: checksum32_plain() defines the value, checksum_aes() uses the
 * processor's instruction where there is one. tests/base compare them for every length. Eight lanes
 * are independent chains of AES rounds, each round with a block of the text as its key, because the
 * instruction takes several cycles and one can begin in each. The last bytes are padded with zeros
 * and the length is mixed in, so a text and the same text with zeros behind it differ. */
#include "base/checksum.h"

#include <endian.h>
#include <string.h>

#define LANES 8
#define BLOCK ((size_t)16)
#define STRIPE (LANES * BLOCK)
#define LAST_ROUNDS 3 /* two spread a bit over all others */

/* What the lanes begin with: constants without structure, the fractional bits of the square roots
 * of the first primes. */
static const uint64_t first_lanes[LANES][2] = {
    {0x6a09e667f3bcc909, 0xbb67ae8584caa73b}, {0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1},
    {0x510e527fade682d1, 0x9b05688c2b3e6c1f}, {0x1f83d9abfb41bd6b, 0x5be0cd19137e2179},
    {0xcbbb9d5dc1059ed8, 0x629a292a367cd507}, {0x9159015a3070dd17, 0x152fecd8f70e5939},
    {0x67332667ffc00b31, 0x8eb44a8768581511}, {0xdb0c2e0d64f98fa7, 0x47b5481dbefa4fa4},
};

struct block {
    unsigned char b[BLOCK];
};

static struct block block_of(uint64_t low, uint64_t high)
{
    struct block ret;
    low = htole64(low);
    high = htole64(high);
    memcpy(ret.b, &low, sizeof low);
    memcpy(ret.b + sizeof low, &high, sizeof high);
    return ret;
}

static uint32_t low_word(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

/* --- plain C --- */

/* FIPS 197, figure 7. */
static const unsigned char s_box[256] = {
    0x63, 0x7c, 0x77, 0x7b, 0xf2, 0x6b, 0x6f, 0xc5, 0x30, 0x01, 0x67, 0x2b, 0xfe, 0xd7, 0xab, 0x76,
    0xca, 0x82, 0xc9, 0x7d, 0xfa, 0x59, 0x47, 0xf0, 0xad, 0xd4, 0xa2, 0xaf, 0x9c, 0xa4, 0x72, 0xc0,
    0xb7, 0xfd, 0x93, 0x26, 0x36, 0x3f, 0xf7, 0xcc, 0x34, 0xa5, 0xe5, 0xf1, 0x71, 0xd8, 0x31, 0x15,
    0x04, 0xc7, 0x23, 0xc3, 0x18, 0x96, 0x05, 0x9a, 0x07, 0x12, 0x80, 0xe2, 0xeb, 0x27, 0xb2, 0x75,
    0x09, 0x83, 0x2c, 0x1a, 0x1b, 0x6e, 0x5a, 0xa0, 0x52, 0x3b, 0xd6, 0xb3, 0x29, 0xe3, 0x2f, 0x84,
    0x53, 0xd1, 0x00, 0xed, 0x20, 0xfc, 0xb1, 0x5b, 0x6a, 0xcb, 0xbe, 0x39, 0x4a, 0x4c, 0x58, 0xcf,
    0xd0, 0xef, 0xaa, 0xfb, 0x43, 0x4d, 0x33, 0x85, 0x45, 0xf9, 0x02, 0x7f, 0x50, 0x3c, 0x9f, 0xa8,
    0x51, 0xa3, 0x40, 0x8f, 0x92, 0x9d, 0x38, 0xf5, 0xbc, 0xb6, 0xda, 0x21, 0x10, 0xff, 0xf3, 0xd2,
    0xcd, 0x0c, 0x13, 0xec, 0x5f, 0x97, 0x44, 0x17, 0xc4, 0xa7, 0x7e, 0x3d, 0x64, 0x5d, 0x19, 0x73,
    0x60, 0x81, 0x4f, 0xdc, 0x22, 0x2a, 0x90, 0x88, 0x46, 0xee, 0xb8, 0x14, 0xde, 0x5e, 0x0b, 0xdb,
    0xe0, 0x32, 0x3a, 0x0a, 0x49, 0x06, 0x24, 0x5c, 0xc2, 0xd3, 0xac, 0x62, 0x91, 0x95, 0xe4, 0x79,
    0xe7, 0xc8, 0x37, 0x6d, 0x8d, 0xd5, 0x4e, 0xa9, 0x6c, 0x56, 0xf4, 0xea, 0x65, 0x7a, 0xae, 0x08,
    0xba, 0x78, 0x25, 0x2e, 0x1c, 0xa6, 0xb4, 0xc6, 0xe8, 0xdd, 0x74, 0x1f, 0x4b, 0xbd, 0x8b, 0x8a,
    0x70, 0x3e, 0xb5, 0x66, 0x48, 0x03, 0xf6, 0x0e, 0x61, 0x35, 0x57, 0xb9, 0x86, 0xc1, 0x1d, 0x9e,
    0xe1, 0xf8, 0x98, 0x11, 0x69, 0xd9, 0x8e, 0x94, 0x9b, 0x1e, 0x87, 0xe9, 0xce, 0x55, 0x28, 0xdf,
    0x8c, 0xa1, 0x89, 0x0d, 0xbf, 0xe6, 0x42, 0x68, 0x41, 0x99, 0x2d, 0x0f, 0xb0, 0x54, 0xbb, 0x16,
};

static unsigned char twice(unsigned char x) /* in GF(2^8) */
{
    return (unsigned char)(x << 1 ^ (x >> 7) * 0x1b);
}

/* A round of AES (FIPS 197, 5.1): SubBytes, ShiftRows, MixColumns, and then `key` is added. */
static struct block round_plain(struct block x, struct block key)
{
    struct block ret;
    for (size_t column = 0; column < BLOCK; column += 4) {
        unsigned char s[4], all = 0;
        for (size_t row = 0; row < 4; row++) {
            s[row] = s_box[x.b[(column + 5 * row) % BLOCK]];
            all ^= s[row];
        }
        for (size_t row = 0; row < 4; row++)
            ret.b[column + row] = (unsigned char)(s[row] ^ all ^ twice(s[row] ^ s[(row + 1) % 4]) ^
                                                  key.b[column + row]);
    }
    return ret;
}

static void add_stripe(struct block lanes[LANES], const unsigned char *p)
{
    for (size_t i = 0; i < LANES; i++) {
        struct block key;
        memcpy(key.b, p + BLOCK * i, BLOCK);
        lanes[i] = round_plain(lanes[i], key);
    }
}

uint32_t checksum32_plain(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    unsigned char last[STRIPE] = {0};
    struct block lanes[LANES], h = block_of(len, first_lanes[0][0]), key = h;
    for (size_t i = 0; i < LANES; i++)
        lanes[i] = block_of(first_lanes[i][0], first_lanes[i][1]);
    for (size_t s = 0; s < len / STRIPE; s++, p += STRIPE)
        add_stripe(lanes, p);
    memcpy(last, p, len % STRIPE);
    add_stripe(lanes, last);
    for (size_t i = 0; i < LANES; i++)
        h = round_plain(h, lanes[i]);
    for (size_t i = 0; i < LAST_ROUNDS; i++)
        h = round_plain(h, key);
    return low_word(h.b);
}

/* --- the processor's instruction --- */

#ifdef __x86_64__

#include <immintrin.h>

#define AES __attribute__((target("aes,sse2")))
#define AHEAD 1024 /* bytes that are fetched in advance */

AES static inline __m128i load(const void *p)
{
    return _mm_loadu_si128(p);
}

AES static uint32_t checksum_aes(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    unsigned char last[STRIPE] = {0};
    struct block start = block_of(len, first_lanes[0][0]);
    __m128i lanes[LANES], h = load(&start), key = h;
    for (size_t i = 0; i < LANES; i++)
        lanes[i] = load(first_lanes[i]);
    for (size_t s = 0; s < len / STRIPE; s++, p += STRIPE) {
        _mm_prefetch((const char *)p + AHEAD, _MM_HINT_T0);
        _mm_prefetch((const char *)p + AHEAD + STRIPE / 2, _MM_HINT_T0);
#pragma GCC unroll 8
        for (size_t i = 0; i < LANES; i++)
            lanes[i] = _mm_aesenc_si128(lanes[i], load(p + BLOCK * i));
    }
    memcpy(last, p, len % STRIPE);
    for (size_t i = 0; i < LANES; i++)
        lanes[i] = _mm_aesenc_si128(lanes[i], load(last + BLOCK * i));
    for (size_t i = 0; i < LANES; i++)
        h = _mm_aesenc_si128(h, lanes[i]);
    for (size_t i = 0; i < LAST_ROUNDS; i++)
        h = _mm_aesenc_si128(h, key);
    return (uint32_t)_mm_cvtsi128_si32(h);
}

uint32_t checksum32(const void *bytes, size_t len)
{
    return __builtin_cpu_supports("aes") ? checksum_aes(bytes, len) : checksum32_plain(bytes, len);
}

#else

uint32_t checksum32(const void *bytes, size_t len)
{
    return checksum32_plain(bytes, len);
}

#endif
