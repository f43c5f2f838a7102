/* What loops over vectors share: exp of arguments that are not positive, four doubles at a time.
 *
 * exp has no branches and no tables, so that gcc vectorises loops over it: at small n, half of n^2
 * calls are a large part of a fit.
 *
 * Cody-Waite reduction to |r| <= ln 2 / 2, then 1 + r + r^2 q(r) with q of degree 9 (minimax at
 * Chebyshev points, 1.7e-17 relative, computed with 60 digits). Within 2 units in the last place;
 * below -708, where 2^n leaves the normal range, the result is 0. NaN gives NaN. */
#ifndef ASSAY_SEARCH_REGRESSION_VEC_EXP_H
#define ASSAY_SEARCH_REGRESSION_VEC_EXP_H

#include <stdint.h>
#include <string.h>

#include "base/cpu_clones.h"

/* call(n) with n = count, which is 1 to 4, as a constant, so that loops over it are unrolled and
 * sums stay in registers. */
#define GP_WITH_CONSTANT(count, call)                                                              \
    switch (count) {                                                                               \
    case 1:                                                                                        \
        call(1);                                                                                   \
        break;                                                                                     \
    case 2:                                                                                        \
        call(2);                                                                                   \
        break;                                                                                     \
    case 3:                                                                                        \
        call(3);                                                                                   \
        break;                                                                                     \
    default:                                                                                       \
        call(4);                                                                                   \
    }

/* Four doubles at any address: gcc keeps vectors that are wider than a register in memory. */
typedef double gp_vec4 __attribute__((vector_size(32), aligned(8)));

CPU_INLINE double gp_vec4_total(const gp_vec4 *v)
{
    return ((*v)[0] + (*v)[2]) + ((*v)[1] + (*v)[3]);
}

CPU_INLINE double vec_exp_nonpos(double x)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    double shifted = x * 1.4426950408889634 + magic, n = shifted - magic;
    /* ln 2 in two parts: the first has few enough bits for n times it to be exact. */
    double r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    double q = 2.510037583265122e-08;
    q = q * r + 2.7620075880100385e-07;
    q = q * r + 2.7557268480309837e-06;
    q = q * r + 2.4801521322368448e-05;
    q = q * r + 0.00019841269863040545;
    q = q * r + 0.0013888888917196719;
    q = q * r + 0.008333333333330065;
    q = q * r + 0.041666666666624164;
    q = q * r + 0.16666666666666669;
    q = q * r + 0.5000000000000001;
    double p = q * (r * r) + r + 1.0;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    bits = (bits + 1023) << 52; /* n lies in the low bits of shifted */
    double power;
    memcpy(&power, &bits, sizeof(power));
    return x < -708.0 ? 0.0 : p * power;
}

#endif
