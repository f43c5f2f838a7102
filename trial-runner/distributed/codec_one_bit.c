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
 * A block: mean of the values without a minus, mean of the others (0 if there is none), then a bit
 * for each value, 1 without a minus; zeros and NaNs have signs too. From each whole block of 256
 * values, bit k of the i-th of 8 uint32 is about value 8 k + i, so that vectors make and read them
 * without moving bits between lanes. The bits of the rest are in order, the first one lowest,
 * padded with zeros. */
#include "trial-runner/distributed/gradient_codec_priv.h"

#include <string.h>

#include "base/cpu_clones.h"

#define MEANS_BYTES 4
#define LANES 8
#define GROUP (32 * LANES) /* values whose bits are made together */

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

/* Eight numbers at a time, whatever the processor's vectors: gcc makes none of such loops. */
typedef float lanes_f32 __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t lanes_i32 __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef uint32_t lanes_u32 __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

CPU_INLINE bool is_negative(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u >> 31;
}

CPU_INLINE float sum_of_lanes(float *lane)
{
    for (size_t width = LANES; width; width /= 2)
        for (size_t i = 0; i < width; i++)
            lane[i] += lane[i + width];
    return lane[0];
}

/* The sums of the values of either sign. */
CPU_CLONES static void sums_by_sign(const float *v, size_t n, float *ret_plus, float *ret_minus)
{
    lanes_f32 plus[2] = {{0}}, minus[2] = {{0}};
    float lane[2][2 * LANES];
    size_t whole = n / (2 * LANES) * (2 * LANES);
    for (size_t i = 0; i < whole; i += 2 * LANES)
        for (size_t k = 0; k < 2; k++) {
            lanes_i32 x = *(const lanes_i32 *)(v + i + k * LANES), negative = x >> 31;
            plus[k] += (lanes_f32)(x & ~negative);
            minus[k] += (lanes_f32)(x & negative);
        }
    memcpy(lane[0], plus, sizeof plus);
    memcpy(lane[1], minus, sizeof minus);
    for (size_t i = whole; i < n; i++)
        lane[is_negative(v[i])][i - whole] += v[i];
    *ret_plus = sum_of_lanes(lane[0]);
    *ret_minus = sum_of_lanes(lane[1]);
}

/* Writes the bits, and returns how many are set. */
CPU_CLONES static size_t pack_signs(const float *v, size_t n, uint8_t *out)
{
    size_t whole = n / GROUP * GROUP, set = 0;
    for (size_t i = 0; i < whole; i += GROUP) {
        lanes_u32 bits = {0};
        uint64_t words[sizeof bits / sizeof(uint64_t)];
        for (unsigned k = 0; k < 32; k++)
            bits |= (~*(const lanes_u32 *)(v + i + k * LANES) >> 31) << k;
        memcpy(words, &bits, sizeof words);
        memcpy(out + i / 8, words, sizeof words);
        for (size_t k = 0; k < AS_ARRAY_LEN(words); k++)
            set += (size_t)__builtin_popcountll(words[k]);
    }
    memset(out + whole / 8, 0, (n - whole + 7) / 8);
    for (size_t i = whole; i < n; i++) {
        unsigned bit = !is_negative(v[i]);
        out[i / 8] = (uint8_t)(out[i / 8] | bit << i % 8);
        set += bit;
    }
    return set;
}

/* to[i] = from[i] + (the bit is set ? plus : minus). to may be from. */
CPU_CLONES static void add_by_sign(const uint8_t *in, size_t n, float plus, float minus,
                                   const float *from, float *to)
{
    size_t whole = n / GROUP * GROUP;
    lanes_i32 set = (lanes_i32)((lanes_f32){0} + plus), clear = (lanes_i32)((lanes_f32){0} + minus);
    for (size_t i = 0; i < whole; i += GROUP) {
        lanes_u32 bits;
        memcpy(&bits, in + i / 8, sizeof bits);
        for (unsigned k = 0; k < 32; k++) {
            lanes_i32 mask = (lanes_i32)(bits << (31 - k)) >> 31;
            lanes_f32 x = *(const lanes_f32 *)(from + i + k * LANES);
            *(lanes_f32 *)(to + i + k * LANES) = x + (lanes_f32)((set & mask) | (clear & ~mask));
        }
    }
    for (size_t i = whole; i < n; i++)
        to[i] = from[i] + (in[i / 8] >> i % 8 & 1 ? plus : minus);
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
        return "the mean of the positive values is negative";
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
