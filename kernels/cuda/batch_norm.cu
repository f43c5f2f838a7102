/* Batch normalisation: sums down the columns of [R, C] (sums.cuh), then a pass over the elements.
 * The sums are in double, so a channel's variance needs one pass over x. */
#include "kernels/cuda/sums.cuh"

struct norm {
    size_t members, rows, channels;
    struct dev_f32 x, y, gamma, beta, mean, inv_std;
    double eps;
    bool relu;
};

static struct norm norm_of(const struct batch_norm_args *a)
{
    return {a->members,         a->rows,          a->channels,       f32_of(a->x),
            f32_of(a->y),       f32_of(a->gamma), f32_of(a->beta),   f32_of(a->mean),
            f32_of(a->inv_std), (double)a->eps,   a->act == ACT_RELU};
}

/* Sums of the differences from the channel's first value, and of their squares. They are in double,
 * and that value is so near the mean that the subtraction at the end loses no digits that
 * matter. */
struct moment_sum {
    struct norm n;
    struct dev_f32 running_mean, running_var;
    double momentum;
    __device__ double origin(size_t k, size_t c) const
    {
        return n.rows > 0 ? (double)n.x.at(k)[c] : 0;
    }
    __device__ void add(size_t k, size_t r, size_t c, struct pair &sum) const
    {
        double d = (double)n.x.at(k)[r * n.channels + c] - origin(k, c);
        sum.a += d;
        sum.b += d * d;
    }
    __device__ void follow(float *running, double value) const
    {
        *running = (float)((1 - momentum) * (double)*running + momentum * value);
    }
    __device__ void put(size_t k, size_t c, struct pair sum) const
    {
        double rows = n.rows > 0 ? (double)n.rows : 1, shift = sum.a / rows;
        double spread = sum.b - shift * sum.a;
        spread = spread < 0 ? 0 : spread; /* rounding can give < 0; NaN stays */
        n.mean.at(k)[c] = (float)(origin(k, c) + shift);
        n.inv_std.at(k)[c] = (float)(1 / sqrt(spread / rows + n.eps));
        if (running_mean.p == nullptr || n.rows == 0)
            return;
        follow(running_mean.at(k) + c, origin(k, c) + shift);
        follow(running_var.at(k) + c, n.rows > 1 ? spread / (rows - 1) : spread);
    }
};

/* Normalise with the given mean, and with inv_std, or with 1 / sqrt(var + eps) if `var` is
 * present. */
__global__ static void normalise(struct norm a, struct dev_f32 mean, struct dev_f32 inv_std,
                                 struct dev_f32 var)
{
    FOR_MEMBERS(k, a.members)
    {
        FOR_ELEMENTS(i, a.rows * a.channels)
        {
            size_t c = i % a.channels; /* [R, C] */
            double by = var.p != nullptr ? 1 / sqrt((double)var.at(k)[c] + a.eps)
                                         : (double)inv_std.at(k)[c];
            double unit = ((double)a.x.at(k)[i] - (double)mean.at(k)[c]) * by;
            float v = (float)(unit * (double)a.gamma.at(k)[c] + (double)a.beta.at(k)[c]);
            a.y.at(k)[i] = a.relu && v < 0.0f ? 0.0f : v;
        }
    }
}

static as_status run_normalise(struct backend *be, const struct norm &n, struct dev_f32 mean,
                               struct dev_f32 inv_std, struct dev_f32 var, struct as_err *err)
{
    if (n.members > 0 && n.rows > 0 && n.channels > 0)
        LAUNCH(normalise, grid_over(n.rows * n.channels, n.members), THREADS, 0,
               cuda_of(be)->stream, n, mean, inv_std, var);
    return cuda_launched("batch norm", err);
}

as_status cuda_batch_norm_train(struct backend *be, const struct batch_norm_args *a, float momentum,
                                struct tensor running_mean, struct tensor running_var,
                                struct as_err *err)
{
    cuda_use(be);
    struct moment_sum sum = {norm_of(a), f32_of(running_mean), f32_of(running_var),
                             (double)momentum};
    as_status st = sum_columns(be, a->members, a->rows, a->channels, sum, "batch norm", err);
    struct dev_f32 none = {NULL, 0};
    return st < 0 ? st : run_normalise(be, sum.n, sum.n.mean, sum.n.inv_std, none, err);
}

as_status cuda_batch_norm_eval(struct backend *be, const struct batch_norm_args *a,
                               struct tensor running_mean, struct tensor running_var,
                               struct as_err *err)
{
    cuda_use(be);
    struct dev_f32 none = {NULL, 0};
    return run_normalise(be, norm_of(a), f32_of(running_mean), none, f32_of(running_var), err);
}

/* The gradient by the normalised and scaled value: relu passes dy on where its output is
 * positive. */
__device__ static double passed(const struct norm &n, const struct dev_f32 &dy, size_t k, size_t i)
{
    return n.relu && n.y.at(k)[i] <= 0.0f ? 0 : (double)dy.at(k)[i];
}

__device__ static double unit_of(const struct norm &n, size_t k, size_t i, size_t c)
{
    return ((double)n.x.at(k)[i] - (double)n.mean.at(k)[c]) * (double)n.inv_std.at(k)[c];
}

struct scale_sum {
    struct norm n;
    struct dev_f32 dy, dgamma, dbeta;
    __device__ void add(size_t k, size_t r, size_t c, struct pair &sum) const
    {
        size_t i = r * n.channels + c;
        double g = passed(n, dy, k, i);
        sum.a += g;
        sum.b += g * unit_of(n, k, i, c);
    }
    __device__ void put(size_t k, size_t c, struct pair sum) const
    {
        dbeta.at(k)[c] = (float)sum.a;
        dgamma.at(k)[c] = (float)sum.b;
    }
};

/* Reads the stored sums. */
__global__ static void backward(struct scale_sum s, struct dev_f32 dx)
{
    const struct norm &n = s.n;
    double rows = (double)n.rows;
    FOR_MEMBERS(k, n.members)
    {
        FOR_ELEMENTS(i, n.rows * n.channels)
        {
            size_t c = i % n.channels;
            double scale = (double)n.gamma.at(k)[c] * (double)n.inv_std.at(k)[c];
            double mean = (double)s.dbeta.at(k)[c] / rows;
            double along = unit_of(n, k, i, c) * (double)s.dgamma.at(k)[c] / rows;
            dx.at(k)[i] = (float)(scale * (passed(n, s.dy, k, i) - mean - along));
        }
    }
}

as_status cuda_batch_norm_backward(struct backend *be, const struct batch_norm_args *a,
                                   struct tensor dy, struct tensor dx, struct tensor dgamma,
                                   struct tensor dbeta, struct as_err *err)
{
    cuda_use(be);
    struct scale_sum sum = {norm_of(a), f32_of(dy), f32_of(dgamma), f32_of(dbeta)};
    as_status st =
        sum_columns(be, a->members, a->rows, a->channels, sum, "batch norm backward", err);
    if (st < 0 || a->members == 0 || a->rows == 0 || a->channels == 0)
        return st;
    LAUNCH(backward, grid_over(a->rows * a->channels, a->members), THREADS, 0, cuda_of(be)->stream,
           sum, f32_of(dx));
    return cuda_launched("batch norm backward", err);
}
