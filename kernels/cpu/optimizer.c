/* One loop for each kind of optimizer; the kind is chosen outside the loops.
 *
 * Each member is stepped by itself and cut into chunks that threads share. LAMB is the exception:
 * it needs the norms of whole tensors, so its member is one piece. Constants of a step are computed
 * once in double. Subnormal moments become 0, because they are slow and change no weight. Adam's
 * loop is in adam.c. */
#include "kernels/cpu/cpu.h"

#include <float.h>
#include <math.h>

#include "kernels/cpu/adam.h"
#include "base/cpu_clones.h"

/* The constants of a member, computed once in double: in float, 1 - 0.999^1 has only three
 * digits. */
struct hyper {
    optim_kind kind;
    float lr, momentum;
    float couple; /* decay that is added to the gradient */
    float keep;   /* 1 - lr * decay where the decay is decoupled */
    float decay;
    float beta1, beta2;
    float rest1, rest2; /* 1 - beta */
    float rate;         /* lr / (1 - beta1^t) */
    float correct;      /* 1 / (1 - beta1^t) */
    float root;         /* 1 / sqrt(1 - beta2^t) */
    float eps;
    bool nesterov;
};

/* The arrays of one member. */
struct arena {
    float *p, *m1, *m2;
    const float *g;
    size_t n;
};

static double value_or(struct tensor t, size_t k, double otherwise)
{
    return t.buf != NULL ? (double)*tensor_f32(t, k) : otherwise;
}

static struct hyper hyper_of(const struct opt_args *a, size_t k)
{
    optim_kind kind = (optim_kind)*tensor_i32(a->kind, k);
    double lr = value_or(a->lr, k, 0), decay = value_or(a->weight_decay, k, 0);
    double beta1 = value_or(a->beta1, k, 0.9), beta2 = value_or(a->beta2, k, 0.999);
    double t = (double)*tensor_i32(a->step, k) + 1, correct1 = 1 - pow(beta1, t);
    bool decoupled = kind == OPT_ADAMW || kind == OPT_LION;
    return (struct hyper){
        .kind = kind,
        .lr = (float)lr,
        .momentum = (float)value_or(a->momentum, k, 0),
        .couple = decoupled ? 0.0f : (float)decay,
        .keep = decoupled ? (float)(1 - lr * decay) : 1.0f,
        .decay = (float)decay,
        .beta1 = (float)beta1,
        .beta2 = (float)beta2,
        .rest1 = (float)(1 - beta1),
        .rest2 = (float)(1 - beta2),
        .rate = (float)(lr / correct1),
        .correct = (float)(1 / correct1),
        .root = (float)(1 / sqrt(1 - pow(beta2, t))),
        .eps = (float)value_or(a->eps, k, 1e-8),
        .nesterov = a->nesterov.buf != NULL && *tensor_i32(a->nesterov, k) != 0,
    };
}

/* A moment that only decays (of a unit that no longer fires) becomes subnormal and stays so,
 * because 0.9 times a few of the smallest numbers rounds back. Each costs the vector unit some 150
 * cycles a step. A moment below these bounds changes no weight. */
#define LEAST_FIRST 1e-30f
#define LEAST_SECOND FLT_MIN

CPU_INLINE float settle(float moment, float least)
{
    return fabsf(moment) < least ? 0.0f : moment;
}

CPU_CLONES static void step_sgd(const struct hyper *h, float *restrict p, const float *restrict g,
                                float *restrict v, size_t n)
{
    float lr = h->lr, decay = h->couple, momentum = h->momentum;
    if (!(momentum > 0.0f)) { /* three streams of memory instead of five */
        for (size_t i = 0; i < n; i++)
            p[i] -= lr * (g[i] + decay * p[i]);
        return;
    }
    /* The step is grad * a + velocity * b: (0, 1) plain, (1, momentum) Nesterov's. */
    float a = h->nesterov ? 1.0f : 0.0f, b = h->nesterov ? momentum : 1.0f;
    for (size_t i = 0; i < n; i++) {
        float grad = g[i] + decay * p[i];
        float velocity = settle(momentum * v[i] + grad, LEAST_FIRST);
        v[i] = velocity;
        p[i] -= lr * (a * grad + b * velocity);
    }
}

