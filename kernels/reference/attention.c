/* Causal attention straight from its definition. Every score is computed again where it is needed,
 * so there is no workspace. The head's elements are summed in chunks of CHUNK, so that the partial
 * results of a position fit on the stack. The backward pass computes the weights of a row again
 * from the saved log-sum-exp, as the other back ends do. */
#include "kernels/reference/reference.h"

#include <math.h>

#define CHUNK 32 /* elements of a head that are summed at once */

size_t ref_attention_work(const struct backend *be, const struct attention_args *a)
{
    (void)be;
    (void)a;
    return 0;
}

enum part { QUERY, KEY, VALUE };

/* One head of one sequence of one member. */
struct head {
    const struct attention_args *a;
    size_t k, b, h;
    double scale;
};

/* Where position t begins in [B, T, 3, H, D] and in [B, T, H, D]. */
static size_t at_qkv(const struct head *s, size_t t, enum part part)
{
    const struct attention_args *a = s->a;
    return (((s->b * a->seq + t) * 3 + (size_t)part) * a->heads + s->h) * a->head_dim;
}

static size_t at_out(const struct head *s, size_t t)
{
    return ((s->b * s->a->seq + t) * s->a->heads + s->h) * s->a->head_dim;
}

static const float *qkv(const struct head *s, size_t t, enum part part)
{
    return tensor_f32(s->a->qkv, s->k) + at_qkv(s, t, part);
}

static float *lse(const struct head *s)
{
    return tensor_f32(s->a->lse, s->k) + (s->b * s->a->heads + s->h) * s->a->seq;
}

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static double score(const struct head *s, size_t t, size_t from)
{
    return s->scale * dot(qkv(s, t, QUERY), qkv(s, from, KEY), s->a->head_dim);
}

static double log_sum_exp(const struct head *s, size_t t)
{
    double max = score(s, t, 0), sum = 0;
    for (size_t from = 1; from <= t; from++)
        max = fmax(max, score(s, t, from));
    for (size_t from = 0; from <= t; from++)
        sum += exp(score(s, t, from) - max);
    return max + log(sum);
}

static void forward_row(const struct head *s, size_t t, float *out)
{
    double whole = log_sum_exp(s, t);
    lse(s)[t] = (float)whole;
    for (size_t first = 0; first < s->a->head_dim; first += CHUNK) {
        size_t len = s->a->head_dim - first < CHUNK ? s->a->head_dim - first : CHUNK;
        double sum[CHUNK] = {0};
        for (size_t from = 0; from <= t; from++) {
            double p = exp(score(s, t, from) - whole);
            const float *v = qkv(s, from, VALUE) + first;
            for (size_t d = 0; d < len; d++)
                sum[d] += p * (double)v[d];
        }
        for (size_t d = 0; d < len; d++)
            out[first + d] = (float)sum[d];
    }
}

typedef void each_head(const struct head *s, struct tensor dout, struct tensor dqkv);

static void for_heads(const struct attention_args *a, each_head *f, struct tensor dout,
                      struct tensor dqkv)
{
    double scale = a->head_dim > 0 ? 1 / sqrt((double)a->head_dim) : 0;
    for (size_t k = 0; k < a->members; k++)
        for (size_t b = 0; b < a->batch; b++)
            for (size_t h = 0; h < a->heads; h++)
                f(&(struct head){a, k, b, h, scale}, dout, dqkv);
}

static void forward_head(const struct head *s, struct tensor dout, struct tensor dqkv)
{
    (void)dout;
    (void)dqkv;
    for (size_t t = 0; t < s->a->seq; t++)
        forward_row(s, t, tensor_f32(s->a->out, s->k) + at_out(s, t));
}

as_status ref_attention_forward(struct backend *be, const struct attention_args *a,
                                struct as_err *err)
{
    (void)be;
    (void)err;
    for_heads(a, forward_head, tensor_none(), tensor_none());
    return AS_OK;
}

/* The part of position t's output that comes from position `from`. */
struct pair {
    double p;  /* the softmax's weight */
    double ds; /* gradient by the score */
};

static struct pair pair_at(const struct head *s, const float *dout, size_t t, size_t from)
{
    size_t n = s->a->head_dim;
    const float *dy = dout + at_out(s, t), *y = tensor_f32(s->a->out, s->k) + at_out(s, t);
    double p = exp(score(s, t, from) - (double)lse(s)[t]);
    return (struct pair){p, p * (dot(dy, qkv(s, from, VALUE), n) - dot(dy, y, n))};
}

/* to[0, n) += by * x[0, n) */
static void add_scaled(double *to, double by, const float *x, size_t n)
{
    for (size_t d = 0; d < n; d++)
        to[d] += by * (double)x[d];
}

/* A piece of the three gradients of position t: as a query it reads earlier positions, as a key
 * and a value later positions read it. */
static void backward_piece(const struct head *s, const float *dout, float *dqkv, size_t t,
                           size_t first, size_t len)
{
    double dq[CHUNK] = {0}, dk[CHUNK] = {0}, dv[CHUNK] = {0};
    for (size_t from = 0; from <= t; from++)
        add_scaled(dq, s->scale * pair_at(s, dout, t, from).ds, qkv(s, from, KEY) + first, len);
    for (size_t later = t; later < s->a->seq; later++) {
        struct pair x = pair_at(s, dout, later, t);
        add_scaled(dk, s->scale * x.ds, qkv(s, later, QUERY) + first, len);
        add_scaled(dv, x.p, dout + at_out(s, later) + first, len);
    }
    for (size_t d = 0; d < len; d++) {
        dqkv[at_qkv(s, t, QUERY) + first + d] = (float)dq[d];
        dqkv[at_qkv(s, t, KEY) + first + d] = (float)dk[d];
        dqkv[at_qkv(s, t, VALUE) + first + d] = (float)dv[d];
    }
}

static void backward_head(const struct head *s, struct tensor dout, struct tensor dqkv)
{
    size_t n = s->a->head_dim;
    for (size_t t = 0; t < s->a->seq; t++)
        for (size_t first = 0; first < n; first += CHUNK)
            backward_piece(s, tensor_f32(dout, s->k), tensor_f32(dqkv, s->k), t, first,
                           n - first < CHUNK ? n - first : CHUNK);
}

as_status ref_attention_backward(struct backend *be, const struct attention_args *a,
                                 struct tensor dout, struct tensor dqkv, struct as_err *err)
{
    (void)be;
    (void)err;
    for_heads(a, backward_head, dout, dqkv);
    return AS_OK;
}
