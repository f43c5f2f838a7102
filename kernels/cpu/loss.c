/* Losses, a row at a time: the largest logit, the exponentials with their sum, then the
 * gradient. Sums over a row are in double and in a fixed order.
 *
 * Softmax cross-entropy of up to LANES classes works on LANES rows side by side instead. Row by row
 * each vector would be partly empty, and its sums would go across it. */
#include "kernels/cpu/cpu.h"

#include <math.h>

#include "base/cpu_clones.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/vec_math.h"

#define LANES 16     /* floats that a loop handles at once; sums have as many parts */
#define MAX_TILES 64 /* of the rows of one member */

void cpu_reduce_rows(const struct loss_out *o, size_t k, size_t batch)
{
    const float *row = tensor_f32(o->row_loss, k);
    double sum = 0;
    for (size_t r = 0; r < batch; r++)
        sum += (double)row[r];
    double mean = batch > 0 ? sum / (double)batch : 0;
    float *loss = tensor_f32(o->loss, k);
    *loss = (float)((o->accumulate ? (double)*loss : 0) + (double)o->weight * mean);
}

/* The results of one pass over the logits of a row. */
struct scan {
    int32_t best; /* the first of the largest; -1 when one is NaN */
    float max;    /* NaN when one is NaN */
};

/* The largest of whole blocks of LANES; NaN when one of their elements is. */
CPU_INLINE float max_of_blocks(const float *z, size_t n)
{
    float lane[LANES], max = -INFINITY;
    uint32_t odd[LANES] = {0}, any = 0;
    for (size_t j = 0; j < LANES; j++)
        lane[j] = -INFINITY;
    for (size_t first = 0; first < n; first += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            float v = z[first + j];
            odd[j] |= v != v;
            lane[j] = v > lane[j] ? v : lane[j];
        }
    }
    for (size_t j = 0; j < LANES; j++) {
        any |= odd[j];
        max = lane[j] > max ? lane[j] : max;
    }
    return any != 0 ? NAN : max;
}

CPU_INLINE struct scan scan_row(const float *z, size_t n)
{
    size_t whole = n - n % LANES, best = 0;
    float max = whole > 0 ? max_of_blocks(z, whole) : z[0];
    for (size_t c = whole; c < n; c++)
        max = z[c] > max || z[c] != z[c] ? z[c]
                                         : max; /* a NaN stays, because no value compares larger */
    if (max != max)
        return (struct scan){-1, NAN};
    while (z[best] != max)
        best++;
    return (struct scan){(int32_t)best, max};
}

/* In order. */
CPU_INLINE double sum_row(const float *z, size_t n)
{
    double sum = 0;
    for (size_t c = 0; c < n; c++)
        sum += (double)z[c];
    return sum;
}

/* Returns the sum of exp(z - max). Writes the terms to `e`, which may be z or NULL. */
CPU_INLINE double exp_row(const float *z, float max, float *e, size_t n)
{
    double lane[LANES] = {0}, sum = 0;
    float block[LANES];
    size_t whole = n - n % LANES;
    for (size_t first = 0; first < whole; first += LANES) {
        for (size_t j = 0; j < LANES; j++)
            block[j] = vec_exp(z[first + j] - max);
        for (size_t j = 0; j < LANES; j++)
            lane[j] += (double)block[j];
        if (e != NULL)
            memcpy(e + first, block, sizeof(block));
    }
    for (size_t j = 0; whole > 0 && j < LANES; j++)
        sum += lane[j];
    for (size_t j = 0; j < n - whole; j++)
        block[j] = vec_exp(z[whole + j] - max);
    for (size_t j = 0; j < n - whole; j++)
        sum += (double)block[j];
    for (size_t j = 0; e != NULL && j < n - whole; j++)
        e[whole + j] = block[j];
    return sum;
}

struct ce {
    size_t classes;
    float smoothing, grad_scale; /* grad_scale is already divided by B */
    const float *weights;        /* [C]; NULL: 1 */
    double norm;                 /* B / sum w[label]; without weights 1 */
    double all_weights;          /* sum over the classes */
    bool top5;
};

