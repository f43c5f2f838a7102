#include "kernels/reference/reference.h"

#include <math.h>

static bool is_active(const struct opt_arena *a, size_t k)
{
    return a->active.buf == NULL || *tensor_i32(a->active, k) != 0;
}

/* A hyperparameter of member k; 0 when absent. */
static double hyper(struct tensor t, size_t k)
{
    return t.buf != NULL ? (double)*tensor_f32(t, k) : 0;
}

static void sgd_member(const struct sgd_args *a, size_t k)
{
    float *p = tensor_f32(a->arena.params, k), *v = tensor_f32(a->velocity, k);
    const float *g = tensor_f32(a->arena.grads, k);
    double lr = hyper(a->arena.lr, k), decay = hyper(a->arena.weight_decay, k);
    double momentum = hyper(a->momentum, k);
    bool nesterov = a->nesterov.buf != NULL && *tensor_i32(a->nesterov, k) != 0;
    for (size_t i = 0; i < a->arena.n; i++) {
        double grad = (double)g[i] + decay * (double)p[i];
        double velocity = momentum * (double)v[i] + grad;
        v[i] = (float)velocity;
        p[i] = (float)((double)p[i] - lr * (nesterov ? grad + momentum * velocity : velocity));
    }
    ++*tensor_i32(a->arena.step, k);
}

as_status ref_sgd(struct backend *be, const struct sgd_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->arena.members; k++)
        if (is_active(&a->arena, k))
            sgd_member(a, k);
    return AS_OK;
}

static void adamw_member(const struct adamw_args *a, size_t k)
{
    float *p = tensor_f32(a->arena.params, k), *m = tensor_f32(a->m, k), *v = tensor_f32(a->v, k);
    const float *g = tensor_f32(a->arena.grads, k);
    double lr = hyper(a->arena.lr, k), decay = hyper(a->arena.weight_decay, k);
    double beta1 = hyper(a->beta1, k), beta2 = hyper(a->beta2, k), eps = hyper(a->eps, k);
    double t = (double)++*tensor_i32(a->arena.step, k);
    double correct1 = 1 - pow(beta1, t), correct2 = 1 - pow(beta2, t);
    for (size_t i = 0; i < a->arena.n; i++) {
        double grad = (double)g[i];
        double m1 = beta1 * (double)m[i] + (1 - beta1) * grad;
        double v1 = beta2 * (double)v[i] + (1 - beta2) * grad * grad;
        m[i] = (float)m1;
        v[i] = (float)v1;
        p[i] = (float)((double)p[i] * (1 - lr * decay) -
                       lr / correct1 * m1 / (sqrt(v1 / correct2) + eps));
    }
}

as_status ref_adamw(struct backend *be, const struct adamw_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->arena.members; k++)
        if (is_active(&a->arena, k))
            adamw_member(a, k);
    return AS_OK;
}
