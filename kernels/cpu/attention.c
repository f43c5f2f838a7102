/* Stripes of STRIPE queries against all keys that they may see: two products and a softmax in
 * between, so a stripe of scores, [STRIPE, T], is all that is kept. The backward pass computes the
 * probabilities again from the saved lse (after Dao et al. 2022, but without blocks of keys: at
 * 8,192 keys a stripe is 2 MiB and still fits the second cache).
 *
 * The heads of a member are divided among parts, one for each thread, and each part has its own
 * stripes in the workspace. One part computes a whole head, so its bits do not depend on the
 * parts. */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "base/cpu_clones.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/vec_math.h"

/* Queries of a stripe: their scores against all keys before them are the workspace (decision
 * 3004). */
#define STRIPE 64
#define LANES 16

static size_t stripe_rows(size_t seq)
{
    return seq < STRIPE ? seq : STRIPE;
}

/* Floats of one part: probabilities, their gradients, one number for each row. */
static size_t part_work(const struct attention_args *a)
{
    return (2 * a->seq + 1) * stripe_rows(a->seq);
}

static size_t parts_of(const struct backend *be, const struct attention_args *a)
{
    size_t lanes = backend_lanes(be), heads = a->batch * a->heads;
    return heads < lanes ? heads : lanes;
}

