/* Softmax cross-entropy and mean squares, row by row, with sums in double.
 *
 * The exponentials are taken relative to the largest logit of the row, so they cannot overflow. A
 * NaN logit or a label out of range makes the whole row NaN: the trainer then finds the fault in
 * the loss. A class whose target is 0 is left out of the sum, because its logit may be -infinity
 * and 0 * infinity is NaN. */
#include "kernels/reference/reference.h"

#include <math.h>

void ref_reduce_rows(const struct loss_out *o, size_t k, size_t batch)
{
    const float *row = tensor_f32(o->row_loss, k);
    double sum = 0;
    for (size_t r = 0; r < batch; r++)
        sum += (double)row[r];
    double mean = batch > 0 ? sum / (double)batch : 0;
    float *loss = tensor_f32(o->loss, k);
    *loss = (float)((o->accumulate ? (double)*loss : 0) + (double)o->weight * mean);
}

/* The index of the largest, the first of equals; -1 when one is NaN. */
static int32_t argmax(const float *z, size_t n)
{
    size_t best = 0;
    for (size_t c = 0; c < n; c++) {
        if (isnan(z[c]))
            return -1;
        if (z[c] > z[best])
            best = c;
    }
    return (int32_t)best;
}

/* log of the sum of exp(z); `max` is the largest. */
static double log_sum_exp(const float *z, size_t n, double max)
{
    double sum = 0;
    for (size_t c = 0; c < n; c++)
        sum += exp((double)z[c] - max);
    return max + log(sum);
}

struct ce_row {
    size_t classes;
    int32_t label;
    double smoothing;
    double grad_scale;    /* already divided by B */
    const float *weights; /* [C]; NULL: 1 */
    double norm;          /* B / sum w[label]; without weights 1 */
};

static double weight_of(const struct ce_row *row, size_t c)
{
    return row->weights != NULL ? (double)row->weights[c] : 1;
}

/* w_c target_c, multiplied by norm like everything in this row. */
static double share_of(const struct ce_row *row, size_t c)
{
    double hit = (int32_t)c == row->label ? 1 - row->smoothing : 0;
    return row->norm * weight_of(row, c) * (row->smoothing / (double)row->classes + hit);
}

/* Returns the loss of one row and writes its gradient to dz, which may be z or NULL. */
static double ce_row(const struct ce_row *row, const float *z, int32_t best, float *dz)
{
    size_t n = row->classes;
    bool sound = best >= 0 && row->label >= 0 && (size_t)row->label < n;
    double lse = sound ? log_sum_exp(z, n, (double)z[best]) : NAN;
    double loss = 0 * lse * row->norm, whole = 0; /* NaN where one is not finite */
    for (size_t c = 0; c < n; c++) {
        double share = share_of(row, c);
        whole += share;
        if (share > 0) /* leaves 0 * infinity out */
            loss += share * (lse - (double)z[c]);
    }
    for (size_t c = 0; c < n && dz != NULL; c++)
        dz[c] = (float)(row->grad_scale * (exp((double)z[c] - lse) * whole - share_of(row, c)));
    return sound ? loss : NAN;
}

/* B / sum of w[label]; 0 when that sum is 0. */
static double norm_of(const struct softmax_ce_args *a, size_t k)
{
    const float *weights = tensor_f32(a->class_weights, k);
    const int32_t *label = tensor_i32(a->labels, k);
    if (weights == NULL)
        return 1;
    double sum = 0;
    for (size_t r = 0; r < a->batch; r++)
        if (label[r] >= 0 && (size_t)label[r] < a->classes)
            sum += (double)weights[label[r]];
    return sum > 0 ? (double)a->batch / sum : 0;
}

/* Whether the label is among the five largest. */
static bool is_in_top5(const float *z, size_t n, int32_t best, int32_t label)
{
    if (best < 0 || label < 0 || (size_t)label >= n)
        return false;
    size_t larger = 0;
    for (size_t c = 0; c < n; c++)
        larger += z[c] > z[label] || (z[c] == z[label] && c < (size_t)label);
    return larger < 5;
}

static void count_rows(const struct softmax_ce_args *a, size_t k, int32_t hits, int32_t hits5)
{
    int32_t *correct = tensor_i32(a->correct, k), *top5 = tensor_i32(a->top5, k);
    *correct = (a->out.accumulate ? *correct : 0) + hits;
    if (top5 != NULL)
        *top5 = (a->out.accumulate ? *top5 : 0) + hits5;
}

static void ce_member(const struct softmax_ce_args *a, size_t k)
{
    const float *z = tensor_f32(a->logits, k), *smoothing = tensor_f32(a->smoothing, k);
    const int32_t *label = tensor_i32(a->labels, k);
    float *dz = tensor_f32(a->dlogits, k), *row_loss = tensor_f32(a->out.row_loss, k);
    int32_t *row_class = tensor_i32(a->row_class, k), hits = 0, hits5 = 0;
    struct ce_row row = {
        .classes = a->classes,
        .smoothing = smoothing != NULL ? (double)*smoothing : 0,
        .grad_scale = (double)a->grad_scale / (double)a->batch,
        .weights = tensor_f32(a->class_weights, k),
        .norm = norm_of(a, k),
    };
    for (size_t r = 0; r < a->batch; r++) {
        size_t at = r * a->classes; /* [B, C] */
        row.label = label[r];
        row_class[r] = argmax(z + at, a->classes);
        hits += row_class[r] >= 0 && row_class[r] == label[r];
        hits5 += is_in_top5(z + at, a->classes, row_class[r], label[r]);
        row_loss[r] = (float)ce_row(&row, z + at, row_class[r], dz != NULL ? dz + at : NULL);
    }
    count_rows(a, k, hits, hits5);
}

as_status ref_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        ce_member(a, k);
        ref_reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}

as_status ref_mse(struct backend *be, const struct mse_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    double n = (double)a->batch * (double)a->outputs;
    for (size_t k = 0; k < a->members; k++) {
        const float *pred = tensor_f32(a->pred, k), *target = tensor_f32(a->target, k);
        float *dpred = tensor_f32(a->dpred, k), *row_loss = tensor_f32(a->out.row_loss, k);
        for (size_t r = 0; r < a->batch; r++) {
            double sum = 0;
            for (size_t o = 0; o < a->outputs; o++) {
                size_t at = r * a->outputs + o; /* [B, O] */
                double diff = (double)pred[at] - (double)target[at];
                sum += diff * diff;
                if (dpred != NULL)
                    dpred[at] = (float)((double)a->grad_scale * 2 / n * diff);
            }
            row_loss[r] = a->outputs > 0 ? (float)(sum / (double)a->outputs) : 0;
        }
        ref_reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}
