/* fp16: numbers of half precision with one power of two per block.
 *
 * A half has 5 bits of exponent: gradients above 65504 would become infinite, and those below 6e-8
 * zero. So each block is divided by a power of two that brings its largest value into [2^14, 2^15);
 * dividing by a power of two loses nothing, and rounding up to the next half reaches 2^15 at most.
 * Rounding is to nearest, ties to even. What a half cannot hold (at most 2^-11 of a value; all of
 * one that is 2^40 times smaller than the largest) is exactly the residual.
 *
 * A block: int16 exponent of the power, then n halves. A block in which a value is not finite has
 * the exponent EXPONENT_RAW and the power 1; there a half may be infinite or NaN. */
#include "trial-runner/distributed/gradient_codec_priv.h"

#include <string.h>

#include "base/cpu_clones.h"

#define EXPONENT_RAW 0x7fff
/* With these both the power and its reciprocal are normal float32 numbers. */
#define EXPONENT_MIN (-112)
#define EXPONENT_MAX 113

/* The largest half of a block: with EXPONENT_MAX 2^15 would be 2^128, which float32 has not. */
static uint16_t largest_half(int exponent)
{
    return exponent == EXPONENT_MAX ? 0x77ff : 0x7bff;
}

CPU_INLINE uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

CPU_INLINE float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

CPU_INLINE float power_of_two(int exponent)
{
    return float_of((uint32_t)(exponent + 127) << 23);
}

/* f is finite, |f| < 65520. */
CPU_INLINE uint16_t half_of(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, mag = u & 0x7fffffff;
    /* Below 2^-14 halves are multiples of 2^-24, which is the last bit of float32 numbers in
     * [0.5, 1): the addition rounds as wanted. */
    uint32_t tiny = bits_of(float_of(mag) + 0.5F) - bits_of(0.5F);
    uint32_t normal = (mag - ((uint32_t)112 << 23) + 0xfff + (mag >> 13 & 1)) >> 13;
    return (uint16_t)(sign | (mag < 0x38800000 ? tiny : normal));
}

static uint16_t any_half_of(float f)
{
    uint32_t sign = bits_of(f) >> 16 & 0x8000, mag = bits_of(f) & 0x7fffffff;
    if (mag < 0x477ff000) /* 65520 */
        return half_of(f);
    return (uint16_t)(sign | (mag > 0x7f800000 ? 0x7e00 : 0x7c00));
}

/* Exact. A half that is infinite or NaN becomes some finite number. */
CPU_INLINE float finite_half(uint16_t h)
{
    uint32_t u = (uint32_t)(h & 0x7fff) << 13 | (uint32_t)(h & 0x8000) << 16;
    return float_of(u) * 0x1p112F;
}

CPU_INLINE float any_half(uint16_t h)
{
    if ((h & 0x7c00) != 0x7c00)
        return finite_half(h);
    return float_of((uint32_t)(h & 0x8000) << 16 | 0x7f800000 | (uint32_t)(h & 0x3ff) << 13);
}

static size_t fp16_bytes(const struct codec *c, size_t n)
{
    (void)c;
    return 2 + 2 * n;
}

CPU_CLONES static uint32_t largest_magnitude(const float *v, size_t n)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t mag = bits_of(v[i]) & 0x7fffffff;
        largest = mag > largest ? mag : largest;
    }
    return largest;
}

CPU_INLINE uint16_t at_most(uint16_t half, uint16_t most)
{
    uint16_t mag = half & 0x7fff;
    return (uint16_t)((half & 0x8000) | (mag < most ? mag : most));
}

CPU_CLONES static void to_halves(const float *restrict v, size_t n, float down, uint16_t most,
                                 uint16_t *restrict halves)
{
    for (size_t i = 0; i < n; i++)
        halves[i] = at_most(half_of(v[i] * down), most);
}

