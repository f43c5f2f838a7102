/* one_bit: the sign of each value, and two means per block.
 *
 * Seide et al. 2014: a value is sent as one bit, is it negative; the receiver puts in its place the
 * mean of the block's values of that sign, which makes the squared error least. The error goes into
 * the next message; without that the method does not converge.
 *
 * A block is what the paper calls a column: one row of a weight matrix here (row-major), or several
 * short ones, so that the two means weigh little. The means are bfloat16 (8 bits of precision, the
 * range of float32): their rounding is part of the error that is fed back.
 *
 * A block: mean of the values >= 0, mean of the others (0 if there is none), then a bit for each
 * value, the first one lowest, padded with zeros to whole bytes. A NaN counts as negative. */
#include "trial-runner/distributed/codec_priv.h"

#include <string.h>

#include "base/cpu_clones.h"

#define MEANS_BYTES 4
#define LANES 16
#define WORD 32 /* values whose bits are made together */

static size_t one_bit_bytes(const struct codec *c, size_t n)
{
    (void)c;
    return MEANS_BYTES + (n + 7) / 8;
}

/* To nearest, ties to even. */
static uint16_t bf16_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffff) > 0x7f800000)
        return 0x7fc0;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float of_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Lanes make the sum independent of how wide the processor's vectors are. */
CPU_INLINE float sum_of_lanes(float *lane)
{
    for (size_t width = LANES / 2; width; width /= 2)
        for (size_t i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

/* The sums of the values of either sign. */
CPU_CLONES static void sums_by_sign(const float *v, size_t n, float *ret_plus, float *ret_minus)
{
    float plus[LANES] = {0}, minus[LANES] = {0};
    size_t whole = n / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < LANES; k++) {
            float x = v[i + k];
            plus[k] += x >= 0 ? x : 0;
            minus[k] += x >= 0 ? 0 : x;
        }
    for (size_t i = whole; i < n; i++) {
        plus[i - whole] += v[i] >= 0 ? v[i] : 0;
        minus[i - whole] += v[i] >= 0 ? 0 : v[i];
    }
    *ret_plus = sum_of_lanes(plus);
    *ret_minus = sum_of_lanes(minus);
}

CPU_INLINE uint32_t word_of(const float *v, size_t n)
{
    uint32_t word = 0;
    for (size_t k = 0; k < n; k++)
        word |= (uint32_t)(v[k] >= 0) << k;
    return word;
}

/* Writes the bits, and returns how many are set. */
CPU_CLONES static size_t pack_signs(const float *v, size_t n, uint8_t *out)
{
    size_t whole = n / WORD * WORD, set = 0;
    for (size_t i = 0; i < whole; i += WORD) {
        uint32_t word = word_of(v + i, WORD);
        set += (size_t)__builtin_popcount(word);
        memcpy(out + i / 8, &word, sizeof word);
    }
    if (whole < n) {
        uint32_t word = word_of(v + whole, n - whole);
        set += (size_t)__builtin_popcount(word);
        memcpy(out + whole / 8, &word, (n - whole + 7) / 8);
    }
    return set;
}

/* to[i] = from[i] + (the bit is set ? plus : minus). to may be from. */
CPU_CLONES static void add_by_sign(const uint8_t *bits, size_t n, float plus, float minus,
                                   const float *from, float *to)
{
    size_t whole = n / WORD * WORD;
    for (size_t i = 0; i < whole; i += WORD) {
        uint32_t word;
        memcpy(&word, bits + i / 8, sizeof word);
        for (size_t k = 0; k < WORD; k++)
            to[i + k] = from[i + k] + (word >> k & 1 ? plus : minus);
    }
    for (size_t i = whole; i < n; i++)
        to[i] = from[i] + (bits[i / 8] >> i % 8 & 1 ? plus : minus);
}

static void one_bit_encode(struct codec *c, const float *v, size_t n, uint8_t *out, float *after)
{
    float plus, minus;
    (void)c;
    sums_by_sign(v, n, &plus, &minus);
    size_t set = pack_signs(v, n, out + MEANS_BYTES);
    uint16_t means[2] = {bf16_of(set ? plus / (float)set : 0),
                         bf16_of(set < n ? minus / (float)(n - set) : 0)};
    memcpy(out, means, sizeof means);
    if (after)
        add_by_sign(out + MEANS_BYTES, n, -of_bf16(means[0]), -of_bf16(means[1]), v, after);
}

static const char *one_bit_check(const struct codec *c, const uint8_t *in, size_t n)
{
    uint16_t means[2];
    (void)c;
    memcpy(means, in, sizeof means);
    if (means[0] & 0x8000)
        return "the mean of the values from 0 on is negative";
    if (means[1] != 0 && !(means[1] & 0x8000) && means[1] != 0x7fc0)
        return "the mean of the negative values is positive";
    if (n % 8 && in[MEANS_BYTES + n / 8] >> n % 8)
        return "bits are set behind the last value";
    return NULL;
}

static void one_bit_decode_add(const struct codec *c, const uint8_t *in, size_t n, float *sum)
{
    uint16_t means[2];
    (void)c;
    memcpy(means, in, sizeof means);
    add_by_sign(in + MEANS_BYTES, n, of_bf16(means[0]), of_bf16(means[1]), sum, sum);
}

const struct block_ops block_one_bit = {
    .name = "one_bit",
    .rule = {.at_least = 512, .by_rows = true, .merges = true},
    .bytes = one_bit_bytes,
    .encode = one_bit_encode,
    .check = one_bit_check,
    .decode_add = one_bit_decode_add,
};
