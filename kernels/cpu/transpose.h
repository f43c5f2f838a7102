/* Transpose 16 x 16 floats in AVX-512 registers. Quarters of rows are combined while they are
 * loaded. These loads do not use the one unit that shuffles across a register, so 32 shuffles are
 * left instead of 64. */
#ifndef ASSAY_KERNELS_CPU_TRANSPOSE_H
#define ASSAY_KERNELS_CPU_TRANSPOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cpu_clones.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TRANSPOSE_CODE __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))

/* Columns `at` to `at` + 3 of rows i, 4 + i, 8 + i and 12 + i; if not whole, only those in
 * `mask`. A load without a mask fills its quarter directly; a masked load needs a shuffle. */
TRANSPOSE_CODE CPU_INLINE __m512 transpose_quarters(const float *const row[16], size_t i, size_t at,
                                                    bool whole, __mmask8 mask)
{
#define QUARTER(r) whole ? _mm_loadu_ps(row[r] + at) : _mm_maskz_loadu_ps(mask, row[r] + at)
    __m512 v = _mm512_castps128_ps512(QUARTER(i));
    v = _mm512_insertf32x4(v, QUARTER(4 + i), 1);
    v = _mm512_insertf32x4(v, QUARTER(8 + i), 2);
    return _mm512_insertf32x4(v, QUARTER(12 + i), 3);
#undef QUARTER
}

TRANSPOSE_CODE CPU_INLINE void turn_4_of(const float *const row[16], size_t at, bool whole,
                                         __mmask8 mask, __m512 ret[4])
{
    __m512 a = transpose_quarters(row, 0, at, whole, mask),
           b = transpose_quarters(row, 1, at, whole, mask);
    __m512 c = transpose_quarters(row, 2, at, whole, mask),
           d = transpose_quarters(row, 3, at, whole, mask);
    __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
    __m512d cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
    __m512d ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    __m512d cd_high = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    ret[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
    ret[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
    ret[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high));
    ret[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high));
}

/* ret[0..3]: columns at to at + 3 of 16 rows, of which `cols` >= 1 exist; the others are 0. */
TRANSPOSE_CODE CPU_INLINE void turn_4(const float *const row[16], size_t at, size_t cols,
                                      __m512 ret[4])
{
    if (cols >= 4)
        turn_4_of(row, at, true, 0xf, ret);
    else
        turn_4_of(row, at, false, (__mmask8)((1u << cols) - 1), ret);
}
#endif

#endif
