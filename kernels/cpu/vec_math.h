/* exp, log1p, tanh and erf in float, and a log in double, without branches and tables, so that gcc
 * vectorises loops over them (libm's are calls, 5 to 20 ns each). Within 3 units in the last place
 * of the true value over all floats; NaN gives NaN. tests/kernels/test_vec_math.c checks this.
 *
 * exp: Cody-Waite reduction and the polynomial of Cephes expf (Moshier). tanh: Cephes tanhf below
 * 0.625, 1 - 2 / (exp(2x) + 1) above. erf: minimax polynomials after N. Juffa, 1 - exp(p(x)) above
 * 0.93. */
#ifndef ASSAY_KERNELS_CPU_VEC_MATH_H
#define ASSAY_KERNELS_CPU_VEC_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/cpu_clones.h"

CPU_INLINE float float_of_bits(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

CPU_INLINE uint32_t bits_of_float(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

CPU_INLINE float vec_exp(float x)
{
    /* 1.5 * 2^23: adding it rounds to an integer, which then lies in the low bits. */
    const float magic = 12582912.0f;
    x = x > 89.0f ? 89.0f : x;     /* exp(89) overflows, and so do all larger values */
    x = x < -105.0f ? -105.0f : x; /* exp(-105) is 0 */
    float shifted = x * 1.44269504f + magic, n = shifted - magic;
    /* ln 2 in two parts: the first has so few bits that n times it is exact. */
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    /* 2^n in two halves, since n reaches from -151 to 128. Unsigned, because NaN gives an arbitrary
     * value here. */
    int32_t whole = (int32_t)(bits_of_float(shifted) - bits_of_float(magic));
    int32_t half = whole >> 1;
    uint32_t low = (uint32_t)(half + 127) << 23, high = (uint32_t)(whole - half + 127) << 23;
    return p * float_of_bits(low) * float_of_bits(high);
}

/* log(x) in double for x >= 0 (infinity and NaN stay; 0 and subnormal numbers give wrong values),
 * within 1e-12 relative: log(2^k m) with m in [sqrt(1/2), sqrt(2)) is k ln 2 + 2 atanh((m - 1) / (m
 * + 1)). */
CPU_INLINE double vec_log(double x)
{
    const double magic = 4503599627370496.0; /* 2^52: an integer or'ed into it is added to it */
    uint64_t u, low, high = 0x4330000000000000;
    memcpy(&u, &x, sizeof(u));
    u += 0x3ff0000000000000 - 0x3fe6a09e667f3bcd; /* past sqrt(2): the next power */
    low = (u & 0xfffffffffffff) + 0x3fe6a09e667f3bcd;
    high |= u >> 52;
    double m, k;
    memcpy(&m, &low, sizeof(m));
    memcpy(&k, &high, sizeof(k));
    k -= magic + 1023;
    double r = (m - 1) / (m + 1), s = r * r;
    double p = 1.0 / 15;
    p = p * s + 1.0 / 13;
    p = p * s + 1.0 / 11;
    p = p * s + 1.0 / 9;
    p = p * s + 1.0 / 7;
    p = p * s + 1.0 / 5;
    p = p * s + 1.0 / 3;
    double log = k * 0.693147180559945309 + 2 * (r + r * s * p);
    return x < (double)INFINITY ? log : x;
}

/* log(1 + x) for x in [0, 1], as 2 atanh(x / (2 + x)): the series to the 15th power, whose next
 * term is below 2e-9. */
CPU_INLINE float vec_log1p(float x)
{
    float r = x / (2.0f + x), s = r * r;
    float p = 1.0f / 15;
    p = p * s + 1.0f / 13;
    p = p * s + 1.0f / 11;
    p = p * s + 1.0f / 9;
    p = p * s + 1.0f / 7;
    p = p * s + 1.0f / 5;
    p = p * s + 1.0f / 3;
    return 2.0f * (r + r * s * p);
}

CPU_INLINE float vec_tanh(float x)
{
    float a = fabsf(x), s = x * x;
    float p = -5.70498872745e-3f;
    p = p * s + 2.06390887954e-2f;
    p = p * s - 5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s - 3.33332819422e-1f;
    float small = p * s * x + x;
    float large = copysignf(1.0f - 2.0f / (vec_exp(2.0f * a) + 1.0f), x);
    return a < 0.625f ? small : large;
}

CPU_INLINE float vec_erf(float x)
{
    float a = fabsf(x), s = x * x;
    float q = -5.96761703e-4f;
    q = q * s + 4.99119423e-3f;
    q = q * s - 2.67681349e-2f;
    q = q * s + 1.12819925e-1f;
    q = q * s - 3.76125336e-1f;
    q = q * s + 1.28379166e-1f;
    float small = q * x + x;
    a = a > 4.0f ? 4.0f : a; /* erf(4) rounds to 1; the polynomial ends there */
    s = a * a;
    float p = -1.72853470e-5f * a + 3.83197126e-4f;
    float u = -3.88396438e-3f * a + 2.42546219e-2f;
    p = p * s + u;
    p = p * a - 1.06777877e-1f;
    p = p * a - 6.34846687e-1f;
    p = p * a - 1.28717512e-1f;
    p = p * a - a;
    float large = copysignf(1.0f - vec_exp(p), x);
    return fabsf(x) < 0.927734375f ? small : large;
}

#endif
