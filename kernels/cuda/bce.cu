/* Binary cross-entropy with its gradient, and the sigmoid. Hits and classes are counted in a launch
 * of their own before the gradient overwrites the logits. Weights are divided by their mean over
 * the batch; each block computes that mean again in the same order, so no block waits for another.
 * Sums over rows are the second, fixed-order sum of loss.cuh. */
#include "kernels/cuda/loss.cuh"

struct bce {
    size_t members, batch, outputs;
    double scale; /* grad_scale / (B O) */
    struct dev_f32 logits, target, dlogits, smoothing, weights, row_loss;
    struct dev_i32 row_class;
};

static struct bce bce_of(const struct bce_args *a)
{
    return {a->members,
            a->batch,
            a->outputs,
            (double)a->grad_scale / ((double)a->batch * (double)a->outputs),
            f32_of(a->logits),
            f32_of(a->target),
            f32_of(a->dlogits),
            f32_of(a->smoothing),
            f32_of(a->class_weights),
            f32_of(a->out.row_loss),
            i32_of(a->row_class)};
}

__device__ static double sigmoid_of(double z)
{
    double e = exp(-fabs(z)); /* never overflows */
    return z >= 0 ? 1 / (1 + e) : e / (1 + e);
}

__device__ static double weight_of(const float *weights, double t)
{
    return weights != nullptr ? (double)weights[0] * (1 - t) + (double)weights[1] * t : 1;
}

/* Writes the number of correct outputs to row_loss, and the class of the row. It must run before
 * dlogits overwrites the logits. */
__global__ static void bce_hits(struct bce a)
{
    FOR_MEMBERS(k, a.members)
    {
        FOR_ROWS(r, a.batch)
        {
            const float *z = a.logits.at(k) + r * a.outputs;
            const float *target = a.target.at(k) + r * a.outputs;
            int hits = 0;
            for (size_t o = threadIdx.x % WARP; o < a.outputs; o += WARP)
                hits += z[o] == z[o] && (z[o] > 0.0f) == (target[o] > 0.5f);
            hits = warp_sum(hits);
            if (threadIdx.x % WARP != 0)
                continue;
            bool none = a.outputs == 0 || z[0] != z[0];
            a.row_class.at(k)[r] = none ? -1 : z[0] > 0.0f;
            a.row_loss.at(k)[r] = (float)hits;
        }
    }
}

/* The factor of each weight: 1 / the mean weight of the batch; 0 when that mean is 0. The whole
 * block calls it. */
__device__ static double norm_of(const struct bce &a, size_t k)
{
    double sum = 0;
    for (size_t i = threadIdx.x; i < a.batch * a.outputs; i += THREADS)
        sum += weight_of(a.weights.at(k), (double)a.target.at(k)[i]);
    sum = block_sum(sum);
    return sum > 0 ? (double)a.batch * (double)a.outputs / sum : 0;
}

__device__ static void bce_row(const struct bce &a, size_t k, size_t r, double norm)
{
    double smoothing = a.smoothing.p != nullptr ? (double)*a.smoothing.at(k) : 0, sum = 0;
    for (size_t o = threadIdx.x % WARP; o < a.outputs; o += WARP) {
        size_t at = r * a.outputs + o; /* [B, O] */
        double z = (double)a.logits.at(k)[at], given = (double)a.target.at(k)[at];
        double t = (1 - smoothing) * given + smoothing / 2;
        double weight = norm * weight_of(a.weights.at(k), given);
        sum += weight * ((z < 0 ? 0 : z) - z * t + log1p(exp(-fabs(z))));
        if (a.dlogits.p != nullptr)
            a.dlogits.at(k)[at] = (float)(a.scale * weight * (sigmoid_of(z) - t));
    }
    sum = warp_sum(sum);
    if (threadIdx.x % WARP == 0)
        a.row_loss.at(k)[r] = a.outputs > 0 ? (float)(sum / (double)a.outputs) : 0.0f;
}

__global__ static void bce_rows(struct bce a)
{
    FOR_MEMBERS(k, a.members)
    {
        double norm = a.weights.p != nullptr ? norm_of(a, k) : 1;
        FOR_ROWS(r, a.batch)
        bce_row(a, k, r, norm);
    }
}

as_status cuda_bce(struct backend *be, const struct bce_args *a, struct as_err *err)
{
    if (a->members == 0)
        return AS_OK;
    cuda_use(be);
    struct bce b = bce_of(a);
    dim3 grid = grid_over_rows(a->batch, a->members);
    LAUNCH(bce_hits, grid, THREADS, 0, cuda_of(be)->stream, b);
    cuda_count_rows(be, &a->out, a->members, a->batch, a->correct);
    LAUNCH(bce_rows, grid, THREADS, 0, cuda_of(be)->stream, b);
    return cuda_reduce_rows(be, &a->out, a->members, a->batch, "binary cross-entropy", err);
}
