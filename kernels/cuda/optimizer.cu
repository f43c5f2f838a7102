/* Optimizers: one launch over [K, N] for all kinds except LAMB; for LAMB, if there is a workspace,
 * two launches for each segment; then one launch that counts the steps, because all blocks must
 * have read the counter before it changes. A block works on one member at a time, so its threads
 * take the same branch. */
#include "kernels/cuda/cuda.cuh"

struct optim {
    size_t members, n;
    struct dev_i32 kind, nesterov, active, step;
    struct dev_f32 params, grads, m1, m2, lr, decay, momentum, beta1, beta2, eps, work;
};

/* The constants of a member. One thread computes powers and roots in double. */
struct hyper {
    int32_t kind;
    float lr, momentum;
    float couple; /* decay that is added to the gradient */
    float keep;   /* 1 - lr * decay where the decay is decoupled */
    float decay, beta1, beta2, rest1, rest2;
    float rate;    /* lr / (1 - beta1^t) */
    float correct; /* 1 / (1 - beta1^t) */
    float root;    /* 1 / sqrt(1 - beta2^t) */
    float eps;
    bool nesterov;
};

/* The kind of member k; -1: the member is unchanged. */
__device__ static int32_t kind_of(const struct optim &a, size_t k)
{
    if (a.active.p != nullptr && *a.active.at(k) == 0)
        return -1;
    int32_t kind = *a.kind.at(k);
    if (kind == OPT_SGD || kind == OPT_LION)
        return kind;
    if (kind < 0 || kind >= OPTIM_KINDS || a.m2.p == nullptr)
        return -1;
    return kind == OPT_LAMB && a.work.p == nullptr ? -1 : kind;
}

__device__ static double value(struct dev_f32 t, size_t k, double otherwise)
{
    return t.p != nullptr ? (double)*t.at(k) : otherwise;
}

__device__ static struct hyper hyper_of(const struct optim &a, size_t k)
{
    struct hyper h;
    h.kind = kind_of(a, k);
    double lr = (double)*a.lr.at(k), decay = value(a.decay, k, 0);
    double beta1 = value(a.beta1, k, 0.9), beta2 = value(a.beta2, k, 0.999);
    double t = (double)*a.step.at(k) + 1, correct1 = 1 - pow(beta1, t);
    bool decoupled = h.kind == OPT_ADAMW || h.kind == OPT_LION;
    h.lr = (float)lr;
    h.momentum = (float)value(a.momentum, k, 0);
    h.couple = decoupled ? 0.0f : (float)decay;
    h.keep = decoupled ? (float)(1 - lr * decay) : 1.0f;
    h.decay = (float)decay;
    h.beta1 = (float)beta1;
    h.beta2 = (float)beta2;
    h.rest1 = (float)(1 - beta1);
    h.rest2 = (float)(1 - beta2);
    h.rate = (float)(lr / correct1);
    h.correct = (float)(1 / correct1);
    h.root = (float)(1 / sqrt(1 - pow(beta2, t)));
    h.eps = (float)value(a.eps, k, 1e-8);
    h.nesterov = a.nesterov.p != nullptr && *a.nesterov.at(k) != 0;
    return h;
}

/* The constants of member k, for the whole block. */
__device__ static struct hyper shared_hyper(const struct optim &a, size_t k)
{
    __shared__ struct hyper h;
    __syncthreads(); /* threads may still read the previous member */
    if (threadIdx.x == 0)
        h = hyper_of(a, k);
    __syncthreads();
    return h;
}

__device__ static void step_sgd(const struct hyper &h, float g, float *p, float *m1)
{
    g += h.couple * *p;
    if (h.momentum > 0.0f) {
        *m1 = h.momentum * *m1 + g;
        g = h.nesterov ? g + h.momentum * *m1 : *m1;
    }
    *p -= h.lr * g;
}

__device__ static void moments(const struct hyper &h, float g, float *m1, float *m2)
{
    *m1 = h.beta1 * *m1 + h.rest1 * g;
    *m2 = h.beta2 * *m2 + h.rest2 * g * g;
}

__device__ static void step_adam(const struct hyper &h, float g, float *p, float *m1, float *m2)
{
    moments(h, g + h.couple * *p, m1, m2);
    *p = *p * h.keep - h.rate * *m1 / (sqrtf(*m2) * h.root + h.eps);
}

__device__ static void step_rmsprop(const struct hyper &h, float g, float *p, float *m1, float *m2)
{
    g += h.couple * *p;
    *m2 = h.beta2 * *m2 + h.rest2 * g * g;
    float u = g / (sqrtf(*m2) + h.eps);
    if (h.momentum > 0.0f)
        u = *m1 = h.momentum * *m1 + u;
    *p -= h.lr * u;
}

__device__ static void step_adagrad(const struct hyper &h, float g, float *p, float *m2)
{
    g += h.couple * *p;
    *m2 += g * g;
    *p -= h.lr * (g / (sqrtf(*m2) + h.eps));
}

__device__ static void step_lion(const struct hyper &h, float g, float *p, float *m1)
{
    float mix = h.beta1 * *m1 + h.rest1 * g;
    float sign = mix > 0.0f ? 1.0f : mix < 0.0f ? -1.0f : mix; /* NaN stays */
    *p = *p * h.keep - h.lr * sign;
    *m1 = h.beta2 * *m1 + h.rest2 * g;
}