/* Classes before `label` that are at least as large, and classes after it that are larger. */
CPU_INLINE int32_t count_larger(const float *z, size_t n, size_t label)
{
    int32_t larger = 0;
    for (size_t c = 0; c < label; c++)
        larger += z[c] >= z[label];
    for (size_t c = label + 1; c < n; c++)
        larger += z[c] > z[label];
    return larger;
}

/* Sum of w z over the classes with w > 0. The others are left out, because 0 * infinity is NaN. */
CPU_INLINE double weighted_sum(const float *weights, const float *z, size_t n)
{
    double sum = 0;
    for (size_t c = 0; c < n; c++)
        sum += weights[c] > 0.0f ? (double)weights[c] * (double)z[c] : 0;
    return sum;
}

/* dz holds exp(z - max), whose sum is `sum`. It becomes the gradient. */
CPU_INLINE void ce_gradient(const struct ce *ce, float *dz, double sum, double whole)
{
    float scale = ce->grad_scale, by = (float)(whole / sum);
    float shift = (float)((double)ce->smoothing / (double)ce->classes * ce->norm);
    if (ce->weights == NULL)
        for (size_t c = 0; c < ce->classes; c++)
            dz[c] = scale * (dz[c] * by - shift);
    else
        for (size_t c = 0; c < ce->classes; c++)
            dz[c] = scale * (dz[c] * by - shift * ce->weights[c]);
}

/* The results of one row. */
struct found {
    int32_t best; /* its class */
    bool in_top5;
    float loss;
};

/* One row. Writes its gradient to dz, which may be z or NULL. */
CPU_INLINE struct found ce_row(const struct ce *ce, const float *z, int32_t label, float *dz)
{
    size_t n = ce->classes;
    struct scan s = scan_row(z, n);
    bool sound = label >= 0 && (size_t)label < n;
    float at_label = sound ? z[label] : NAN;
    double weight = sound && ce->weights != NULL ? (double)ce->weights[label] : 1;
    double smoothing = (double)ce->smoothing, even = smoothing / (double)n;
    bool in_top5 = ce->top5 && sound && s.best >= 0 && count_larger(z, n, (size_t)label) < 5;
    double z_sum = 0;
    if (even > 0)
        z_sum = ce->weights == NULL ? sum_row(z, n) : weighted_sum(ce->weights, z, n);
    double sum = exp_row(z, sound ? s.max : NAN, dz, n);
    double hit = (1 - smoothing) * weight, whole = hit + even * ce->all_weights;
    double lse = log(sum) + (double)s.max, loss = 0;
    if (even > 0) /* here and below: leaves 0 * infinity out */
        loss += even * (ce->all_weights * lse - z_sum);
    loss += hit > 0 ? hit * (lse - (double)at_label) : 0 * lse;
    if (dz != NULL) {
        ce_gradient(ce, dz, sum, whole * ce->norm);
        if (sound)
            dz[label] -= ce->grad_scale * (float)(hit * ce->norm);
    }
    return (struct found){s.best, in_top5, sound ? (float)(loss * ce->norm) : NAN};
}

struct hits {
    int32_t first, top5;
};

/* ---- few classes: rows side by side ---- */

/* A block of rows, [class][row], so that no sum goes across a vector and no vector is half empty.
 * If there are fewer rows than LANES, the first row is repeated, without a label. */
struct block {
    size_t rows;
    _Alignas(64) float z[LANES][LANES];
    float e[LANES][LANES]; /* exp(z - max), then the gradient */
    float max[LANES], at_label[LANES];
    int32_t label[LANES], best[LANES], larger[LANES];
    double sum[LANES], hit[LANES];
};

/* Without the pragma gcc 12 unrolls so short a loop before it looks for vectors, and finds none. */
#define EACH_ROW(j) _Pragma("GCC unroll 1") for (size_t j = 0; j < LANES; j++)

