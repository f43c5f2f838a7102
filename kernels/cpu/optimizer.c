#include "kernels/cpu/cpu.h"

#include <math.h>

#include "kernels/cpu/clones.h"

static bool is_active(const struct opt_arena *a, size_t k)
{
    return a->active.buf == NULL || *tensor_i32(a->active, k) != 0;
}

static float hyper(struct tensor t, size_t k)
{
    return t.buf != NULL ? *tensor_f32(t, k) : 0.0f;
}

struct sgd {
    float lr, decay, momentum;
    bool nesterov;
};

CPU_CLONES static void sgd_member(const struct sgd *h, float *restrict p, const float *restrict g,
                                  float *restrict v, size_t n)
{
    float lr = h->lr, decay = h->decay, momentum = h->momentum;
    /* The step is grad * a + velocity * b: (0, 1) plain, (1, momentum) Nesterov's. */
    float a = h->nesterov ? 1.0f : 0.0f, b = h->nesterov ? momentum : 1.0f;
    for (size_t i = 0; i < n; i++) {
        float grad = g[i] + decay * p[i];
        float velocity = momentum * v[i] + grad;
        v[i] = velocity;
        p[i] -= lr * (a * grad + b * velocity);
    }
}

as_status cpu_sgd(struct backend *be, const struct sgd_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    const struct opt_arena *arena = &a->arena;
    for (size_t k = 0; k < arena->members; k++) {
        if (!is_active(arena, k))
            continue;
        struct sgd h = {hyper(arena->lr, k), hyper(arena->weight_decay, k), hyper(a->momentum, k),
                        a->nesterov.buf != NULL && *tensor_i32(a->nesterov, k) != 0};
        sgd_member(&h, tensor_f32(arena->params, k), tensor_f32(arena->grads, k),
                   tensor_f32(a->velocity, k), arena->n);
        ++*tensor_i32(arena->step, k);
    }
    return AS_OK;
}

struct adamw {
    float keep; /* 1 - lr * weight decay */
    float beta1, beta2;
    float rest1, rest2; /* 1 - beta */
    float rate;         /* lr / (1 - beta1^t) */
    float root;         /* 1 / sqrt(1 - beta2^t) */
    float eps;
};

CPU_CLONES static void adamw_member(const struct adamw *h, float *restrict p,
                                    const float *restrict g, float *restrict m, float *restrict v,
                                    size_t n)
{
    struct adamw c = *h;
    for (size_t i = 0; i < n; i++) {
        m[i] = c.beta1 * m[i] + c.rest1 * g[i];
        v[i] = c.beta2 * v[i] + c.rest2 * g[i] * g[i];
        p[i] = p[i] * c.keep - c.rate * m[i] / (sqrtf(v[i]) * c.root + c.eps);
    }
}

/* Powers and roots in double: 1 - 0.999^1 in float has three digits. */
static struct adamw adamw_hyper(const struct adamw_args *a, size_t k, int32_t step)
{
    double lr = (double)hyper(a->arena.lr, k);
    double beta1 = (double)hyper(a->beta1, k), beta2 = (double)hyper(a->beta2, k);
    return (struct adamw){
        .keep = (float)(1 - lr * (double)hyper(a->arena.weight_decay, k)),
        .beta1 = (float)beta1,
        .beta2 = (float)beta2,
        .rest1 = (float)(1 - beta1),
        .rest2 = (float)(1 - beta2),
        .rate = (float)(lr / (1 - pow(beta1, step))),
        .root = (float)(1 / sqrt(1 - pow(beta2, step))),
        .eps = hyper(a->eps, k),
    };
}

as_status cpu_adamw(struct backend *be, const struct adamw_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    const struct opt_arena *arena = &a->arena;
    for (size_t k = 0; k < arena->members; k++) {
        if (!is_active(arena, k))
            continue;
        struct adamw h = adamw_hyper(a, k, ++*tensor_i32(arena->step, k));
        adamw_member(&h, tensor_f32(arena->params, k), tensor_f32(arena->grads, k),
                     tensor_f32(a->m, k), tensor_f32(a->v, k), arena->n);
    }
    return AS_OK;
}
