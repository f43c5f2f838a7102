/* Sums are kept in LANES doubles, which are added in a fixed order, so that the instruction set
 * does not change the bits. */
#include "kernels/cpu/cpu.h"

#include <math.h>

#include "base/cpu_clones.h"
#include "kernels/cpu/vec_math.h"

#define LANES 16
#define EXPONENT 0x7f800000u /* all ones: infinity or NaN */

struct stats {
    double sum;
    bool finite;
};

CPU_CLONES static void stats_part(const float *g, size_t n, struct stats *ret)
{
    double lane[LANES] = {0};
    uint32_t odd[LANES] = {0};
    size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            lane[j] += (double)g[i + j] * (double)g[i + j];
            odd[j] |= (bits_of_float(g[i + j]) & EXPONENT) == EXPONENT;
        }
    }
    for (size_t i = whole; i < n; i++) {
        lane[i - whole] += (double)g[i] * (double)g[i];
        odd[0] |= (bits_of_float(g[i]) & EXPONENT) == EXPONENT;
    }
    *ret = (struct stats){0, true};
    for (size_t j = 0; j < LANES; j++) {
        ret->sum += lane[j];
        ret->finite = ret->finite && odd[j] == 0;
    }
}

/* A large member in at most MAX_PARTS parts, whose sums are added in their order. */
#define MAX_PARTS 64

struct parts {
    const float *g;
    size_t n, len; /* elements of all parts; of one part */
    struct stats stats[MAX_PARTS];
};

static void stats_tile(void *arg, size_t i)
{
    struct parts *p = arg;
    size_t first = i * p->len, left = p->n - first;
    stats_part(p->g + first, left < p->len ? left : p->len, &p->stats[i]);
}

static struct stats stats_member(struct backend *be, const float *g, size_t n)
{
    struct parts p;
    p.g = g;
    p.n = n;
    p.len = n / MAX_PARTS + 1 > CPU_CHUNK ? n / MAX_PARTS + 1 : CPU_CHUNK;
    size_t n_parts = (n + p.len - 1) / p.len;
    struct stats all = {0, true};
    cpu_split(be, n_parts, stats_tile, &p);
    for (size_t i = 0; i < n_parts; i++) {
        all.sum += p.stats[i].sum;
        all.finite = all.finite && p.stats[i].finite;
    }
    return all;
}

as_status cpu_grad_stats(struct backend *be, const struct grad_stats_args *a, struct as_err *err)
{
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        struct stats s = stats_member(be, tensor_f32(a->grads, k), a->n);
        *tensor_f32(a->sq_norm, k) = (float)s.sum;
        *tensor_i32(a->finite, k) = s.finite;
        if (a->active.buf != NULL && !s.finite)
            *tensor_i32(a->active, k) = 0;
    }
    return AS_OK;
}

CPU_CLONES static void scale_part(float *g, size_t n, float by)
{
    for (size_t i = 0; i < n; i++)
        g[i] *= by;
}

static void clip_chunk(void *arg, size_t k, size_t first, size_t n)
{
    const struct grad_clip_args *a = arg;
    double norm = sqrt((double)*tensor_f32(a->sq_norm, k));
    double max_norm = (double)*tensor_f32(a->max_norm, k);
    if (isfinite(norm) && max_norm > 0 && max_norm < norm + 1e-6)
        scale_part(tensor_f32(a->grads, k) + first, n, (float)(max_norm / (norm + 1e-6)));
}

as_status cpu_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err)
{
    (void)err;
    struct grad_clip_args args = *a;
    cpu_split_elements(be, a->members, a->n, clip_chunk, &args);
    return AS_OK;
}

CPU_CLONES static void accumulate_part(const float *restrict g, float *restrict sum, size_t n,
                                       float scale, bool first)
{
    if (first) {
        for (size_t i = 0; i < n; i++)
            sum[i] = scale * g[i];
        return;
    }
    for (size_t i = 0; i < n; i++)
        sum[i] += scale * g[i];
}

static void accumulate_chunk(void *arg, size_t k, size_t first, size_t n)
{
    const struct grad_accumulate_args *a = arg;
    accumulate_part(tensor_f32(a->grads, k) + first, tensor_f32(a->sum, k) + first, n,
                    *tensor_f32(a->scale, k), *tensor_i32(a->first, k) != 0);
}

as_status cpu_grad_accumulate(struct backend *be, const struct grad_accumulate_args *a,
                              struct as_err *err)
{
    (void)err;
    struct grad_accumulate_args args = *a;
    cpu_split_elements(be, a->members, a->n, accumulate_chunk, &args);
    return AS_OK;
}
