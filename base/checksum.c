/* Two versions of one sum: checksum32_plain() defines the value, checksum_avx2() computes four
 * lanes in a register and is used where the processor has AVX2. tests/base compare them for every
 * length. The last bytes are padded with zeros and the length is mixed in, so a text and the same
 * text with zeros behind it differ. */
#include "base/checksum.h"

#include <endian.h>
#include <string.h>

#define LANES 8
#define STRIPE ((size_t)LANES * 8)

/* Odd constants without structure: fractional bits of the square roots of the first primes. */
static const uint64_t first_keys[LANES] = {
    0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};
#define KEY_STEP 0x9e3779b97f4a7c15U /* a key's change from stripe to stripe */

static uint64_t word_at(const unsigned char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return le64toh(w);
}

static void add_stripe(uint64_t acc[LANES], const unsigned char *p, uint64_t stripe)
{
    for (size_t i = 0; i < LANES; i++) {
        uint64_t word = word_at(p + 8 * i);
        uint64_t keyed = word ^ (first_keys[i] + stripe * KEY_STEP);
        acc[i] += (keyed & UINT32_MAX) * (keyed >> 32);
        acc[i ^ 1] += word;
    }
}

static uint64_t mix(uint64_t x) /* splitmix64's (Steele, Lea and Flood 2014) */
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

/* The rest of the bytes, padded with zeros, and the length. */
static uint32_t end(uint64_t acc[LANES], const unsigned char *rest, size_t len)
{
    unsigned char last[STRIPE] = {0};
    size_t stripes = len / STRIPE;
    memcpy(last, rest, len % STRIPE);
    add_stripe(acc, last, stripes);
    uint64_t h = mix(len + KEY_STEP);
    for (size_t i = 0; i < LANES; i++)
        h = mix(h ^ acc[i]) + KEY_STEP * (i + 1);
    return (uint32_t)(h ^ h >> 32);
}

uint32_t checksum32_plain(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t acc[LANES] = {0};
    for (size_t s = 0; s < len / STRIPE; s++, p += STRIPE)
        add_stripe(acc, p, s);
    return end(acc, p, len);
}

#ifdef __x86_64__

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i add_half(__m256i acc, __m256i words, __m256i keys)
{
    __m256i keyed = _mm256_xor_si256(words, keys);
    __m256i product = _mm256_mul_epu32(keyed, _mm256_srli_epi64(keyed, 32));
    __m256i swapped = _mm256_shuffle_epi32(words, _MM_SHUFFLE(1, 0, 3, 2));
    return _mm256_add_epi64(acc, _mm256_add_epi64(product, swapped));
}

AVX2 static uint32_t checksum_avx2(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t acc[LANES];
    __m256i low = _mm256_setzero_si256(), high = low;
    __m256i keys_low = _mm256_loadu_si256((const void *)first_keys);
    __m256i keys_high = _mm256_loadu_si256((const void *)(first_keys + 4));
    const __m256i step = _mm256_set1_epi64x((long long)KEY_STEP);
    for (size_t s = 0; s < len / STRIPE; s++, p += STRIPE) {
        _mm_prefetch((const char *)p + 1024, _MM_HINT_T0);
        low = add_half(low, _mm256_loadu_si256((const void *)p), keys_low);
        high = add_half(high, _mm256_loadu_si256((const void *)(p + 32)), keys_high);
        keys_low = _mm256_add_epi64(keys_low, step);
        keys_high = _mm256_add_epi64(keys_high, step);
    }
    _mm256_storeu_si256((void *)acc, low);
    _mm256_storeu_si256((void *)(acc + 4), high);
    return end(acc, p, len);
}

uint32_t checksum32(const void *bytes, size_t len)
{
    return __builtin_cpu_supports("avx2") ? checksum_avx2(bytes, len)
                                          : checksum32_plain(bytes, len);
}

#else

uint32_t checksum32(const void *bytes, size_t len)
{
    return checksum32_plain(bytes, len);
}

#endif
