/* A row at a time: largest and sums in one pass, exponentials in pieces of CHUNK that stay in the
 * first cache, then the gradient. Sums over a row are in double, in order. */
#include "kernels/cpu/cpu.h"

#include <math.h>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/vec_math.h"

#define CHUNK 64

static void reduce_rows(const struct loss_out *o, size_t k, size_t batch)
{
    const float *row = tensor_f32(o->row_loss, k);
    double sum = 0;
    for (size_t r = 0; r < batch; r++)
        sum += (double)row[r];
    double mean = batch > 0 ? sum / (double)batch : 0;
    float *loss = tensor_f32(o->loss, k);
    *loss = (float)((o->accumulate ? (double)*loss : 0) + (double)o->weight * mean);
}

/* What one pass over the logits of a row tells. */
struct scan {
    int32_t best; /* the first of the largest; -1 when one is NaN */
    float max;    /* NaN when one is NaN */
    double sum;
};

CPU_INLINE struct scan scan_row(const float *z, size_t n)
{
    struct scan s = {0, z[0], 0};
    bool odd = false;
    for (size_t c = 0; c < n; c++) {
        s.sum += (double)z[c];
        odd |= z[c] != z[c];
        if (z[c] > s.max) {
            s.max = z[c];
            s.best = (int32_t)c;
        }
    }
    if (odd) {
        s.best = -1;
        s.max = NAN;
    }
    return s;
}

/* Sum of exp(z - max); the terms go to `e` unless NULL (which may be z). */
CPU_INLINE double exp_row(const float *z, float max, float *e, size_t n)
{
    double sum = 0;
    for (size_t first = 0; first < n; first += CHUNK) {
        float piece[CHUNK];
        size_t len = n - first < CHUNK ? n - first : CHUNK;
        for (size_t i = 0; i < len; i++)
            piece[i] = vec_exp(z[first + i] - max);
        for (size_t i = 0; i < len; i++)
            sum += (double)piece[i];
        if (e != NULL)
            memcpy(e + first, piece, len * sizeof(*e));
    }
    return sum;
}

struct ce {
    size_t classes;
    float smoothing, grad_scale; /* grad_scale is already divided by B */
};

/* One row: its class and loss; its gradient to dz unless NULL (which may be z). */
CPU_INLINE float ce_row(const struct ce *ce, const float *z, int32_t label, float *dz,
                        int32_t *ret_class)
{
    size_t n = ce->classes;
    struct scan s = scan_row(z, n);
    *ret_class = s.best;
    bool sound = label >= 0 && (size_t)label < n;
    float at_label = sound ? z[label] : NAN;
    double sum = exp_row(z, sound ? s.max : NAN, dz, n);
    double smoothing = (double)ce->smoothing, even = smoothing / (double)n;
    double loss = log(sum) + (double)s.max - (1 - smoothing) * (double)at_label;
    if (even > 0) /* 0 * infinity must not get in */
        loss -= even * s.sum;
    if (dz != NULL) {
        float scale = ce->grad_scale, inverse = (float)(1 / sum), shift = (float)even;
        for (size_t c = 0; c < n; c++)
            dz[c] = scale * (dz[c] * inverse - shift);
        if (sound)
            dz[label] -= scale * (1 - ce->smoothing);
    }
    return (float)loss;
}

CPU_CLONES static int32_t ce_member(const struct ce *ce, const float *z, const int32_t *label,
                                    float *dz, float *row_loss, int32_t *row_class, size_t batch)
{
    int32_t hits = 0;
    for (size_t r = 0; r < batch; r++) {
        size_t at = r * ce->classes; /* [B, C] */
        row_loss[r] = ce_row(ce, z + at, label[r], dz != NULL ? dz + at : NULL, &row_class[r]);
        hits += row_class[r] >= 0 && row_class[r] == label[r];
    }
    return hits;
}

as_status cpu_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *smoothing = tensor_f32(a->smoothing, k);
        struct ce ce = {a->classes, smoothing != NULL ? *smoothing : 0.0f,
                        a->grad_scale / (float)a->batch};
        int32_t hits = ce_member(&ce, tensor_f32(a->logits, k), tensor_i32(a->labels, k),
                                 tensor_f32(a->dlogits, k), tensor_f32(a->out.row_loss, k),
                                 tensor_i32(a->row_class, k), a->batch);
        int32_t *correct = tensor_i32(a->correct, k);
        *correct = (a->out.accumulate ? *correct : 0) + hits;
        reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}

CPU_CLONES static void mse_member(const float *pred, const float *target, float *dpred, float scale,
                                  float *row_loss, size_t batch, size_t outputs)
{
    for (size_t r = 0; r < batch; r++) {
        double sum = 0;
        for (size_t o = 0; o < outputs; o++) {
            float diff = pred[r * outputs + o] - target[r * outputs + o];
            sum += (double)diff * (double)diff;
            if (dpred != NULL)
                dpred[r * outputs + o] = scale * diff;
        }
        row_loss[r] = outputs > 0 ? (float)(sum / (double)outputs) : 0.0f;
    }
}

as_status cpu_mse(struct backend *be, const struct mse_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    double n = (double)a->batch * (double)a->outputs;
    for (size_t k = 0; k < a->members; k++) {
        mse_member(tensor_f32(a->pred, k), tensor_f32(a->target, k), tensor_f32(a->dpred, k),
                   (float)((double)a->grad_scale * 2 / n), tensor_f32(a->out.row_loss, k), a->batch,
                   a->outputs);
        reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}

CPU_CLONES static void softmax_member(const float *logits, float *probs, size_t batch, size_t n)
{
    for (size_t r = 0; r < batch; r++) {
        float *p = probs + r * n;
        const float *z = logits + r * n;
        float inverse = (float)(1 / exp_row(z, scan_row(z, n).max, p, n));
        for (size_t c = 0; c < n; c++)
            p[c] *= inverse;
    }
}

as_status cpu_softmax(struct backend *be, const struct softmax_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members && a->classes > 0; k++)
        softmax_member(tensor_f32(a->logits, k), tensor_f32(a->probs, k), a->batch, a->classes);
    return AS_OK;
}
