/* Losses: a warp computes a row and writes row_loss and row_class; then a block for each member
 * sums them in a fixed order. There are no atomic additions, so the bits are the same each time.
 *
 * dlogits may overwrite the logits, so everything that needs them (top-5, hits) is launched
 * first. */
#include "kernels/cuda/loss.cuh"

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

/* A block per member. */
__global__ static void reduce_rows(struct dev_loss o, size_t members, size_t batch)
{
    FOR_MEMBERS(k, members)
    {
        double sum = 0;
        for (size_t r = threadIdx.x; r < batch; r += THREADS)
            sum += (double)o.row_loss.at(k)[r];
        sum = block_sum(sum);
        if (threadIdx.x != 0)
            continue;
        double mean = batch > 0 ? sum / (double)batch : 0;
        float *loss = o.loss.at(k);
        *loss = (float)((o.accumulate ? (double)*loss : 0) + (double)o.weight * mean);
    }
}

as_status cuda_reduce_rows(struct backend *be, const struct loss_out *o, size_t members,
                           size_t batch, const char *what, struct as_err *err)
{
    LAUNCH(reduce_rows, grid_over(1, members), THREADS, 0, cuda_of(be)->stream, loss_of(o), members,
           batch);
    return cuda_launched(what, err);
}

__global__ static void count_rows(struct dev_loss o, struct dev_i32 out, size_t members,
                                  size_t batch)
{
    FOR_MEMBERS(k, members)
    {
        int hits = 0;
        for (size_t r = threadIdx.x; r < batch; r += THREADS)
            hits += (int)o.row_loss.at(k)[r];
        hits = block_sum(hits);
        if (threadIdx.x == 0)
            *out.at(k) = (o.accumulate ? *out.at(k) : 0) + hits;
    }
}

void cuda_count_rows(struct backend *be, const struct loss_out *o, size_t members, size_t batch,
                     struct tensor out)
{
    LAUNCH(count_rows, grid_over(1, members), THREADS, 0, cuda_of(be)->stream, loss_of(o),
           i32_of(out), members, batch);
}

/* correct[k] (+)= rows where row_class is the label. */
__global__ static void count_correct(struct dev_i32 row_class, struct dev_i32 labels,
                                     struct dev_i32 correct, bool accumulate, size_t members,
                                     size_t batch)
{
    FOR_MEMBERS(k, members)
    {
        int hits = 0;
        for (size_t r = threadIdx.x; r < batch; r += THREADS)
            hits += row_class.at(k)[r] >= 0 && row_class.at(k)[r] == labels.at(k)[r];
        hits = block_sum(hits);
        if (threadIdx.x == 0)
            *correct.at(k) = (accumulate ? *correct.at(k) : 0) + hits;
    }
}

struct scan {
    int32_t best; /* the first of the largest; -1 when one is NaN */
    float max;    /* NaN when one is NaN */
    double sum;
};

/* The whole warp calls it; every lane gets the same values. */
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
    struct dev_f32 logits, dlogits, smoothing, weights, row_loss;
    struct dev_i32 labels, row_class;
};

static struct ce ce_of(const struct softmax_ce_args *a)
{
    return {a->members,
            a->batch,
            a->classes,
            a->grad_scale / (float)a->batch,
            f32_of(a->logits),
            f32_of(a->dlogits),
            f32_of(a->smoothing),
            f32_of(a->class_weights),
            f32_of(a->out.row_loss),
            i32_of(a->labels),
            i32_of(a->row_class)};
}

/* A lane reads and writes its own elements only, so dz may be z. All lanes read the label's logit
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

/* B / sum of w[label]; 0 when that sum is 0. The whole block calls it. */
__device__ static double norm_of(const struct ce &a, size_t k)
{
    double sum = 0;
    for (size_t r = threadIdx.x; r < a.batch; r += THREADS) {
        int32_t label = a.labels.at(k)[r];
        if (label >= 0 && (size_t)label < a.classes)
            sum += (double)a.weights.at(k)[label];
    }
    sum = block_sum(sum);
    return sum > 0 ? (double)a.batch / sum : 0;
}