__global__ static void optimize(struct optim a)
{
    FOR_MEMBERS(k, a.members)
    {
        struct hyper h = shared_hyper(a, k);
        if (h.kind < 0 || h.kind == OPT_LAMB) /* the same for the whole block */
            continue;
        float *p = a.params.at(k), *m1 = a.m1.at(k), *m2 = a.m2.at(k);
        const float *g = a.grads.at(k);
        FOR_ELEMENTS(i, a.n)
        {
            if (h.kind == OPT_SGD)
                step_sgd(h, g[i], &p[i], &m1[i]);
            else if (h.kind == OPT_LION)
                step_lion(h, g[i], &p[i], &m1[i]);
            else if (h.kind == OPT_RMSPROP)
                step_rmsprop(h, g[i], &p[i], &m1[i], &m2[i]);
            else if (h.kind == OPT_ADAGRAD)
                step_adagrad(h, g[i], &p[i], &m2[i]);
            else
                step_adam(h, g[i], &p[i], &m1[i], &m2[i]);
        }
    }
}

struct segment {
    size_t number, from, to;
};

__device__ static float lamb_direction(const struct hyper &h, float p, float m1, float m2)
{
    return h.correct * m1 / (sqrtf(m2) * h.root + h.eps) + h.decay * p;
}

/* A block per member: the moments, then the norms of the segment in a fixed order. */
__global__ static void lamb_norms(struct optim a, struct segment s)
{
    FOR_MEMBERS(k, a.members)
    {
        struct hyper h = shared_hyper(a, k);
        if (h.kind != OPT_LAMB)
            continue;
        const float *p = a.params.at(k), *g = a.grads.at(k);
        float *m1 = a.m1.at(k), *m2 = a.m2.at(k);
        double p_sum = 0, r_sum = 0;
        for (size_t i = s.from + threadIdx.x; i < s.to; i += THREADS) {
            moments(h, g[i], &m1[i], &m2[i]);
            double r = (double)lamb_direction(h, p[i], m1[i], m2[i]);
            p_sum += (double)p[i] * (double)p[i];
            r_sum += r * r;
        }
        p_sum = block_sum(p_sum);
        r_sum = block_sum(r_sum);
        if (threadIdx.x == 0) {
            a.work.at(k)[2 * s.number] = (float)sqrt(p_sum);
            a.work.at(k)[2 * s.number + 1] = (float)sqrt(r_sum);
        }
    }
}

__global__ static void lamb_apply(struct optim a, struct segment s)
{
    FOR_MEMBERS(k, a.members)
    {
        struct hyper h = shared_hyper(a, k);
        if (h.kind != OPT_LAMB)
            continue;
        float p_norm = a.work.at(k)[2 * s.number], r_norm = a.work.at(k)[2 * s.number + 1];
        float trust = p_norm > 0.0f && r_norm > 0.0f ? p_norm / r_norm : 1.0f;
        float *p = a.params.at(k);
        const float *m1 = a.m1.at(k) + s.from, *m2 = a.m2.at(k) + s.from;
        FOR_ELEMENTS(i, s.to - s.from)
        p[s.from + i] -= h.lr * trust * lamb_direction(h, p[s.from + i], m1[i], m2[i]);
    }
}

__global__ static void count_step(struct optim a)
{
    FOR_ELEMENTS(k, a.members)
    {
        if (kind_of(a, k) >= 0)
            ++*a.step.at(k);
    }
}

static struct optim optim_of(const struct opt_args *a)
{
    struct optim o = {};
    o.members = a->members;
    o.n = a->n;
    o.kind = i32_of(a->kind);
    o.nesterov = i32_of(a->nesterov);
    o.active = i32_of(a->active);
    o.step = i32_of(a->step);
    o.params = f32_of(a->params);
    o.grads = f32_of(a->grads);
    o.m1 = f32_of(a->m1);
    o.m2 = f32_of(a->m2);
    o.lr = f32_of(a->lr);
    o.decay = f32_of(a->weight_decay);
    o.momentum = f32_of(a->momentum);
    o.beta1 = f32_of(a->beta1);
    o.beta2 = f32_of(a->beta2);
    o.eps = f32_of(a->eps);
    o.work = f32_of(a->work);
    return o;
}

static void launch_lamb(const struct optim &o, const struct opt_args *a, cudaStream_t stream)
{
    size_t n_segments = a->segments != nullptr ? a->n_segments : 1;
    for (size_t i = 0; i < n_segments; i++) {
        struct segment s = {i, a->segments != nullptr ? a->segments[i] : 0,
                            i + 1 < n_segments ? a->segments[i + 1] : a->n};
        LAUNCH(lamb_norms, grid_over(1, o.members), THREADS, 0, stream, o, s);
        LAUNCH(lamb_apply, grid_over(s.to - s.from, o.members), THREADS, 0, stream, o, s);
    }
}

as_status cuda_optimize(struct backend *be, const struct opt_args *a, struct as_err *err)
{
    if (a->members == 0)
        return AS_OK;
    cuda_use(be);
    cudaStream_t stream = cuda_of(be)->stream;
    struct optim o = optim_of(a);
    LAUNCH(optimize, grid_over(o.n, o.members), THREADS, 0, stream, o);
    if (o.work.p != nullptr && o.m2.p != nullptr)
        launch_lamb(o, a, stream);
    LAUNCH(count_step, grid_over(o.members, 1), THREADS, 0, stream, o);
    return cuda_launched("optimizer", err);
}
