/* A warp computes sums along a row. The gradients of gamma and beta are sums down the columns. */
#include "kernels/cuda/sums.cuh"

struct norm {
    size_t members, rows, width;
    struct dev_f32 x, gamma, beta, mean, inv_std;
    double eps;
};

static struct norm norm_of(const struct layer_norm_args *a)
{
    return {a->members,      a->rows,         a->width,           f32_of(a->x),  f32_of(a->gamma),
            f32_of(a->beta), f32_of(a->mean), f32_of(a->inv_std), (double)a->eps};
}

__global__ static void normalise(struct norm a, struct dev_f32 y)
{
    size_t lane = threadIdx.x % WARP;
    double n = (double)a.width;
    FOR_MEMBERS(k, a.members)
    {
        FOR_ROWS(r, a.rows)
        {
            const float *x = a.x.at(k) + r * a.width; /* [R, D] */
            double sum = 0, spread = 0;
            for (size_t d = lane; d < a.width; d += WARP)
                sum += (double)x[d];
            double mean = a.width > 0 ? warp_sum(sum) / n : 0;
            for (size_t d = lane; d < a.width; d += WARP)
                spread += ((double)x[d] - mean) * ((double)x[d] - mean);
            double var = a.width > 0 ? warp_sum(spread) / n : 0, inv_std = 1 / sqrt(var + a.eps);
            if (lane == 0) {
                a.mean.at(k)[r] = (float)mean;
                a.inv_std.at(k)[r] = (float)inv_std;
            }
            for (size_t d = lane; d < a.width; d += WARP)
                y.at(k)[r * a.width + d] =
                    (float)(((double)x[d] - mean) * inv_std) * a.gamma.at(k)[d] + a.beta.at(k)[d];
        }
    }
}

as_status cuda_layer_norm_forward(struct backend *be, const struct layer_norm_args *a,
                                  struct tensor y, struct as_err *err)
{
    if (a->members == 0 || a->rows == 0)
        return AS_OK;
    cuda_use(be);
    LAUNCH(normalise, grid_over_rows(a->rows, a->members), THREADS, 0, cuda_of(be)->stream,
           norm_of(a), f32_of(y));
    return cuda_launched("layer norm", err);
}

/* dx = inv_std (g - mean of g - unit * mean of g unit), g = dy gamma. A lane reads and writes its
 * own elements only, so dx may be dy. */
__global__ static void backward_rows(struct norm a, struct dev_f32 dy, struct dev_f32 dx)
{
    size_t lane = threadIdx.x % WARP;
    FOR_MEMBERS(k, a.members)
    {
        const float *gamma = a.gamma.at(k);
        FOR_ROWS(r, a.rows)
        {
            const float *x = a.x.at(k) + r * a.width, *g = dy.at(k) + r * a.width;
            double mean = (double)a.mean.at(k)[r], inv_std = (double)a.inv_std.at(k)[r];
            double sum = 0, product = 0;
            for (size_t d = lane; d < a.width; d += WARP) {
                double v = (double)g[d] * (double)gamma[d];
                sum += v;
                product += v * ((double)x[d] - mean) * inv_std;
            }
            sum = warp_sum(sum) / (double)a.width;
            product = warp_sum(product) / (double)a.width;
            for (size_t d = lane; d < a.width; d += WARP) {
                double unit = ((double)x[d] - mean) * inv_std;
                dx.at(k)[r * a.width + d] =
                    (float)(inv_std * ((double)g[d] * (double)gamma[d] - sum - unit * product));
            }
        }
    }
}

struct scale_sum {
    struct norm n;
    struct dev_f32 dy, dgamma, dbeta;
    __device__ void add(size_t k, size_t r, size_t c, struct pair &sum) const
    {
        double g = (double)dy.at(k)[r * n.width + c];
        sum.a += g;
        sum.b += g * ((double)n.x.at(k)[r * n.width + c] - (double)n.mean.at(k)[r]) *
                 (double)n.inv_std.at(k)[r];
    }
    __device__ void put(size_t k, size_t c, struct pair sum) const
    {
        dbeta.at(k)[c] = (float)sum.a;
        dgamma.at(k)[c] = (float)sum.b;
    }
};

as_status cuda_layer_norm_backward(struct backend *be, const struct layer_norm_args *a,
                                   struct tensor dy, struct tensor dx, struct tensor dgamma,
                                   struct tensor dbeta, struct as_err *err)
{
    cuda_use(be);
    struct scale_sum sum = {norm_of(a), f32_of(dy), f32_of(dgamma), f32_of(dbeta)};
    as_status st = sum_columns(be, a->members, a->rows, a->width, sum, "layer norm backward", err);
    if (st < 0 || a->members == 0 || a->rows == 0 || a->width == 0)
        return st;
    LAUNCH(backward_rows, grid_over_rows(a->rows, a->members), THREADS, 0, cuda_of(be)->stream,
           sum.n, sum.dy, f32_of(dx));
    return cuda_launched("layer norm backward", err);
}
