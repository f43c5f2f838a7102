/* The oracle: textbook formulas in double, two passes for the variance, one channel after another.
 * The running variance is the unbiased one (n - 1), as in PyTorch, the normalisation uses the
 * biased one. relu is the only activation that can follow; its gradient is read from the output. */
#include "kernels/reference/reference.h"

#include <math.h>

static double mean_of(const struct batch_norm_args *a, const float *x, size_t c)
{
    double sum = 0;
    for (size_t r = 0; r < a->rows; r++)
        sum += (double)x[r * a->channels + c];
    return a->rows == 0 ? 0 : sum / (double)a->rows;
}

/* Sum of the squared differences from the mean. */
static double spread_of(const struct batch_norm_args *a, const float *x, size_t c, double mean)
{
    double sum = 0;
    for (size_t r = 0; r < a->rows; r++) {
        double d = (double)x[r * a->channels + c] - mean;
        sum += d * d;
    }
    return sum;
}

static void normalise(const struct batch_norm_args *a, size_t k, size_t c, double mean,
                      double inv_std)
{
    const float *x = tensor_f32(a->x, k);
    double gamma = (double)tensor_f32(a->gamma, k)[c], beta = (double)tensor_f32(a->beta, k)[c];
    for (size_t r = 0; r < a->rows; r++)
        tensor_f32(a->y, k)[r * a->channels + c] = (float)ref_activate(
            a->act, ((double)x[r * a->channels + c] - mean) * inv_std * gamma + beta);
}

static void follow(float *running, float momentum, double value)
{
    *running = (float)((1 - (double)momentum) * (double)*running + (double)momentum * value);
}

as_status ref_batch_norm_train(struct backend *be, const struct batch_norm_args *a, float momentum,
                               struct tensor running_mean, struct tensor running_var,
                               struct as_err *err)
{
    (void)be;
    (void)err;
    double n = (double)a->rows;
    for (size_t k = 0; k < a->members; k++) {
        for (size_t c = 0; c < a->channels; c++) {
            double mean = mean_of(a, tensor_f32(a->x, k), c);
            double spread = spread_of(a, tensor_f32(a->x, k), c, mean);
            double var = a->rows == 0 ? 0 : spread / n;
            double inv_std = 1 / sqrt(var + (double)a->eps);
            tensor_f32(a->mean, k)[c] = (float)mean;
            tensor_f32(a->inv_std, k)[c] = (float)inv_std;
            normalise(a, k, c, mean, inv_std);
            if (running_mean.buf == NULL || a->rows == 0)
                continue;
            follow(tensor_f32(running_mean, k) + c, momentum, mean);
            follow(tensor_f32(running_var, k) + c, momentum, a->rows > 1 ? spread / (n - 1) : var);
        }
    }
    return AS_OK;
}

as_status ref_batch_norm_eval(struct backend *be, const struct batch_norm_args *a,
                              struct tensor running_mean, struct tensor running_var,
                              struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t c = 0; c < a->channels; c++)
            normalise(a, k, c, (double)tensor_f32(running_mean, k)[c],
                      1 / sqrt((double)tensor_f32(running_var, k)[c] + (double)a->eps));
    return AS_OK;
}

/* The gradient by the normalised and scaled value: relu passes dy on where its output is
 * positive. */
static double passed(const struct batch_norm_args *a, size_t k, const float *dy, size_t at)
{
    return a->act == ACT_RELU && tensor_f32(a->y, k)[at] <= 0 ? 0 : (double)dy[at];
}

static void backward_channel(const struct batch_norm_args *a, size_t k, size_t c, const float *dy,
                             float *dx, float *dgamma, float *dbeta)
{
    const float *x = tensor_f32(a->x, k);
    double mean = (double)tensor_f32(a->mean, k)[c];
    double inv_std = (double)tensor_f32(a->inv_std, k)[c], n = (double)a->rows;
    double sum = 0, product = 0;
    for (size_t at = c; at < a->rows * a->channels; at += a->channels) {
        double g = passed(a, k, dy, at);
        sum += g;
        product += g * ((double)x[at] - mean) * inv_std;
    }
    *dgamma = (float)product;
    *dbeta = (float)sum;
    double scale = (double)tensor_f32(a->gamma, k)[c] * inv_std;
    for (size_t at = c; at < a->rows * a->channels; at += a->channels) {
        double unit = ((double)x[at] - mean) * inv_std;
        dx[at] = (float)(scale * (passed(a, k, dy, at) - sum / n - unit * product / n));
    }
}

as_status ref_batch_norm_backward(struct backend *be, const struct batch_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t c = 0; c < a->channels; c++)
            backward_channel(a, k, c, tensor_f32(dy, k), tensor_f32(dx, k),
                             tensor_f32(dgamma, k) + c, tensor_f32(dbeta, k) + c);
    return AS_OK;
}
