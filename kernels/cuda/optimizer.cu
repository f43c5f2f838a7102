/* One launch over [K, N], then one that counts the steps: all blocks must have read the counter
 * before it moves. */
#include "kernels/cuda/cuda.cuh"

struct dev_arena {
    size_t members, n;
    struct dev_f32 params, grads, lr, weight_decay;
    struct dev_i32 active, step;

    __device__ bool skips(size_t k) const
    {
        return active.p != nullptr && *active.at(k) == 0;
    }
};

static struct dev_arena arena_of(const struct opt_arena *a)
{
    return {a->members,        a->n,           f32_of(a->params),
            f32_of(a->grads),  f32_of(a->lr),  f32_of(a->weight_decay),
            i32_of(a->active), i32_of(a->step)};
}

__device__ static inline float hyper(struct dev_f32 t, size_t k)
{
    return t.p != nullptr ? *t.at(k) : 0.0f;
}

__global__ static void count_step(struct dev_arena a)
{
    FOR_ELEMENTS(k, a.members)
    {
        if (!a.skips(k))
            ++*a.step.at(k);
    }
}

static as_status advance(struct backend *be, const struct dev_arena *a, const char *what,
                         struct as_err *err)
{
    count_step<<<grid_over(a->members, 1), THREADS, 0, cuda_of(be)->stream>>>(*a);
    return cuda_launched(what, err);
}

__global__ static void sgd(struct dev_arena a, struct dev_f32 velocity, struct dev_f32 momentum,
                           struct dev_i32 nesterov)
{
    FOR_MEMBERS(k, a.members)
    {
        if (a.skips(k))
            continue;
        float *p = a.params.at(k), *v = velocity.at(k);
        const float *g = a.grads.at(k);
        float lr = *a.lr.at(k), decay = hyper(a.weight_decay, k), mu = hyper(momentum, k);
        bool ahead = nesterov.p != nullptr && *nesterov.at(k) != 0;
        FOR_ELEMENTS(i, a.n)
        {
            float grad = g[i] + decay * p[i];
            float fast = mu * v[i] + grad;
            v[i] = fast;
            p[i] -= lr * (ahead ? grad + mu * fast : fast);
        }
    }
}

as_status cuda_sgd(struct backend *be, const struct sgd_args *a, struct as_err *err)
{
    struct dev_arena arena = arena_of(&a->arena);
    if (arena.members == 0)
        return AS_OK;
    cuda_use(be);
    sgd<<<grid_over(arena.n, arena.members), THREADS, 0, cuda_of(be)->stream>>>(
        arena, f32_of(a->velocity), f32_of(a->momentum), i32_of(a->nesterov));
    return advance(be, &arena, "sgd", err);
}

struct adamw {
    struct dev_arena arena;
    struct dev_f32 m, v, beta1, beta2, eps;
};

/* What a block needs of its member; powers and roots in double, by one thread. */
struct adamw_hyper {
    float keep, beta1, beta2, rest1, rest2, rate, root, eps;
};

__device__ static struct adamw_hyper adamw_prepare(const struct adamw &a, size_t k)
{
    double lr = (double)*a.arena.lr.at(k), t = (double)*a.arena.step.at(k) + 1;
    double beta1 = (double)*a.beta1.at(k), beta2 = (double)*a.beta2.at(k);
    return {(float)(1 - lr * (double)hyper(a.arena.weight_decay, k)),
            (float)beta1,
            (float)beta2,
            (float)(1 - beta1),
            (float)(1 - beta2),
            (float)(lr / (1 - pow(beta1, t))),
            (float)(1 / sqrt(1 - pow(beta2, t))),
            *a.eps.at(k)};
}

__global__ static void adamw(struct adamw a)
{
    __shared__ struct adamw_hyper h;
    FOR_MEMBERS(k, a.arena.members)
    {
        if (a.arena.skips(k)) /* the whole block alike */
            continue;
        __syncthreads(); /* the member before may still be read */
        if (threadIdx.x == 0)
            h = adamw_prepare(a, k);
        __syncthreads();
        float *p = a.arena.params.at(k), *m = a.m.at(k), *v = a.v.at(k);
        const float *g = a.arena.grads.at(k);
        FOR_ELEMENTS(i, a.arena.n)
        {
            float m1 = h.beta1 * m[i] + h.rest1 * g[i];
            float v1 = h.beta2 * v[i] + h.rest2 * g[i] * g[i];
            m[i] = m1;
            v[i] = v1;
            p[i] = p[i] * h.keep - h.rate * m1 / (sqrtf(v1) * h.root + h.eps);
        }
    }
}

as_status cuda_adamw(struct backend *be, const struct adamw_args *a, struct as_err *err)
{
    struct adamw args = {arena_of(&a->arena), f32_of(a->m),     f32_of(a->v),
                         f32_of(a->beta1),    f32_of(a->beta2), f32_of(a->eps)};
    if (args.arena.members == 0)
        return AS_OK;
    cuda_use(be);
    adamw<<<grid_over(args.arena.n, args.arena.members), THREADS, 0, cuda_of(be)->stream>>>(args);
    return advance(be, &args.arena, "adamw", err);
}
