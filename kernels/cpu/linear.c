/* One sgemm per member. With K = 1 that is the bare call; for small members OpenBLAS's call costs
 * less than a microsecond, so a loop over K is enough (bench/kernels.c has the figures). */
#include "kernels/cpu/cpu.h"

#include <cblas.h>
#include <string.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/clones.h"

/* c [m, n] = beta c + op(a) op(b), row-major, inner size k. The check has held each below 2^31. */
static void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, size_t m, size_t n, size_t k,
                 const float *a, size_t lda, const float *b, size_t ldb, float beta, float *c)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        if (beta == 0.0f)
            memset(c, 0, m * n * sizeof(*c));
        return;
    }
    cblas_sgemm(CblasRowMajor, ta, tb, (blasint)m, (blasint)n, (blasint)k, 1.0f, a, (blasint)lda, b,
                (blasint)ldb, beta, c, (blasint)n);
}

as_status cpu_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                             struct tensor y, struct tensor z, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        gemm(CblasNoTrans, CblasNoTrans, a->batch, a->out, a->in, tensor_f32(a->x, k), a->in,
             tensor_f32(a->w, k), a->out, 0.0f, tensor_f32(y, k));
        cpu_bias_act(act, tensor_f32(y, k), tensor_f32(a->b, k), tensor_f32(z, k), a->batch,
                     a->out);
    }
    return AS_OK;
}

/* db[o] (+)= sum of dy over the rows, in the order of the rows. */
CPU_CLONES static void sum_rows(const float *restrict dy, float *restrict db, size_t rows,
                                size_t cols, bool accumulate)
{
    if (!accumulate)
        memset(db, 0, cols * sizeof(*db));
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < cols; o++)
            db[o] += dy[r * cols + o];
}

as_status cpu_linear_backward(struct backend *be, const struct linear_args *a,
                              const struct linear_grads *g, struct as_err *err)
{
    (void)be;
    (void)err;
    float beta = g->accumulate ? 1.0f : 0.0f;
    for (size_t k = 0; k < a->members; k++) {
        const float *dy = tensor_f32(g->dy, k);
        if (g->dw.buf != NULL)
            gemm(CblasTrans, CblasNoTrans, a->in, a->out, a->batch, tensor_f32(a->x, k), a->in, dy,
                 a->out, beta, tensor_f32(g->dw, k));
        if (g->db.buf != NULL)
            sum_rows(dy, tensor_f32(g->db, k), a->batch, a->out, g->accumulate);
        if (g->dx.buf != NULL)
            gemm(CblasNoTrans, CblasTrans, a->batch, a->in, a->out, dy, a->out, tensor_f32(a->w, k),
                 a->out, 0.0f, tensor_f32(g->dx, k));
    }
    return AS_OK;
}
