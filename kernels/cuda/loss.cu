/* A warp per row leaves row_loss and row_class; a block per member then sums them in a fixed order.
 */
#include "kernels/cuda/cuda.cuh"

#include <cmath>

struct dev_loss {
    struct dev_f32 row_loss, loss;
    float weight;
    bool accumulate;
};

static struct dev_loss loss_of(const struct loss_out *o)
{
    return {f32_of(o->row_loss), f32_of(o->loss), o->weight, o->accumulate};
}

/* loss[k] (+)= weight * mean of the rows; with labels also correct[k] (+)= hits. */
__global__ static void reduce_rows(struct dev_loss o, struct dev_i32 row_class,
                                   struct dev_i32 labels, struct dev_i32 correct, size_t members,
                                   size_t batch)
{
    FOR_MEMBERS(k, members)
    {
        double sum = 0;
        int hits = 0;
        for (size_t r = threadIdx.x; r < batch; r += THREADS) {
            sum += (double)o.row_loss.at(k)[r];
            if (correct.p != nullptr)
                hits += row_class.at(k)[r] >= 0 && row_class.at(k)[r] == labels.at(k)[r];
        }
        sum = block_sum(sum);
        hits = block_sum(hits);
        if (threadIdx.x != 0)
            continue;
        double mean = batch > 0 ? sum / (double)batch : 0;
        float *loss = o.loss.at(k);
        *loss = (float)((o.accumulate ? (double)*loss : 0) + (double)o.weight * mean);
        if (correct.p != nullptr)
            *correct.at(k) = (o.accumulate ? *correct.at(k) : 0) + hits;
    }
}

struct scan {
    int32_t best; /* the first of the largest; -1 when one is NaN */
    float max;    /* NaN when one is NaN */
    double sum;
};

/* By the whole warp; the same result in every lane. */
__device__ static struct scan scan_row(const float *z, size_t n)
{
    struct scan s = {INT32_MAX, -INFINITY, 0};
    int odd = 0;
    for (size_t c = threadIdx.x % WARP; c < n; c += WARP) {
        s.sum += (double)z[c];
        odd |= z[c] != z[c];
        if (z[c] > s.max || s.best == INT32_MAX) {
            s.max = z[c];
            s.best = (int32_t)c;
        }
    }
    for (int step = WARP / 2; step > 0; step /= 2) {
        float max = __shfl_xor_sync(0xffffffffu, s.max, step);
        int32_t best = __shfl_xor_sync(0xffffffffu, s.best, step);
        if (max > s.max || (max == s.max && best < s.best)) {
            s.max = max;
            s.best = best;
        }
    }
    s.sum = warp_sum(s.sum);
    if (__any_sync(0xffffffffu, odd)) {
        s.best = -1;
        s.max = NAN;
    }
    return s;
}

__device__ static float sum_exp(const float *z, float max, size_t n)
{
    float sum = 0.0f;
    for (size_t c = threadIdx.x % WARP; c < n; c += WARP)
        sum += expf(z[c] - max);
    return warp_sum(sum);
}

struct ce {
    size_t members, batch, classes;
    float grad_scale; /* already divided by B */
    struct dev_f32 logits, dlogits, smoothing, row_loss;
    struct dev_i32 labels, row_class;
};

/* A lane reads and writes its own elements only, so dz may be z; the label's logit is read by all
 * before the warp's sums, which no lane passes alone. */
__device__ static void ce_row(const struct ce &a, size_t k, size_t r)
{
    const float *z = a.logits.at(k) + r * a.classes; /* [B, C] */
    int32_t label = a.labels.at(k)[r];
    bool sound = label >= 0 && (size_t)label < a.classes;
    float at_label = sound ? z[label] : NAN;
    float smoothing = a.smoothing.p != nullptr ? *a.smoothing.at(k) : 0.0f;
    struct scan s = scan_row(z, a.classes);
    float max = sound ? s.max : NAN, sum = sum_exp(z, max, a.classes);
    double even = (double)smoothing / (double)a.classes;
    if (threadIdx.x % WARP == 0) {
        double loss = log((double)sum) + (double)max - (1 - (double)smoothing) * (double)at_label;
        a.row_loss.at(k)[r] = (float)(even > 0 ? loss - even * s.sum : loss);
        a.row_class.at(k)[r] = s.best;
    }
    if (a.dlogits.p == nullptr)
        return;
    float *dz = a.dlogits.at(k) + r * a.classes, inverse = 1.0f / sum;
    for (size_t c = threadIdx.x % WARP; c < a.classes; c += WARP) {
        float target = (float)even + ((int32_t)c == label ? 1.0f - smoothing : 0.0f);
        dz[c] = a.grad_scale * (expf(z[c] - max) * inverse - target);
    }
}