CPU_CLONES static void what_is_left(const float *restrict v, const uint16_t *restrict halves,
                                    size_t n, float up, float *restrict after)
{
    for (size_t i = 0; i < n; i++)
        after[i] = v[i] - finite_half(halves[i]) * up;
}

CPU_CLONES static void add_halves(const uint16_t *restrict halves, size_t n, float up,
                                  float *restrict sum)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += finite_half(halves[i]) * up;
}

/* Halves of a message stand at even addresses only if the message does; so they are copied. */
#define PIECE 512

/* A block in which a value is not finite. */
static void encode_raw(const float *v, size_t n, uint8_t *out, float *after)
{
    const int16_t shown = EXPONENT_RAW;
    memcpy(out, &shown, sizeof shown);
    for (size_t i = 0; i < n; i++) {
        uint16_t half = any_half_of(v[i]);
        memcpy(out + sizeof shown + i * sizeof half, &half, sizeof half);
        if (after)
            after[i] = v[i] - any_half(half);
    }
}

static void fp16_encode(struct codec *c, const float *v, size_t n, uint8_t *out, float *after)
{
    uint16_t halves[PIECE];
    uint32_t largest = largest_magnitude(v, n);
    int exponent = (int)(largest >> 23) - 127 - 14;
    (void)c;
    if (largest >= 0x7f800000) {
        encode_raw(v, n, out, after);
        return;
    }
    exponent = exponent < EXPONENT_MIN ? EXPONENT_MIN : exponent;
    int16_t shown = (int16_t)exponent;
    memcpy(out, &shown, sizeof shown);
    out += sizeof shown;
    for (size_t i = 0; i < n; i += PIECE) {
        size_t m = n - i < PIECE ? n - i : PIECE;
        to_halves(v + i, m, power_of_two(-exponent), largest_half(exponent), halves);
        if (after)
            what_is_left(v + i, halves, m, power_of_two(exponent), after + i);
        memcpy(out + i * sizeof *halves, halves, m * sizeof *halves);
    }
}

CPU_CLONES static bool any_above(const uint16_t *halves, size_t n, uint16_t most)
{
    uint16_t bad = 0;
    for (size_t i = 0; i < n; i++)
        bad |= (halves[i] & 0x7fff) > most;
    return bad;
}

static const char *fp16_check(const struct codec *c, const uint8_t *in, size_t n)
{
    uint16_t halves[PIECE];
    int16_t exponent;
    (void)c;
    memcpy(&exponent, in, sizeof exponent);
    if (exponent == EXPONENT_RAW)
        return NULL;
    if (exponent < EXPONENT_MIN || exponent > EXPONENT_MAX)
        return "its exponent is out of range";
    in += sizeof exponent;
    for (size_t i = 0; i < n; i += PIECE) {
        size_t m = n - i < PIECE ? n - i : PIECE;
        memcpy(halves, in + i * sizeof *halves, m * sizeof *halves);
        if (any_above(halves, m, largest_half(exponent)))
            return "a value is not finite in a block that says that all are";
    }
    return NULL;
}

static void fp16_decode_add(const struct codec *c, const uint8_t *in, size_t n, float *sum)
{
    uint16_t halves[PIECE];
    int16_t exponent;
    (void)c;
    memcpy(&exponent, in, sizeof exponent);
    in += sizeof exponent;
    for (size_t i = 0; i < n; i += PIECE) {
        size_t m = n - i < PIECE ? n - i : PIECE;
        memcpy(halves, in + i * sizeof *halves, m * sizeof *halves);
        if (exponent != EXPONENT_RAW) {
            add_halves(halves, m, power_of_two(exponent), sum + i);
            continue;
        }
        for (size_t k = 0; k < m; k++)
            sum[i + k] += any_half(halves[k]);
    }
}

const struct block_ops block_fp16 = {
    .name = "fp16",
    .rule = {.at_least = 512, .by_rows = true, .merges = true},
    .bytes = fp16_bytes,
    .encode = fp16_encode,
    .check = fp16_check,
    .decode_add = fp16_decode_add,
};