/* Copy rows [row][class] into a block's [class][row]. */
static void turn_in_each(struct block *b, const float *z, size_t n)
{
    for (size_t j = 0; j < LANES; j++)
        for (size_t c = 0; c < n; c++)
            b->z[c][j] = z[(j < b->rows ? j * n : 0) + c];
}

static void turn_out_each(const struct block *b, float *dz, size_t n)
{
    for (size_t j = 0; j < b->rows; j++)
        for (size_t c = 0; c < n; c++)
            dz[j * n + c] = b->e[c][j];
}

#if defined(__x86_64__)

TRANSPOSE_CODE static void turn_in_avx512(struct block *b, const float *z, size_t n)
{
    const float *row[LANES];
    for (size_t j = 0; j < LANES; j++)
        row[j] = z + (j < b->rows ? j * n : 0);
    for (size_t c = 0; c < n; c += 4) {
        __m512 v[4];
        turn_4(row, c, n - c, v);
        for (size_t i = 0; i < 4; i++)
            _mm512_store_ps(b->z[c + i], v[i]);
    }
}

TRANSPOSE_CODE static void turn_out_avx512(const struct block *b, float *dz, size_t n)
{
    const float *row[LANES];
    __mmask16 mask = (__mmask16)((1u << n) - 1);
    for (size_t c = 0; c < LANES; c++)
        row[c] = b->e[c < n ? c : 0];
    for (size_t j = 0; j < b->rows; j += 4) {
        __m512 v[4];
        turn_4(row, j, 4, v);
        for (size_t i = 0; i < 4 && j + i < b->rows; i++)
            _mm512_mask_storeu_ps(dz + (j + i) * n, mask, v[i]);
    }
}

#else
#define turn_in_avx512 turn_in_each
#define turn_out_avx512 turn_out_each
#endif

CPU_INLINE void block_load(struct block *b, const float *z, const int32_t *label, size_t n)
{
    if (gemm_best() == GEMM_AVX512)
        turn_in_avx512(b, z, n);
    else
        turn_in_each(b, z, n);
    EACH_ROW(j)
    b->label[j] = j < b->rows ? label[j] : -1;
}

/* The first of the largest; -1 and NaN if one is NaN. at_label is NaN if the label is out of
 * range. */
CPU_INLINE void block_scan(struct block *b, size_t n)
{
    EACH_ROW(j)
    {
        b->max[j] = -INFINITY;
        b->best[j] = 0;
        b->at_label[j] = NAN;
    }
    for (size_t c = 0; c < n; c++) {
        EACH_ROW(j)
        {
            float z = b->z[c][j], max = b->max[j];
            b->best[j] = z > max ? (int32_t)c : b->best[j];
            b->max[j] = z > max || z != z ? z : max;
            b->at_label[j] = b->label[j] == (int32_t)c ? z : b->at_label[j];
        }
    }
    EACH_ROW(j)
    b->best[j] = b->max[j] != b->max[j] ? -1 : b->best[j];
}

/* As count_larger(). */
CPU_INLINE void block_count(struct block *b, size_t n)
{
    EACH_ROW(j)
    b->larger[j] = 0;
    for (size_t c = 0; c < n; c++) {
        EACH_ROW(j)
        {
            float z = b->z[c][j], at = b->at_label[j];
            b->larger[j] += (int32_t)c < b->label[j] ? z >= at : z > at;
        }
    }
}

/* The factor of each row's hit. Rows without a valid label are NaN from here on. */
CPU_INLINE void block_weigh(struct block *b, const struct ce *ce)
{
    double whole = 1 - (double)ce->smoothing;
    int32_t n = (int32_t)ce->classes;
    EACH_ROW(j)
    {
        bool sound = b->label[j] >= 0 && b->label[j] < n;
        b->hit[j] = whole;
        b->max[j] = sound ? b->max[j] : NAN;
    }
    for (size_t j = 0; ce->weights != NULL && j < b->rows; j++)
        if (b->label[j] >= 0 && b->label[j] < n)
            b->hit[j] = whole * (double)ce->weights[b->label[j]];
}

