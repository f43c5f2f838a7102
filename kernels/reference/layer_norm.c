#include "kernels/reference/reference.h"

#include <math.h>

static void forward_row(const struct layer_norm_args *a, size_t k, size_t r, float *y)
{
    const float *x = tensor_f32(a->x, k) + r * a->width;
    const float *gamma = tensor_f32(a->gamma, k), *beta = tensor_f32(a->beta, k);
    double sum = 0, squares = 0, n = a->width > 0 ? (double)a->width : 1;
    for (size_t d = 0; d < a->width; d++)
        sum += (double)x[d];
    double mean = sum / n;
    for (size_t d = 0; d < a->width; d++)
        squares += ((double)x[d] - mean) * ((double)x[d] - mean);
    double inv_std = 1 / sqrt(squares / n + (double)a->eps);
    tensor_f32(a->mean, k)[r] = (float)mean;
    tensor_f32(a->inv_std, k)[r] = (float)inv_std;
    for (size_t d = 0; d < a->width; d++)
        y[d] = (float)(((double)x[d] - mean) * inv_std * (double)gamma[d] + (double)beta[d]);
}

as_status ref_layer_norm_forward(struct backend *be, const struct layer_norm_args *a,
                                 struct tensor y, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t r = 0; r < a->rows; r++)
            forward_row(a, k, r, tensor_f32(y, k) + r * a->width);
    return AS_OK;
}

/* The normalised input, from what the forward pass left. */
static double x_hat(const struct layer_norm_args *a, size_t k, size_t r, size_t d)
{
    return ((double)tensor_f32(a->x, k)[r * a->width + d] - (double)tensor_f32(a->mean, k)[r]) *
           (double)tensor_f32(a->inv_std, k)[r];
}

static void backward_params(const struct layer_norm_args *a, size_t k, const float *dy,
                            float *dgamma, float *dbeta)
{
    for (size_t d = 0; d < a->width; d++) {
        double by_gamma = 0, by_beta = 0;
        for (size_t r = 0; r < a->rows; r++) {
            by_gamma += (double)dy[r * a->width + d] * x_hat(a, k, r, d);
            by_beta += (double)dy[r * a->width + d];
        }
        dgamma[d] = (float)by_gamma;
        dbeta[d] = (float)by_beta;
    }
}

/* With g = dy gamma: dx = inv_std * (g - mean(g) - x_hat mean(g x_hat)). dx may be dy. */
static void backward_row(const struct layer_norm_args *a, size_t k, size_t r, const float *dy,
                         float *dx)
{
    const float *gamma = tensor_f32(a->gamma, k);
    double sum = 0, along = 0, inv_std = (double)tensor_f32(a->inv_std, k)[r];
    for (size_t d = 0; d < a->width; d++) {
        double g = (double)dy[d] * (double)gamma[d];
        sum += g;
        along += g * x_hat(a, k, r, d);
    }
    double n = (double)a->width;
    for (size_t d = 0; d < a->width; d++)
        dx[d] = (float)(inv_std * ((double)dy[d] * (double)gamma[d] - sum / n -
                                   x_hat(a, k, r, d) * along / n));
}

as_status ref_layer_norm_backward(struct backend *be, const struct layer_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        backward_params(a, k, tensor_f32(dy, k), tensor_f32(dgamma, k), tensor_f32(dbeta, k));
        for (size_t r = 0; r < a->rows; r++)
            backward_row(a, k, r, tensor_f32(dy, k) + r * a->width,
                         tensor_f32(dx, k) + r * a->width);
    }
    return AS_OK;
}
