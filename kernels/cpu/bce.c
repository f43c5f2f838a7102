/* Works on pieces of CHUNK outputs that may cross rows: with one output in each row there would be
 * no vectors otherwise. The sums of the rows are computed afterwards, in order. */
#include <assert.h>
#include <math.h>

#include "base/cpu_clones.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vec_math.h"

#define CHUNK 64

/* One member. An output's weight is base + slope * t. */
struct bce {
    const float *z, *t;
    float *dz; /* NULL: not wanted; may be z */
    size_t n, outputs;
    float keep, even; /* t becomes keep * t + even */
    float base, slope;
    float scale; /* of the gradient, divided by B O */
};

CPU_INLINE float sigmoid(float z)
{
    float e = vec_exp(-fabsf(z)), inverse = 1.0f / (1.0f + e);
    return z < 0.0f ? e * inverse : inverse;
}

/* Writes the losses of [first, first + len) to `loss` and the gradients to dz. Returns the number
 * of correct outputs. */
CPU_INLINE int32_t bce_chunk(const struct bce *m, size_t first, size_t len, float *loss)
{
    int32_t hits = 0;
    float grad[CHUNK];
    for (size_t i = 0; i < len; i++) {
        float z = m->z[first + i], given = m->t[first + i];
        float t = m->keep * given + m->even, weight = m->base + m->slope * given;
        float e = vec_exp(-fabsf(z));
        loss[i] = weight * ((z < 0.0f ? 0.0f : z) - z * t + vec_log1p(e));
        grad[i] = m->scale * weight * (sigmoid(z) - t);
        hits += (z > 0.0f) == (given > 0.5f) && z == z;
    }
    if (m->dz != NULL)
        memcpy(m->dz + first, grad, len * sizeof(*grad));
    return hits;
}

CPU_CLONES static int32_t bce_member(const struct bce *m, float *row_loss)
{
    int32_t hits = 0;
    size_t row = 0, done = 0; /* rows, and outputs of the next one */
    double sum = 0;
    for (size_t first = 0; first < m->n; first += CHUNK) {
        float loss[CHUNK];
        size_t len = m->n - first < CHUNK ? m->n - first : CHUNK;
        hits += bce_chunk(m, first, len, loss);
        for (size_t i = 0; i < len; i++) {
            sum += (double)loss[i];
            if (++done < m->outputs)
                continue;
            row_loss[row++] = (float)(sum / (double)m->outputs);
            sum = 0;
            done = 0;
        }
    }
    return hits;
}

/* Must run before the gradient, which may overwrite the logits. */
static void classify_rows(const struct bce_args *a, size_t k)
{
    const float *z = tensor_f32(a->logits, k);
    int32_t *row_class = tensor_i32(a->row_class, k);
    for (size_t r = 0; r < a->batch; r++) {
        float first = a->outputs > 0 ? z[r * a->outputs] : NAN;
        row_class[r] = isnan(first) ? -1 : first > 0.0f;
    }
}

/* The weights, divided by their mean over the batch; 0 when that is 0. */
static void set_weights(struct bce *m, const float *weights)
{
    assert(m->t != NULL); /* ops_loss.c has checked it */
    double w0 = (double)weights[0], w1 = (double)weights[1], sum = 0;
    for (size_t i = 0; i < m->n; i++)
        sum += w0 * (1 - (double)m->t[i]) + w1 * (double)m->t[i];
    double norm = sum > 0 ? (double)m->n / sum : 0;
    m->base = (float)(w0 * norm);
    m->slope = (float)((w1 - w0) * norm);
}

as_status cpu_bce(struct backend *be, const struct bce_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    size_t n = a->batch * a->outputs;
    for (size_t k = 0; k < a->members; k++) {
        float smoothing = a->smoothing.buf != NULL ? *tensor_f32(a->smoothing, k) : 0.0f;
        struct bce m = {
            .z = tensor_f32(a->logits, k),
            .t = tensor_f32(a->target, k),
            .dz = tensor_f32(a->dlogits, k),
            .n = n,
            .outputs = a->outputs,
            .keep = 1.0f - smoothing,
            .even = 0.5f * smoothing,
            .base = 1.0f,
            .scale = (float)((double)a->grad_scale / (double)n),
        };
        if (a->class_weights.buf != NULL)
            set_weights(&m, tensor_f32(a->class_weights, k));
        float *row_loss = tensor_f32(a->out.row_loss, k);
        memset(row_loss, 0, a->batch * sizeof(*row_loss));
        classify_rows(a, k);
        int32_t *correct = tensor_i32(a->correct, k), hits = bce_member(&m, row_loss);
        *correct = (a->out.accumulate ? *correct : 0) + hits;
        cpu_reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}
