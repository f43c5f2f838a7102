/* Stripes of STRIPE queries against all keys that they may see: two products by sgemm and a softmax
 * in between, so a stripe of scores, [STRIPE, T], is all that is ever kept; backward makes the
 * probabilities anew from the saved lse (after Dao et al. 2022, without blocks of keys: at 8,192
 * keys a stripe is 2 MiB and still fits the second cache). */
#include "kernels/cpu/cpu.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/vec_math.h"

#define STRIPE 64
#define LANES 16

static size_t stripe_rows(size_t seq)
{
    return seq < STRIPE ? seq : STRIPE;
}

/* Probabilities, their gradients, a figure per row. */
size_t cpu_attention_work(const struct backend *be, const struct attention_args *a)
{
    (void)be;
    return (2 * a->seq + 1) * stripe_rows(a->seq);
}

/* One head of one sequence of one member. */
struct head {
    const float *q, *k, *v; /* [T, D], rows `wide` apart */
    const float *lse;
    size_t seq, dim, wide, narrow; /* narrow: from row to row of out */
    float scale;
    float *p, *dp; /* stripes, [STRIPE, T] */
    float *row;    /* [STRIPE] */
};

/* Queries [first, first + rows) see keys [0, first + rows). */
struct stripe {
    size_t first, rows, keys;
};

struct product {
    CBLAS_TRANSPOSE ta, tb;
    size_t m, n, k;
    float alpha, beta;
};

static void gemm(struct product g, const float *a, size_t lda, const float *b, size_t ldb, float *c,
                 size_t ldc)
{
    if (g.k == 0) { /* heads of no width: their scores are 0 */
        for (size_t r = 0; r < g.m && g.n > 0; r++)
            memset(c + r * ldc, 0, g.n * sizeof(*c));
        return;
    }
    if (g.m > 0 && g.n > 0)
        cblas_sgemm(CblasRowMajor, g.ta, g.tb, (blasint)g.m, (blasint)g.n, (blasint)g.k, g.alpha, a,
                    (blasint)lda, b, (blasint)ldb, g.beta, c, (blasint)ldc);
}

/* to = scale * q k^T of the stripe, or of whatever else stands in their places. */
static void scores(const struct head *h, struct stripe s, const float *q, size_t q_wide,
                   const float *k, float scale, float *to)
{
    gemm((struct product){CblasNoTrans, CblasTrans, s.rows, s.keys, h->dim, scale, 0}, q, q_wide, k,
         h->wide, to, h->seq);
}

CPU_INLINE float row_max(const float *z, size_t n)
{
    float lane[LANES], max = z[0];
    for (size_t j = 0; j < LANES; j++)
        lane[j] = max;
    for (size_t i = 0; i < n; i += LANES) {
        size_t len = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < len; j++)
            lane[j] = z[i + j] > lane[j] ? z[i + j] : lane[j];
    }
    for (size_t j = 0; j < LANES; j++)
        max = lane[j] > max ? lane[j] : max;
    return max;
}

/* z becomes exp(z - max); their sum. A NaN stays one, and is in the sum. */
CPU_INLINE double row_exp(float *z, float max, size_t n)
{
    double lane[LANES] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        z[i] = vec_exp(z[i] - max);
    for (size_t i = 0; i < n; i += LANES) {
        size_t len = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < len; j++)
            lane[j] += (double)z[i + j];
    }
    for (size_t j = 0; j < LANES; j++)
        sum += lane[j];
    return sum;
}

/* Scores to weights that still lack their row's factor, which goes to h->row. */
CPU_CLONES static void soften(const struct head *h, struct stripe s, float *lse)
{
    for (size_t r = 0; r < s.rows; r++) {
        float *z = h->p + r * h->seq;
        size_t seen = s.first + r + 1;
        float max = row_max(z, seen);
        double sum = row_exp(z, max, seen);
        memset(z + seen, 0, (s.keys - seen) * sizeof(*z)); /* the future */
        lse[s.first + r] = (float)((double)max + log(sum));
        h->row[r] = (float)(1 / sum);
    }
}

CPU_CLONES static void scale_rows(const struct head *h, struct stripe s, float *out)
{
    for (size_t r = 0; r < s.rows; r++)
        for (size_t d = 0; d < h->dim; d++)
            out[(s.first + r) * h->narrow + d] *= h->row[r];
}

static struct stripe stripe_at(const struct head *h, size_t first)
{
    size_t rows = h->seq - first < STRIPE ? h->seq - first : STRIPE;
    return (struct stripe){first, rows, first + rows};
}

static void forward_head(const struct head *h, float *out, float *lse)
{
    for (size_t first = 0; first < h->seq; first += STRIPE) {
        struct stripe s = stripe_at(h, first);
        scores(h, s, h->q + first * h->wide, h->wide, h->k, h->scale, h->p);
        soften(h, s, lse);
        gemm((struct product){CblasNoTrans, CblasNoTrans, s.rows, h->dim, s.keys, 1, 0}, h->p,
             h->seq, h->v, h->wide, out + first * h->narrow, h->narrow);
        scale_rows(h, s, out);
    }
}