__global__ static void ce_rows(struct ce a)
{
    FOR_MEMBERS(k, a.members)
    {
        FOR_ROWS(r, a.batch)
        ce_row(a, k, r);
    }
}

as_status cuda_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err)
{
    if (a->class_weights.buf != NULL || a->top5.buf != NULL)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "softmax cross-entropy: class_weights and top5 are not there on cuda");
    if (a->members == 0)
        return AS_OK;
    cuda_use(be);
    cudaStream_t stream = cuda_of(be)->stream;
    if (a->batch > 0) {
        struct ce ce = {a->members,           a->batch,
                        a->classes,           a->grad_scale / (float)a->batch,
                        f32_of(a->logits),    f32_of(a->dlogits),
                        f32_of(a->smoothing), f32_of(a->out.row_loss),
                        i32_of(a->labels),    i32_of(a->row_class)};
        LAUNCH(ce_rows, grid_over_rows(a->batch, a->members), THREADS, 0, stream, ce);
    }
    LAUNCH(reduce_rows, dim3(1, blocks_for(a->members, 1, GRID_YZ_MAX)), THREADS, 0, stream,
           loss_of(&a->out), i32_of(a->row_class), i32_of(a->labels), i32_of(a->correct),
           a->members, a->batch);
    return cuda_launched("softmax cross-entropy", err);
}

__global__ static void mse_rows(struct dev_f32 pred, struct dev_f32 target, struct dev_f32 dpred,
                                struct dev_f32 row_loss, size_t members, size_t batch,
                                size_t outputs, float scale)
{
    FOR_MEMBERS(k, members)
    {
        FOR_ROWS(r, batch)
        {
            double sum = 0;
            for (size_t o = threadIdx.x % WARP; o < outputs; o += WARP) {
                size_t at = r * outputs + o; /* [B, O] */
                float diff = pred.at(k)[at] - target.at(k)[at];
                sum += (double)diff * (double)diff;
                if (dpred.p != nullptr)
                    dpred.at(k)[at] = scale * diff;
            }
            sum = warp_sum(sum);
            if (threadIdx.x % WARP == 0)
                row_loss.at(k)[r] = outputs > 0 ? (float)(sum / (double)outputs) : 0.0f;
        }
    }
}

as_status cuda_mse(struct backend *be, const struct mse_args *a, struct as_err *err)
{
    if (a->members == 0)
        return AS_OK;
    cuda_use(be);
    cudaStream_t stream = cuda_of(be)->stream;
    double n = (double)a->batch * (double)a->outputs;
    if (a->batch > 0)
        LAUNCH(mse_rows, grid_over_rows(a->batch, a->members), THREADS, 0, stream, f32_of(a->pred),
               f32_of(a->target), f32_of(a->dpred), f32_of(a->out.row_loss), a->members, a->batch,
               a->outputs, (float)((double)a->grad_scale * 2 / n));
    struct dev_i32 none = {NULL, 0};
    LAUNCH(reduce_rows, dim3(1, blocks_for(a->members, 1, GRID_YZ_MAX)), THREADS, 0, stream,
           loss_of(&a->out), none, none, none, a->members, a->batch);
    return cuda_launched("mean squared error", err);
}

__global__ static void softmax_rows(struct dev_f32 logits, struct dev_f32 probs, size_t members,
                                    size_t batch, size_t classes)
{
    FOR_MEMBERS(k, members)
    {
        FOR_ROWS(r, batch)
        {
            const float *z = logits.at(k) + r * classes;
            float *p = probs.at(k) + r * classes;
            float max = scan_row(z, classes).max, inverse = 1.0f / sum_exp(z, max, classes);
            for (size_t c = threadIdx.x % WARP; c < classes; c += WARP)
                p[c] = expf(z[c] - max) * inverse;
        }
    }
}

as_status cuda_softmax(struct backend *be, const struct softmax_args *a, struct as_err *err)
{
    if (a->members == 0 || a->batch == 0 || a->classes == 0)
        return AS_OK;
    cuda_use(be);
    LAUNCH(softmax_rows, grid_over_rows(a->batch, a->members), THREADS, 0, cuda_of(be)->stream,
           f32_of(a->logits), f32_of(a->probs), a->members, a->batch, a->classes);
    return cuda_launched("softmax", err);
}