static void step_adam(const struct hyper *h, const struct arena *m)
{
    const struct adam a = {.couple = h->couple,
                           .keep = h->keep,
                           .beta1 = h->beta1,
                           .rest1 = h->rest1,
                           .least1 = LEAST_FIRST,
                           .beta2 = h->beta2,
                           .rest2 = h->rest2,
                           .least2 = LEAST_SECOND,
                           .rate = h->rate,
                           .root = h->root,
                           .eps = h->eps};
    cpu_adam(&a, m->p, m->g, m->m1, m->m2, m->n);
}

CPU_CLONES static void step_rmsprop(const struct hyper *h, float *restrict p,
                                    const float *restrict g, float *restrict m1, float *restrict m2,
                                    size_t n)
{
    struct hyper c = *h;
    if (!(c.momentum > 0.0f)) {
        for (size_t i = 0; i < n; i++) {
            float grad = g[i] + c.couple * p[i];
            m2[i] = settle(c.beta2 * m2[i] + c.rest2 * grad * grad, LEAST_SECOND);
            p[i] -= c.lr * (grad / (sqrtf(m2[i]) + c.eps));
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        float grad = g[i] + c.couple * p[i];
        m2[i] = settle(c.beta2 * m2[i] + c.rest2 * grad * grad, LEAST_SECOND);
        m1[i] = settle(c.momentum * m1[i] + grad / (sqrtf(m2[i]) + c.eps), LEAST_FIRST);
        p[i] -= c.lr * m1[i];
    }
}

CPU_CLONES static void step_adagrad(const struct hyper *h, float *restrict p,
                                    const float *restrict g, float *restrict m2, size_t n)
{
    float lr = h->lr, couple = h->couple, eps = h->eps;
    for (size_t i = 0; i < n; i++) {
        float grad = g[i] + couple * p[i];
        m2[i] += grad * grad;
        p[i] -= lr * (grad / (sqrtf(m2[i]) + eps));
    }
}

CPU_CLONES static void step_lion(const struct hyper *h, float *restrict p, const float *restrict g,
                                 float *restrict m1, size_t n)
{
    struct hyper c = *h;
    for (size_t i = 0; i < n; i++) {
        float mix = c.beta1 * m1[i] + c.rest1 * g[i];
        float sign = mix > 0.0f ? 1.0f : mix < 0.0f ? -1.0f : mix; /* NaN stays */
        p[i] = p[i] * c.keep - c.lr * sign;
        m1[i] = settle(c.beta2 * m1[i] + c.rest2 * g[i], LEAST_FIRST);
    }
}

#define LANES 16 /* sums in doubles that are added in a fixed order */

CPU_INLINE float lamb_direction(const struct hyper *h, float p, float m1, float m2)
{
    return h->correct * m1 / (sqrtf(m2) * h->root + h->eps) + h->decay * p;
}

CPU_INLINE void lamb_moments(const struct hyper *h, float g, float *m1, float *m2)
{
    *m1 = settle(h->beta1 * *m1 + h->rest1 * g, LEAST_FIRST);
    *m2 = settle(h->beta2 * *m2 + h->rest2 * g * g, LEAST_SECOND);
}

/* Moments, and the squares of |p| and |r|. */
CPU_CLONES static void lamb_norms(const struct hyper *h, const float *restrict p,
                                  const float *restrict g, float *restrict m1, float *restrict m2,
                                  size_t n, double ret[2])
{
    struct hyper c = *h;
    double p_lane[LANES] = {0}, r_lane[LANES] = {0};
    for (size_t i = 0; i < n; i += LANES) {
        size_t len = n - i < LANES ? n - i : LANES;
        for (size_t j = 0; j < len; j++) {
            lamb_moments(&c, g[i + j], &m1[i + j], &m2[i + j]);
            double r = (double)lamb_direction(&c, p[i + j], m1[i + j], m2[i + j]);
            p_lane[j] += (double)p[i + j] * (double)p[i + j];
            r_lane[j] += r * r;
        }
    }
    ret[0] = ret[1] = 0;
    for (size_t j = 0; j < LANES; j++) {
        ret[0] += p_lane[j];
        ret[1] += r_lane[j];
    }
}

CPU_CLONES static void lamb_apply(const struct hyper *h, float *restrict p,
                                  const float *restrict m1, const float *restrict m2, size_t n,
                                  float rate)
{
    struct hyper c = *h;
    for (size_t i = 0; i < n; i++)
        p[i] -= rate * lamb_direction(&c, p[i], m1[i], m2[i]);
}

static void step_lamb(const struct hyper *h, const struct opt_args *a, const struct arena *m,
                      float *norms)
{
    size_t n_segments = a->segments != NULL ? a->n_segments : 1;
    for (size_t s = 0; s < n_segments; s++) {
        size_t from = a->segments != NULL ? a->segments[s] : 0;
        size_t n = (s + 1 < n_segments ? a->segments[s + 1] : a->n) - from;
        double sq[2];
        lamb_norms(h, m->p + from, m->g + from, m->m1 + from, m->m2 + from, n, sq);
        double p = sqrt(sq[0]), r = sqrt(sq[1]);
        norms[2 * s] = (float)p;
        norms[2 * s + 1] = (float)r;
        double trust = p > 0 && r > 0 ? p / r : 1;
        lamb_apply(h, m->p + from, m->m1 + from, m->m2 + from, n, (float)((double)h->lr * trust));
    }
}

/* Whether member k is active and has the tensors that its kind needs. */
static bool takes_part(const struct opt_args *a, size_t k)
{
    if (a->active.buf != NULL && *tensor_i32(a->active, k) == 0)
        return false;
    int32_t kind = *tensor_i32(a->kind, k);
    if (kind == OPT_SGD || kind == OPT_LION)
        return true;
    bool known = kind >= 0 && kind < OPTIM_KINDS;
    return known && a->m2.buf != NULL && (kind != OPT_LAMB || a->work.buf != NULL);
}

/* For a tensor that is present. */
static float *member_f32(struct tensor t, size_t k)
{
    return (float *)t.buf->data + t.offset + k * t.stride;
}

/* LAMB needs whole tensors, so the first chunk does the whole member. */
static void step_chunk(void *arg, size_t k, size_t first, size_t n)
{
    const struct opt_args *a = arg;
    if (!takes_part(a, k))
        return;
    struct hyper h = hyper_of(a, k);
    struct arena m = {.p = member_f32(a->params, k) + first,
                      .m1 = member_f32(a->m1, k) + first,
                      .g = member_f32(a->grads, k) + first,
                      .n = n};
    if (h.kind != OPT_SGD && h.kind != OPT_LION)
        m.m2 = member_f32(a->m2, k) + first;
    switch (h.kind) {
    case OPT_SGD:
        step_sgd(&h, m.p, m.g, m.m1, m.n);
        break;
    case OPT_ADAM:
    case OPT_ADAMW:
        step_adam(&h, &m);
        break;
    case OPT_RMSPROP:
        step_rmsprop(&h, m.p, m.g, m.m1, m.m2, m.n);
        break;
    case OPT_LAMB:
        if (first == 0)
            step_lamb(&h, a, &m, tensor_f32(a->work, k));
        break;
    case OPT_LION:
        step_lion(&h, m.p, m.g, m.m1, m.n);
        break;
    case OPT_ADAGRAD:
        step_adagrad(&h, m.p, m.g, m.m2, m.n);
        break;
    }
}

as_status cpu_optimize(struct backend *be, const struct opt_args *a, struct as_err *err)
{
    (void)err;
    struct opt_args args = *a;
    cpu_split_elements(be, a->members, a->n, step_chunk, &args);
    for (size_t k = 0; k < a->members; k++) {
        if (a->n == 0)
            step_chunk(&args, k, 0, 0); /* writes the norms of an empty member */
        if (takes_part(a, k))
            ++*tensor_i32(a->step, k);
    }
    return AS_OK;
}