/* Head i of the member's B H. */
static struct head head_of(const struct attention_args *a, size_t k, size_t i)
{
    size_t row = a->heads * a->head_dim, b = i / a->heads;
    const float *qkv = tensor_f32(a->qkv, k) + b * a->seq * 3 * row + i % a->heads * a->head_dim;
    float *work = tensor_f32(a->work, k);
    size_t stripe = stripe_rows(a->seq) * a->seq;
    return (struct head){
        .q = qkv,
        .k = qkv + row,
        .v = qkv + 2 * row,
        .lse = tensor_f32(a->lse, k) + i * a->seq,
        .seq = a->seq,
        .dim = a->head_dim,
        .wide = 3 * row,
        .narrow = row,
        .scale = a->head_dim > 0 ? (float)(1 / sqrt((double)a->head_dim)) : 0.0f,
        .p = work,
        .dp = work + stripe,
        .row = work + 2 * stripe,
    };
}

/* Where head i begins in [B, T, H, D]. */
static size_t at_out(const struct attention_args *a, size_t i)
{
    return (i / a->heads * a->seq * a->heads + i % a->heads) * a->head_dim;
}

as_status cpu_attention_forward(struct backend *be, const struct attention_args *a,
                                struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        for (size_t i = 0; i < a->batch * a->heads && a->seq > 0; i++) {
            struct head h = head_of(a, k, i);
            forward_head(&h, tensor_f32(a->out, k) + at_out(a, i),
                         tensor_f32(a->lse, k) + i * a->seq);
        }
    }
    return AS_OK;
}

/* h->row = dout . out, row by row: what the softmax's gradient takes off. */
static void row_products(const struct head *h, struct stripe s, const float *out, const float *dout)
{
    for (size_t r = 0; r < s.rows; r++) {
        double sum = 0;
        size_t at = (s.first + r) * h->narrow;
        for (size_t d = 0; d < h->dim; d++)
            sum += (double)out[at + d] * (double)dout[at + d];
        h->row[r] = (float)sum;
    }
}

/* Scores to probabilities; dp to the gradient by the scores. */
CPU_CLONES static void soften_backward(const struct head *h, struct stripe s)
{
    for (size_t r = 0; r < s.rows; r++) {
        float *p = h->p + r * h->seq, *dp = h->dp + r * h->seq;
        float lse = h->lse[s.first + r], off = h->row[r];
        size_t seen = s.first + r + 1;
        for (size_t i = 0; i < seen; i++) {
            p[i] = vec_exp(p[i] - lse);
            dp[i] = p[i] * (dp[i] - off);
        }
        memset(p + seen, 0, (s.keys - seen) * sizeof(*p)); /* the future */
        memset(dp + seen, 0, (s.keys - seen) * sizeof(*dp));
    }
}

/* dq, dk, dv are laid out as q, k, v; zero before. */
static void backward_head(const struct head *h, const float *out, const float *dout, float *dq,
                          float *dk, float *dv)
{
    for (size_t first = 0; first < h->seq; first += STRIPE) {
        struct stripe s = stripe_at(h, first);
        const float *q = h->q + first * h->wide, *dy = dout + first * h->narrow;
        scores(h, s, q, h->wide, h->k, h->scale, h->p);
        scores(h, s, dy, h->narrow, h->v, 1, h->dp);
        row_products(h, s, out, dout);
        soften_backward(h, s);
        struct product by_key = {CblasTrans, CblasNoTrans, s.keys, h->dim, s.rows, 1, 1};
        gemm(by_key, h->p, h->seq, dy, h->narrow, dv, h->wide);
        by_key.alpha = h->scale;
        gemm(by_key, h->dp, h->seq, q, h->wide, dk, h->wide);
        gemm((struct product){CblasNoTrans, CblasNoTrans, s.rows, h->dim, s.keys, h->scale, 0},
             h->dp, h->seq, h->k, h->wide, dq + first * h->wide, h->wide);
    }
}

as_status cpu_attention_backward(struct backend *be, const struct attention_args *a,
                                 struct tensor dout, struct tensor dqkv, struct as_err *err)
{
    (void)be;
    (void)err;
    size_t row = a->heads * a->head_dim;
    for (size_t k = 0; k < a->members; k++) {
        float *to = tensor_f32(dqkv, k);
        memset(to, 0, a->batch * a->seq * 3 * row * sizeof(*to));
        for (size_t i = 0; i < a->batch * a->heads && a->seq > 0; i++) {
            struct head h = head_of(a, k, i);
            float *dq = to + (h.q - tensor_f32(a->qkv, k));
            backward_head(&h, tensor_f32(a->out, k) + at_out(a, i),
                          tensor_f32(dout, k) + at_out(a, i), dq, dq + row, dq + 2 * row);
        }
    }
    return AS_OK;
}