size_t cpu_attention_work(const struct backend *be, const struct attention_args *a)
{
    return parts_of(be, a) * part_work(a);
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

/* to = x y^T for a stripe of x against all keys' y. */
static void stripe_scores(const struct head *h, struct stripe s, const float *x, size_t x_wide,
                          const float *y, float *to)
{
    cpu_gemm(&(struct gemm){.tb = true,
                            .m = s.rows,
                            .n = s.keys,
                            .k = h->dim,
                            .a = x,
                            .lda = x_wide,
                            .b = y,
                            .ldb = h->wide,
                            .c = to,
                            .ldc = h->seq});
}

/* to [rows, D] = weights [rows, keys] y [keys, D] */
static void weighted_rows(const struct head *h, struct stripe s, const float *weights,
                          const float *y, float *to, size_t to_wide)
{
    cpu_gemm(&(struct gemm){.m = s.rows,
                            .n = h->dim,
                            .k = s.keys,
                            .a = weights,
                            .lda = h->seq,
                            .b = y,
                            .ldb = h->wide,
                            .c = to,
                            .ldc = to_wide});
}

/* to [keys, D] += weights^T x [rows, D] */
static void add_weighted_rows(const struct head *h, struct stripe s, const float *weights,
                              const float *x, size_t x_wide, float *to)
{
    cpu_gemm(&(struct gemm){.ta = true,
                            .add = true,
                            .m = s.keys,
                            .n = h->dim,
                            .k = s.rows,
                            .a = weights,
                            .lda = h->seq,
                            .b = x,
                            .ldb = x_wide,
                            .c = to,
                            .ldc = h->wide});
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

/* z becomes exp(scale * (z - max)). Returns their sum. A NaN stays NaN, and so the sum is NaN. */
CPU_INLINE double row_exp(float *z, float max, float scale, size_t n)
{
    double lane[LANES] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        z[i] = vec_exp(scale * (z[i] - max));
    for (size_t i = 0; i < n; i += LANES) {
        size_t len = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < len; j++)
            lane[j] += (double)z[i + j];
    }
    for (size_t j = 0; j < LANES; j++)
        sum += lane[j];
    return sum;
}

/* Turn scores into weights without their row's factor, and write the factor to h->row. */
CPU_CLONES static void softmax_stripe(const struct head *h, struct stripe s, float *lse)
{
    for (size_t r = 0; r < s.rows; r++) {
        float *z = h->p + r * h->seq;
        size_t seen = s.first + r + 1;
        float max = row_max(z, seen);
        double sum = row_exp(z, max, h->scale, seen);
        memset(z + seen, 0, (s.keys - seen) * sizeof(*z)); /* later positions */
        lse[s.first + r] = (float)((double)h->scale * (double)max + log(sum));
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
        stripe_scores(h, s, h->q + first * h->wide, h->wide, h->k, h->p);
        softmax_stripe(h, s, lse);
        weighted_rows(h, s, h->p, h->v, out + first * h->narrow, h->narrow);
        scale_rows(h, s, out);
    }
}

/* Head i of the member's B H, in the workspace of one of its parts. */
static struct head head_of(const struct attention_args *a, size_t k, size_t i, size_t part)
{
    size_t row = a->heads * a->head_dim, b = i / a->heads;
    const float *qkv = tensor_f32(a->qkv, k) + b * a->seq * 3 * row + i % a->heads * a->head_dim;
    float *work = tensor_f32(a->work, k) + part * part_work(a);
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

struct task {
    const struct attention_args *a;
    struct tensor dout, dqkv; /* backward */
    size_t parts;
};

static void forward_part(void *arg, size_t tile)
{
    const struct task *t = arg;
    const struct attention_args *a = t->a;
    size_t k = tile / t->parts, part = tile % t->parts;
    for (size_t i = part; i < a->batch * a->heads; i += t->parts) {
        struct head h = head_of(a, k, i, part);
        forward_head(&h, tensor_f32(a->out, k) + at_out(a, i), tensor_f32(a->lse, k) + i * a->seq);
    }
}

as_status cpu_attention_forward(struct backend *be, const struct attention_args *a,
                                struct as_err *err)
{
    (void)err;
    struct task t = {.a = a, .parts = parts_of(be, a)};
    if (a->seq > 0)
        cpu_split(be, a->members * t.parts, forward_part, &t);
    return AS_OK;
}

/* h->row = dout . out, row by row: the term that the softmax's gradient subtracts. */
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

/* Turn scores into probabilities, and dp into the gradient by the scores. */
CPU_CLONES static void softmax_stripe_backward(const struct head *h, struct stripe s)
{
    float scale = h->scale;
    for (size_t r = 0; r < s.rows; r++) {
        float *p = h->p + r * h->seq, *dp = h->dp + r * h->seq;
        float lse = h->lse[s.first + r], off = h->row[r];
        size_t seen = s.first + r + 1;
        for (size_t i = 0; i < seen; i++) {
            p[i] = vec_exp(scale * p[i] - lse);
            dp[i] = scale * (p[i] * (dp[i] - off));
        }
        memset(p + seen, 0, (s.keys - seen) * sizeof(*p)); /* later positions */
        memset(dp + seen, 0, (s.keys - seen) * sizeof(*dp));
    }
}

/* dq, dk, dv have the layout of q, k, v. */
static void backward_head(const struct head *h, const float *out, const float *dout, float *dq,
                          float *dk, float *dv)
{
    for (size_t t = 0; t < h->seq; t++) {
        memset(dk + t * h->wide, 0, h->dim * sizeof(*dk));
        memset(dv + t * h->wide, 0, h->dim * sizeof(*dv));
    }
    for (size_t first = 0; first < h->seq; first += STRIPE) {
        struct stripe s = stripe_at(h, first);
        const float *q = h->q + first * h->wide, *dy = dout + first * h->narrow;
        stripe_scores(h, s, q, h->wide, h->k, h->p);
        stripe_scores(h, s, dy, h->narrow, h->v, h->dp);
        row_products(h, s, out, dout);
        softmax_stripe_backward(h, s);
        add_weighted_rows(h, s, h->p, dy, h->narrow, dv);
        add_weighted_rows(h, s, h->dp, q, h->wide, dk);
        weighted_rows(h, s, h->dp, h->k, dq + first * h->wide, h->wide);
    }
}

static void backward_part(void *arg, size_t tile)
{
    const struct task *t = arg;
    const struct attention_args *a = t->a;
    size_t k = tile / t->parts, part = tile % t->parts, row = a->heads * a->head_dim;
    for (size_t i = part; i < a->batch * a->heads; i += t->parts) {
        struct head h = head_of(a, k, i, part);
        float *dq = tensor_f32(t->dqkv, k) + (h.q - tensor_f32(a->qkv, k));
        backward_head(&h, tensor_f32(a->out, k) + at_out(a, i),
                      tensor_f32(t->dout, k) + at_out(a, i), dq, dq + row, dq + 2 * row);
    }
}

as_status cpu_attention_backward(struct backend *be, const struct attention_args *a,
                                 struct tensor dout, struct tensor dqkv, struct as_err *err)
{
    (void)err;
    struct task t = {a, dout, dqkv, parts_of(be, a)};
    if (a->seq > 0)
        cpu_split(be, a->members * t.parts, backward_part, &t);
    return AS_OK;
}
