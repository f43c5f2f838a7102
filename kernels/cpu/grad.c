/* Sums in LANES doubles that are added in a fixed order, so that the instruction set does not
 * change the bits. */
#include "kernels/cpu/cpu.h"

#include <math.h>

#include "kernels/cpu/clones.h"
#include "kernels/cpu/vec_math.h"

#define LANES 16
#define EXPONENT 0x7f800000u /* all ones: infinity or NaN */

struct stats {
    double sum;
    bool finite;
};

CPU_CLONES static void stats_member(const float *g, size_t n, struct stats *ret)
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

as_status cpu_grad_stats(struct backend *be, const struct grad_stats_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        struct stats s;
        stats_member(tensor_f32(a->grads, k), a->n, &s);
        *tensor_f32(a->sq_norm, k) = (float)s.sum;
        *tensor_i32(a->finite, k) = s.finite;
        if (a->active.buf != NULL && !s.finite)
            *tensor_i32(a->active, k) = 0;
    }
    return AS_OK;
}

CPU_CLONES static void scale_member(float *g, size_t n, float by)
{
    for (size_t i = 0; i < n; i++)
        g[i] *= by;
}

as_status cpu_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        double norm = sqrt((double)*tensor_f32(a->sq_norm, k));
        double max_norm = (double)*tensor_f32(a->max_norm, k);
        if (isfinite(norm) && max_norm > 0 && max_norm < norm + 1e-6)
            scale_member(tensor_f32(a->grads, k), a->n, (float)(max_norm / (norm + 1e-6)));
    }
    return AS_OK;
}

CPU_CLONES static void accumulate_member(const float *restrict g, float *restrict sum, size_t n,
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

as_status cpu_grad_accumulate(struct backend *be, const struct grad_accumulate_args *a,
                              struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        accumulate_member(tensor_f32(a->grads, k), tensor_f32(a->sum, k), a->n,
                          *tensor_f32(a->scale, k), *tensor_i32(a->first, k) != 0);
    return AS_OK;
}
