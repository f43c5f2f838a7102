/* Products of float matrices, in one thread: our own kernels with AVX2 or AVX-512, OpenBLAS
 * elsewhere. For the sizes of small models OpenBLAS spends its time on the call and on packing.
 *
 * In our own kernels every element of c is one chain of multiply-adds over the inner dimension,
 * in its order: its bits depend neither on the matrix around it nor on how that is cut. */
#ifndef ASSAY_KERNELS_CPU_GEMM_H
#define ASSAY_KERNELS_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* c [m, n] (+)= op(a) op(b), inner size k, row-major. op(a) is [m, k]: a itself, or with ta the
 * transpose of a [k, m]; op(b) is [k, n], or with tb the transpose of b [n, k]. ld*: elements from
 * a row to the next. k = 0: a sum over nothing. Each size is below 2^31. */
struct gemm {
    bool ta, tb;
    bool add; /* add the product to c instead of overwriting it */
    size_t m, n, k;
    const float *a;
    size_t lda;
    const float *b;
    size_t ldb;
    float *c; /* overlaps neither a nor b */
    size_t ldc;
    const float *bias; /* [n], added to every row of the sum; NULL: none */
    bool relu;         /* then values below 0 become 0; NaN stays */
};

void cpu_gemm(const struct gemm *g);

/* Before the first product of who has opened no back end, which does it: opens OpenBLAS where it is
 * needed. Any thread, any number of times. AS_E_UNSUPPORTED: the library is not there. */
AS_MUST_CHECK as_status cpu_gemm_ready(struct as_err *err);

/* The kernels, each with higher needs than the one before. cpu_gemm() uses the last one that this
 * machine can run. The tests run all that it can run. */
typedef enum gemm_isa { GEMM_BLAS, GEMM_AVX2, GEMM_AVX512 } gemm_isa;

gemm_isa gemm_best(void);
void cpu_gemm_with(gemm_isa isa, const struct gemm *g); /* GEMM_BLAS: after blas_open() */

/* How a product is cut for several threads: n pieces of at most rows x cols, `across` of them side
 * by side. A function of the shape alone. */
struct gemm_grid {
    size_t n, across, rows, cols;
};

struct gemm_grid gemm_grid(size_t m, size_t n, size_t k);

/* Piece i in [0, grid->n) of the product that the grid was made for. */
struct gemm gemm_piece(const struct gemm *g, const struct gemm_grid *grid, size_t i);

#endif
