/* Sums over a row in LANES doubles, added in a fixed order; sums over the rows in doubles, a block
 * of columns at a time, in the order of the rows. */
#include "kernels/cpu/cpu.h"

#include <math.h>

#include "kernels/cpu/clones.h"

#define LANES 16
#define COLUMNS 64

CPU_INLINE double add_lanes(const double lane[LANES])
{
    double sum = 0;
    for (size_t j = 0; j < LANES; j++)
        sum += lane[j];
    return sum;
}

CPU_INLINE double row_sum(const float *x, size_t n)
{
    double lane[LANES] = {0};
    for (size_t i = 0; i < n; i += LANES) {
        size_t len = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < len; j++)
            lane[j] += (double)x[i + j];
    }
    return add_lanes(lane);
}

CPU_INLINE double row_squares(const float *x, double mean, size_t n)
{
    double lane[LANES] = {0};
    for (size_t i = 0; i < n; i += LANES) {
        size_t len = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < len; j++)
            lane[j] += ((double)x[i + j] - mean) * ((double)x[i + j] - mean);
    }
    return add_lanes(lane);
}

/* One member; each pointer is the member's own. */
struct norm {
    const float *x, *gamma, *beta;
    float *mean, *inv_std;
    size_t rows, width;
    float eps;
};

static struct norm norm_of(const struct layer_norm_args *a, size_t k)
{
    return (struct norm){tensor_f32(a->x, k),
                         tensor_f32(a->gamma, k),
                         tensor_f32(a->beta, k),
                         tensor_f32(a->mean, k),
                         tensor_f32(a->inv_std, k),
                         a->rows,
                         a->width,
                         a->eps};
}

CPU_CLONES static void forward_member(const struct norm *m, float *y)
{
    double n = m->width > 0 ? (double)m->width : 1;
    const float *gamma = m->gamma, *beta = m->beta;
    for (size_t r = 0; r < m->rows; r++) {
        const float *x = m->x + r * m->width;
        double mean = row_sum(x, m->width) / n;
        double inv_std = 1 / sqrt(row_squares(x, mean, m->width) / n + (double)m->eps);
        m->mean[r] = (float)mean;
        m->inv_std[r] = (float)inv_std;
        float *to = y + r * m->width, middle = (float)mean, scale = (float)inv_std;
        for (size_t d = 0; d < m->width; d++)
            to[d] = (x[d] - middle) * scale * gamma[d] + beta[d];
    }
}

as_status cpu_layer_norm_forward(struct backend *be, const struct layer_norm_args *a,
                                 struct tensor y, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        struct norm m = norm_of(a, k);
        forward_member(&m, tensor_f32(y, k));
    }
    return AS_OK;
}

CPU_CLONES static void backward_params(const struct norm *m, const float *dy, float *dgamma,
                                       float *dbeta)
{
    for (size_t first = 0; first < m->width; first += COLUMNS) {
        size_t len = m->width - first < COLUMNS ? m->width - first : COLUMNS;
        double by_gamma[COLUMNS] = {0}, by_beta[COLUMNS] = {0};
        for (size_t r = 0; r < m->rows; r++) {
            const float *x = m->x + r * m->width + first, *g = dy + r * m->width + first;
            float mean = m->mean[r], inv_std = m->inv_std[r];
            for (size_t d = 0; d < len; d++) {
                by_gamma[d] += (double)(g[d] * ((x[d] - mean) * inv_std));
                by_beta[d] += (double)g[d];
            }
        }
        for (size_t d = 0; d < len; d++) {
            dgamma[first + d] = (float)by_gamma[d];
            dbeta[first + d] = (float)by_beta[d];
        }
    }
}

/* With g = dy gamma: dx = inv_std * (g - mean(g) - x_hat mean(g x_hat)). dx may be dy. */
CPU_CLONES static void backward_rows(const struct norm *m, const float *dy, float *dx)
{
    const float *gamma = m->gamma;
    for (size_t r = 0; r < m->rows; r++) {
        const float *x = m->x + r * m->width, *g = dy + r * m->width;
        float mean = m->mean[r], inv_std = m->inv_std[r];
        double sum[LANES] = {0}, along[LANES] = {0};
        for (size_t i = 0; i < m->width; i += LANES) {
            size_t len = m->width - i < LANES ? m->width - i : LANES;
            for (size_t j = 0; j < len; j++) {
                float by_x_hat = g[i + j] * gamma[i + j];
                sum[j] += (double)by_x_hat;
                along[j] += (double)(by_x_hat * ((x[i + j] - mean) * inv_std));
            }
        }
        float middle = (float)(add_lanes(sum) / (double)m->width);
        float slope = (float)(add_lanes(along) / (double)m->width);
        float *to = dx + r * m->width;
        for (size_t d = 0; d < m->width; d++)
            to[d] = inv_std * (g[d] * gamma[d] - middle - (x[d] - mean) * inv_std * slope);
    }
}

as_status cpu_layer_norm_backward(struct backend *be, const struct layer_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        struct norm m = norm_of(a, k);
        backward_params(&m, tensor_f32(dy, k), tensor_f32(dgamma, k), tensor_f32(dbeta, k));
        backward_rows(&m, tensor_f32(dy, k), tensor_f32(dx, k));
    }
    return AS_OK;
}