CPU_INLINE void block_exp(struct block *b, size_t n)
{
    EACH_ROW(j)
    b->sum[j] = 0;
    for (size_t c = 0; c < n; c++) {
        EACH_ROW(j)
        b->e[c][j] = vec_exp(b->z[c][j] - b->max[j]);
        EACH_ROW(j)
        b->sum[j] += (double)b->e[c][j];
    }
}

/* row_loss of the block's rows; NaN without a label. */
CPU_INLINE void block_loss(struct block *b, const struct ce *ce, float *row_loss)
{
    size_t n = ce->classes;
    double even = (double)ce->smoothing / (double)n, all_weights = ce->all_weights;
    double all[LANES] = {0};
    float loss[LANES];
    for (size_t c = 0; even > 0 && c < n; c++) {
        double w = ce->weights != NULL ? (double)ce->weights[c] : 1;
        if (!(w > 0)) /* here and below: leaves 0 * infinity out */
            continue;
        EACH_ROW(j)
        all[j] += w * (double)b->z[c][j];
    }
    EACH_ROW(j)
    {
        double lse = vec_log(b->sum[j]) + (double)b->max[j];
        double hit = b->hit[j] * (lse - (double)b->at_label[j]), none = 0 * lse;
        hit = b->hit[j] > 0 ? hit : none;
        hit += even > 0 ? even * (all_weights * lse - all[j]) : 0;
        loss[j] = b->at_label[j] == b->at_label[j] ? (float)(hit * ce->norm) : NAN;
    }
    memcpy(row_loss, loss, b->rows * sizeof(*loss));
}

CPU_INLINE void block_gradient(struct block *b, const struct ce *ce, float *dz)
{
    size_t n = ce->classes;
    double even = (double)ce->smoothing / (double)n, most = even * ce->all_weights;
    float by[LANES], hit[LANES], scale = ce->grad_scale;
    EACH_ROW(j)
    {
        by[j] = (float)((b->hit[j] + most) * ce->norm / b->sum[j]);
        hit[j] = scale * (float)(b->hit[j] * ce->norm);
    }
    for (size_t c = 0; c < n; c++) {
        float shift = (float)(even * ce->norm) * (ce->weights != NULL ? ce->weights[c] : 1.0f);
        EACH_ROW(j)
        {
            float d = scale * (b->e[c][j] * by[j] - shift);
            b->e[c][j] = b->label[j] == (int32_t)c ? d - hit[j] : d;
        }
    }
    if (gemm_best() == GEMM_AVX512)
        turn_out_avx512(b, dz, n);
    else
        turn_out_each(b, dz, n);
}

/* Count the rows whose label is the largest, and those where it is among the five largest. */
CPU_INLINE void block_hits(const struct block *b, const struct ce *ce, struct hits *hits)
{
    int32_t first = 0, top5 = 0, n = (int32_t)ce->classes;
    EACH_ROW(j)
    {
        bool sound = b->label[j] >= 0 && b->label[j] < n && b->best[j] >= 0;
        first += sound && b->best[j] == b->label[j];
        top5 += sound && ce->top5 && b->larger[j] < 5;
    }
    hits->first += first;
    hits->top5 += top5;
}

/* Up to LANES rows of up to LANES classes, at least one of each. */
CPU_INLINE void ce_block(const struct ce *ce, const float *z, const int32_t *label, float *dz,
                         float *row_loss, int32_t *row_class, size_t rows, struct hits *hits)
{
    struct block b;
    b.rows = rows;
    block_load(&b, z, label, ce->classes);
    block_scan(&b, ce->classes);
    if (ce->top5)
        block_count(&b, ce->classes);
    block_hits(&b, ce, hits);
    memcpy(row_class, b.best, rows * sizeof(*row_class));
    block_weigh(&b, ce);
    block_exp(&b, ce->classes);
    block_loss(&b, ce, row_loss);
    if (dz != NULL)
        block_gradient(&b, ce, dz);
}

/* ---- rows of a member ---- */

