/* Matrix products in one thread: the choice of a kernel, and how a product is cut for threads.
 *
 * gemm_tile_body.inc holds the loops and is included here for AVX2 and for AVX-512. A panel of b is
 * copied into the first cache unless it is small enough to be read in place (DIRECT). b^T needs a
 * transpose while it is copied, which AVX-512 does in registers (transpose.h).
 *
 * gemm_grid() cuts a product into pieces of about PIECE_WORK multiply-adds, by its shape alone.
 * Each element of c is one chain of multiply-adds, so the pieces do not change its bits.
 *
 * Under sanitizers the loops are not unrolled: the checks in each unrolled copy take gcc minutes at
 * -O3. */
#if defined(ASSAY_NO_CLONES)
#pragma GCC optimize("O1")
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#include "kernels/cpu/gemm.h"

#include <assert.h>
#include <string.h>

#include "base/blas.h"
#include "base/cpu_clones.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/transpose.h"

/* For machines without AVX2: cpu_open() has opened the library. */
static void blas_gemm(const struct gemm *g)
{
    const struct blas *blas = blas_get();
    assert(blas != NULL);
    blas->sgemm(CblasRowMajor, g->ta ? CblasTrans : CblasNoTrans, g->tb ? CblasTrans : CblasNoTrans,
                (blasint)g->m, (blasint)g->n, (blasint)g->k, 1.0f, g->a, (blasint)g->lda, g->b,
                (blasint)g->ldb, g->add ? 1.0f : 0.0f, g->c, (blasint)g->ldc);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define VECTORS 2   /* vector registers across a panel */
#define INNER 256   /* steps of a panel: 32 KiB with AVX-512, less than the first cache */
#define DIRECT 8192 /* floats of b that fit the first cache without a copy */

#define LANES_8(f, bit)                                                                            \
    f(0, bit), f(1, bit), f(2, bit), f(3, bit), f(4, bit), f(5, bit), f(6, bit), f(7, bit)
#define LANES_16(f, bit)                                                                           \
    LANES_8(f, bit), f(8, bit), f(9, bit), f(10, bit), f(11, bit), f(12, bit), f(13, bit),         \
        f(14, bit), f(15, bit)

#define VECTOR_OF(lanes)                                                                           \
    __attribute__((vector_size((lanes) * sizeof(float)), aligned(4), may_alias))

/* ---- AVX2 and FMA ---- */

#define AVX2 __attribute__((target("avx2,fma")))
typedef float avx2_vec VECTOR_OF(8);
typedef __m256i avx2_mask;

AVX2 CPU_INLINE avx2_mask avx2_mask_of(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

AVX2 CPU_INLINE avx2_vec avx2_load(avx2_mask mask, const float *from)
{
    return (avx2_vec)_mm256_maskload_ps(from, mask);
}

AVX2 CPU_INLINE void avx2_store(avx2_mask mask, float *to, avx2_vec v)
{
    _mm256_maskstore_ps(to, mask, (__m256)v);
}

/* If one operand is NaN, max returns the second operand, so NaN stays. */
AVX2 CPU_INLINE avx2_vec avx2_relu(avx2_vec v)
{
    return (avx2_vec)_mm256_max_ps(_mm256_setzero_ps(), (__m256)v);
}

#define TILE(name) avx2_##name
#define TILE_CODE AVX2
#define LANES 8
#define ROWS 4
#define SWAP_TURN
#define EACH_LANE LANES_8
#include "kernels/cpu/gemm_tile_body.inc"

/* ---- AVX-512 ---- */

#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))
typedef float avx512_vec VECTOR_OF(16);
typedef __mmask16 avx512_mask;

AVX512 CPU_INLINE avx512_mask avx512_mask_of(size_t n)
{
    return (avx512_mask)((1u << n) - 1);
}

AVX512 CPU_INLINE avx512_vec avx512_load(avx512_mask mask, const float *from)
{
    return (avx512_vec)_mm512_maskz_loadu_ps(mask, from);
}

AVX512 CPU_INLINE void avx512_store(avx512_mask mask, float *to, avx512_vec v)
{
    _mm512_mask_storeu_ps(to, mask, (__m512)v);
}

AVX512 CPU_INLINE avx512_vec avx512_relu(avx512_vec v)
{
    return (avx512_vec)_mm512_max_ps(_mm512_setzero_ps(), (__m512)v);
}

/* `cols` rows of b (columns of its transpose) over k steps: to[p * PANEL + r] = b[r * ldb + p].
 * The columns of a panel beyond `cols` are never read. */
AVX512 static void avx512_pack_turned(size_t k, size_t cols, const float *b, size_t ldb, float *to)
{
    const float *row[16];
    for (size_t j = 0; j < cols; j += 16) {
        for (size_t r = 0; r < 16; r++)
            row[r] = b + (j + r < cols ? j + r : j) * ldb;
        for (size_t p = 0; p < k; p += 4) {
            __m512 v[4];
            turn_4(row, p, k - p, v);
            for (size_t i = 0; i < 4 && p + i < k; i++)
                _mm512_store_ps(to + (p + i) * VECTORS * 16 + j, v[i]);
        }
    }
}

#define TILE(name) avx512_##name
#define TILE_CODE AVX512
#define LANES 16
#define ROWS 8
#define EACH_LANE LANES_16
#include "kernels/cpu/gemm_tile_body.inc"

gemm_isa gemm_best(void)
{
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        return GEMM_AVX512;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? GEMM_AVX2 : GEMM_BLAS;
}

static void multiply(gemm_isa isa, const struct gemm *g)
{
    if (isa == GEMM_AVX512)
        avx512_gemm(g);
    else if (isa == GEMM_AVX2)
        avx2_gemm(g);
    else
        blas_gemm(g);
}

#else

gemm_isa gemm_best(void)
{
    return GEMM_BLAS;
}

static void multiply(gemm_isa isa, const struct gemm *g)
{
    (void)isa;
    blas_gemm(g);
}

#endif

void cpu_gemm_with(gemm_isa isa, const struct gemm *g)
{
    if (g->m == 0 || g->n == 0)
        return;
    if (g->k > 0)
        multiply(isa, g);
    for (size_t i = 0; g->k == 0 && i < g->m && !g->add; i++)
        memset(g->c + i * g->ldc, 0, g->n * sizeof(*g->c));
    if (g->k == 0 || isa == GEMM_BLAS) /* our own kernels have done it in registers */
        cpu_bias_act(g->relu ? ACT_RELU : ACT_NONE, g->c, g->bias, NULL, g->m, g->n, g->ldc);
}

void cpu_gemm(const struct gemm *g)
{
    cpu_gemm_with(gemm_best(), g);
}

as_status cpu_gemm_ready(struct as_err *err)
{
    if (gemm_best() != GEMM_BLAS || blas_open(err) == AS_OK)
        return AS_OK;
    return as_err_prefix(err, AS_E_UNSUPPORTED, "back end cpu: this processor has no AVX2");
}

/* ---- pieces ---- */

#define PIECE_WORK ((size_t)1 << 22) /* multiply-adds: some 60 microseconds of one core */
#define PIECE_COLS 64                /* at least, and a multiple: whole panels */
#define PIECE_ROWS 64

static size_t at_least_one(size_t n)
{
    return n > 0 ? n : 1;
}

/* The size of a piece, a multiple of `unit`, when n is cut into `parts` pieces. */
static size_t piece_size(size_t n, size_t parts, size_t unit)
{
    size_t units = (n + unit - 1) / unit;
    return at_least_one((units + parts - 1) / parts) * unit;
}

struct gemm_grid gemm_grid(size_t m, size_t n, size_t k)
{
    size_t pieces = m * n * k / PIECE_WORK;
    if (pieces < 2)
        return (struct gemm_grid){1, 1, m, n};
    size_t most = at_least_one(n / PIECE_COLS), across = pieces < most ? pieces : most;
    struct gemm_grid g = {.cols = piece_size(n, across, PIECE_COLS)};
    g.across = at_least_one((n + g.cols - 1) / g.cols);
    g.rows = piece_size(m, at_least_one(pieces / g.across), PIECE_ROWS);
    g.n = at_least_one((m + g.rows - 1) / g.rows) * g.across;
    return g;
}

struct gemm gemm_piece(const struct gemm *g, const struct gemm_grid *grid, size_t i)
{
    if (grid->n == 1)
        return *g;
    size_t row = i / grid->across * grid->rows, col = i % grid->across * grid->cols;
    struct gemm p = *g;
    p.m = g->m - row < grid->rows ? g->m - row : grid->rows;
    p.n = g->n - col < grid->cols ? g->n - col : grid->cols;
    p.a += g->ta ? row : row * g->lda;
    p.b += g->tb ? col * g->ldb : col;
    p.c += row * g->ldc + col;
    p.bias = g->bias != NULL ? g->bias + col : NULL;
    return p;
}
