/* IEEE's square root and division take 35 cycles for a vector of AVX-512, more than all the rest of
 * the loop with its loads and stores. With AVX-512 the loop uses the processor's estimates (14
 * bits) instead, each with one step of Newton's method. Where that gives NaN, the exact operations
 * compute the change of the parameter. */
#include "kernels/cpu/adam.h"

#include <float.h>
#include <math.h>

#include "base/cpu_clones.h"
#include "kernels/cpu/gemm.h"

CPU_INLINE float settle(float moment, float least)
{
    return fabsf(moment) < least ? 0.0f : moment;
}

CPU_CLONES static void step_exact(const struct adam *h, float *restrict p, const float *restrict g,
                                  float *restrict m1, float *restrict m2, size_t n)
{
    struct adam c = *h;
    for (size_t i = 0; i < n; i++) {
        float grad = g[i] + c.couple * p[i];
        m1[i] = settle(c.beta1 * m1[i] + c.rest1 * grad, c.least1);
        m2[i] = settle(c.beta2 * m2[i] + c.rest2 * grad * grad, c.least2);
        p[i] = p[i] * c.keep - c.rate * m1[i] / (sqrtf(m2[i]) * c.root + c.eps);
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))
#define LANES 16

AVX512 CPU_INLINE __m512 of(float x)
{
    return _mm512_set1_ps(x);
}

/* The exact change of the places in `wrong`, whose estimates gave NaN: the values are outside the
 * range of the estimates, or the change is NaN. */
AVX512 static __m512 again_16(const struct adam *h, __m512 old, __m512 m1, __m512 m2, __m512 moved,
                              __mmask16 wrong)
{
    __m512 below = _mm512_fmadd_ps(_mm512_sqrt_ps(m2), of(h->root), of(h->eps));
    __m512 exact = _mm512_fmsub_ps(old, of(h->keep), of(h->rate) * m1 / below);
    return _mm512_mask_blend_ps(wrong, moved, exact);
}

/* The places in `mask`. `half` and `least` are root / 2 and eps, both divided by rate. Newton:
 * sqrt(x) is x r (3 - x r r) / 2 with r near 1 / sqrt(x), and 1 / d is g (2 - d g). */
AVX512 CPU_INLINE void step_16(const struct adam *h, float half, float least, float *p,
                               const float *g, float *m1, float *m2, __mmask16 mask)
{
    __m512 old = _mm512_maskz_loadu_ps(mask, p);
    __m512 grad = _mm512_fmadd_ps(of(h->couple), old, _mm512_maskz_loadu_ps(mask, g));
    __m512 a = of(h->beta1) * _mm512_maskz_loadu_ps(mask, m1);
    __m512 b = of(h->beta2) * _mm512_maskz_loadu_ps(mask, m2);
    a = _mm512_fmadd_ps(of(h->rest1), grad, a);
    b = _mm512_fmadd_ps(of(h->rest2) * grad, grad, b);
    __m512 r = _mm512_rsqrt14_ps(_mm512_max_ps(of(FLT_MIN), b)), root = b * r;
    __m512 d = _mm512_fmadd_ps(root * of(half), _mm512_fnmadd_ps(root, r, of(3.0f)), of(least));
    __m512 q = _mm512_rcp14_ps(d), e = _mm512_fnmadd_ps(d, q, of(2.0f));
    __m512 moved = _mm512_fnmadd_ps(a * q, e, old * of(h->keep));
    __mmask16 wrong = _mm512_cmp_ps_mask(moved, moved, _CMP_UNORD_Q);
    if (__builtin_expect(wrong != 0, 0))
        moved = again_16(h, old, a, b, moved, wrong);
    _mm512_mask_storeu_ps(m1, mask, a);
    _mm512_mask_storeu_ps(m2, mask, b);
    _mm512_mask_storeu_ps(p, mask, moved);
}

/* Not inlined: no part of it may move out of the region where subnormal numbers count as 0. */
AVX512 __attribute__((noinline)) static void loop_avx512(const struct adam *h, float *p,
                                                         const float *g, float *m1, float *m2,
                                                         size_t n)
{
    struct adam c = *h;
    float half = c.root / c.rate / 2, least = c.eps / c.rate;
    size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        step_16(&c, half, least, p + i, g + i, m1 + i, m2 + i, 0xffff);
    step_16(&c, half, least, p + whole, g + whole, m1 + whole, m2 + whole,
            (__mmask16)((1u << (n - whole)) - 1));
}

/* Subnormal numbers count as 0, as inputs and outputs, so the loop need not test each moment. */
AVX512 static void step_avx512(const struct adam *h, float *p, const float *g, float *m1, float *m2,
                               size_t n)
{
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | _MM_FLUSH_ZERO_ON | 0x40 /* denormals are zero */);
    loop_avx512(h, p, g, m1, m2, n);
    _mm_setcsr(before);
}

void cpu_adam(const struct adam *h, float *p, const float *g, float *m1, float *m2, size_t n)
{
    if (gemm_best() == GEMM_AVX512)
        step_avx512(h, p, g, m1, m2, n);
    else
        step_exact(h, p, g, m1, m2, n);
}

#else

void cpu_adam(const struct adam *h, float *p, const float *g, float *m1, float *m2, size_t n)
{
    step_exact(h, p, g, m1, m2, n);
}

#endif