CPU_CLONES static void ce_member(const struct ce *ce, const float *z, const int32_t *label,
                                 float *dz, float *row_loss, int32_t *row_class, size_t batch,
                                 struct hits *ret)
{
    *ret = (struct hits){0, 0};
    for (size_t r = 0; ce->classes <= LANES && r < batch; r += LANES) {
        size_t at = r * ce->classes; /* [B, C] */
        ce_block(ce, z + at, label + r, dz != NULL ? dz + at : NULL, row_loss + r, row_class + r,
                 batch - r < LANES ? batch - r : LANES, ret);
    }
    for (size_t r = 0; ce->classes > LANES && r < batch; r++) {
        size_t at = r * ce->classes; /* [B, C] */
        struct found f = ce_row(ce, z + at, label[r], dz != NULL ? dz + at : NULL);
        row_loss[r] = f.loss;
        row_class[r] = f.best;
        ret->first += f.best >= 0 && f.best == label[r];
        ret->top5 += f.in_top5;
    }
}

/* The sums over all rows that class weights need. */
static void sum_class_weights(const struct softmax_ce_args *a, size_t k, struct ce *ce)
{
    const int32_t *label = tensor_i32(a->labels, k);
    double sum = 0;
    for (size_t r = 0; r < a->batch; r++)
        if (label[r] >= 0 && (size_t)label[r] < a->classes)
            sum += (double)ce->weights[label[r]];
    ce->norm = sum > 0 ? (double)a->batch / sum : 0;
    ce->all_weights = 0;
    for (size_t c = 0; c < a->classes; c++)
        ce->all_weights += (double)ce->weights[c];
}

/* Rows of one member, side by side. */
struct ce_tiles {
    const struct softmax_ce_args *a;
    const struct ce *ce;
    size_t k, rows; /* of one tile */
    struct hits hits[MAX_TILES];
};

static void ce_tile(void *arg, size_t i)
{
    struct ce_tiles *t = arg;
    const struct softmax_ce_args *a = t->a;
    size_t first = i * t->rows, left = a->batch - first, at = first * a->classes;
    float *dz = tensor_f32(a->dlogits, t->k);
    ce_member(t->ce, tensor_f32(a->logits, t->k) + at, tensor_i32(a->labels, t->k) + first,
              dz != NULL ? dz + at : NULL, tensor_f32(a->out.row_loss, t->k) + first,
              tensor_i32(a->row_class, t->k) + first, left < t->rows ? left : t->rows, &t->hits[i]);
}

static struct hits ce_rows(struct backend *be, const struct softmax_ce_args *a, size_t k,
                           const struct ce *ce)
{
    size_t rows = CPU_CHUNK / a->classes + 1, least = a->batch / MAX_TILES + 1;
    struct ce_tiles t;
    t.a = a;
    t.ce = ce;
    t.k = k;
    t.rows = rows > least ? rows : least;
    struct hits all = {0, 0};
    size_t n = (a->batch + t.rows - 1) / t.rows;
    cpu_split(be, n, ce_tile, &t);
    for (size_t i = 0; i < n; i++) {
        all.first += t.hits[i].first;
        all.top5 += t.hits[i].top5;
    }
    return all;
}

as_status cpu_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err)
{
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *smoothing = tensor_f32(a->smoothing, k);
        struct ce ce = {
            .classes = a->classes,
            .smoothing = smoothing != NULL ? *smoothing : 0.0f,
            .grad_scale = a->grad_scale / (float)a->batch,
            .weights = tensor_f32(a->class_weights, k),
            .norm = 1,
            .all_weights = (double)a->classes,
            .top5 = a->top5.buf != NULL,
        };
        if (ce.weights != NULL)
            sum_class_weights(a, k, &ce);
        struct hits hits = ce_rows(be, a, k, &ce);
        int32_t *correct = tensor_i32(a->correct, k), *top5 = tensor_i32(a->top5, k);
        *correct = (a->out.accumulate ? *correct : 0) + hits.first;
        if (top5 != NULL)
            *top5 = (a->out.accumulate ? *top5 : 0) + hits.top5;
        cpu_reduce_rows(&a->out, k, a->batch);
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
        cpu_reduce_rows(&a->out, k, a->batch);
    }
    return AS_OK;
}