/* A row with class weights: sum over c of share_c (lse - z_c), share_c = norm w_c target_c. */
__device__ static void weighted_row(const struct ce &a, size_t k, size_t r, double norm)
{
    const float *z = a.logits.at(k) + r * a.classes, *w = a.weights.at(k);
    int32_t label = a.labels.at(k)[r];
    double smoothing = a.smoothing.p != nullptr ? (double)*a.smoothing.at(k) : 0;
    struct scan s = scan_row(z, a.classes);
    bool sound = s.best >= 0 && label >= 0 && (size_t)label < a.classes;
    float max = sound ? s.max : NAN, sum = sum_exp(z, max, a.classes);
    double lse = (double)max + log((double)sum), loss = 0, whole = 0;
    for (size_t c = threadIdx.x % WARP; c < a.classes; c += WARP) {
        double hit = (int32_t)c == label ? 1 - smoothing : 0;
        double share = norm * (double)w[c] * (smoothing / (double)a.classes + hit);
        whole += share;
        loss += share > 0 ? share * (lse - (double)z[c]) : 0; /* leaves 0 * infinity out */
    }
    loss = warp_sum(loss);
    whole = warp_sum(whole);
    if (threadIdx.x % WARP == 0) {
        a.row_loss.at(k)[r] = (float)(loss + 0 * lse * norm); /* NaN where one is not finite */
        a.row_class.at(k)[r] = s.best;
    }
    if (a.dlogits.p == nullptr)
        return;
    float *dz = a.dlogits.at(k) + r * a.classes;
    double inverse = whole / (double)sum;
    for (size_t c = threadIdx.x % WARP; c < a.classes; c += WARP) {
        double hit = (int32_t)c == label ? 1 - smoothing : 0;
        double share = norm * (double)w[c] * (smoothing / (double)a.classes + hit);
        dz[c] = a.grad_scale * (float)((double)expf(z[c] - max) * inverse - share);
    }
}

__global__ static void ce_rows(struct ce a)
{
    FOR_MEMBERS(k, a.members)
    {
        double norm = a.weights.p != nullptr ? norm_of(a, k) : 1;
        FOR_ROWS(r, a.batch)
        {
            if (a.weights.p != nullptr)
                weighted_row(a, k, r, norm);
            else
                ce_row(a, k, r);
        }
    }
}

/* row_loss becomes 1 where the label is among the five largest, else 0. */
__global__ static void top5_rows(struct ce a)
{
    FOR_MEMBERS(k, a.members)
    {
        FOR_ROWS(r, a.batch)
        {
            const float *z = a.logits.at(k) + r * a.classes;
            int32_t label = a.labels.at(k)[r];
            bool sound = label >= 0 && (size_t)label < a.classes;
            float own = sound ? z[label] : NAN;
            int larger = 0, odd = 0;
            for (size_t c = threadIdx.x % WARP; c < a.classes; c += WARP) {
                larger += z[c] > own || (z[c] == own && (int32_t)c < label);
                odd |= z[c] != z[c];
            }
            larger = warp_sum(larger);
            odd = warp_sum(odd);
            if (threadIdx.x % WARP == 0)
                a.row_loss.at(k)[r] = sound && odd == 0 && larger < 5 ? 1.0f : 0.0f;
        }
    }
}

as_status cuda_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err)
{
    if (a->members == 0)
        return AS_OK;
    cuda_use(be);
    cudaStream_t stream = cuda_of(be)->stream;
    struct ce ce = ce_of(a);
    dim3 grid = grid_over_rows(a->batch, a->members);
    if (a->top5.buf != NULL) { /* first: dlogits may take the place of the logits */
        LAUNCH(top5_rows, grid, THREADS, 0, stream, ce);
        cuda_count_rows(be, &a->out, a->members, a->batch, a->top5);
    }
    LAUNCH(ce_rows, grid, THREADS, 0, stream, ce);
    LAUNCH(count_correct, grid_over(1, a->members), THREADS, 0, stream, ce.row_class, ce.labels,
           i32_of(a->correct), a->out.accumulate, a->members, a->batch);
    return cuda_reduce_rows(be, &a->out, a->members, a->batch, "softmax cross-entropy", err);
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
    return cuda_reduce_rows(be, &a->out, a->members, a->batch, "mean squared error", err);
}
