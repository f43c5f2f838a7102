/* One step of each member's optimizer, straight from the formulas in ops_optim.h.
 *
 * A step works on one cell (a parameter and its moments) in double and rounds once when it stores,
 * so a fast back end can be compared with it. LAMB is the exception: its trust ratio needs the
 * norms of a whole segment. It therefore stores the moments first and computes the direction from
 * the stored values in both of its passes. */
#include "kernels/reference/reference.h"

#include <math.h>

struct hyper {
    double lr, decay, momentum, beta1, beta2, eps;
    bool nesterov;
    double correct1, correct2; /* 1 - beta^t */
};

static double value_or(struct tensor t, size_t k, double otherwise)
{
    return t.buf != NULL ? (double)*tensor_f32(t, k) : otherwise;
}

static struct hyper hyper_of(const struct opt_args *a, size_t k)
{
    struct hyper h = {
        .lr = value_or(a->lr, k, 0),
        .decay = value_or(a->weight_decay, k, 0),
        .momentum = value_or(a->momentum, k, 0),
        .beta1 = value_or(a->beta1, k, 0.9),
        .beta2 = value_or(a->beta2, k, 0.999),
        .eps = value_or(a->eps, k, 1e-8),
        .nesterov = a->nesterov.buf != NULL && *tensor_i32(a->nesterov, k) != 0,
    };
    double t = (double)*tensor_i32(a->step, k) + 1;
    h.correct1 = 1 - pow(h.beta1, t);
    h.correct2 = 1 - pow(h.beta2, t);
    return h;
}

/* A parameter and its two moments. Without a second moment m2 is 0 and is not written. */
struct cell {
    double p, m1, m2;
};

static void step_sgd(const struct hyper *h, double g, struct cell *c)
{
    g += h->decay * c->p;
    if (h->momentum > 0) {
        c->m1 = h->momentum * c->m1 + g;
        g = h->nesterov ? g + h->momentum * c->m1 : c->m1;
    }
    c->p -= h->lr * g;
}

/* Updates both moments and returns the corrected quotient. */
static double adam_quotient(const struct hyper *h, double g, struct cell *c)
{
    c->m1 = h->beta1 * c->m1 + (1 - h->beta1) * g;
    c->m2 = h->beta2 * c->m2 + (1 - h->beta2) * g * g;
    return c->m1 / h->correct1 / (sqrt(c->m2 / h->correct2) + h->eps);
}

static void step_rmsprop(const struct hyper *h, double g, struct cell *c)
{
    g += h->decay * c->p;
    c->m2 = h->beta2 * c->m2 + (1 - h->beta2) * g * g;
    double u = g / (sqrt(c->m2) + h->eps);
    if (h->momentum > 0)
        u = c->m1 = h->momentum * c->m1 + u;
    c->p -= h->lr * u;
}

static void step_adagrad(const struct hyper *h, double g, struct cell *c)
{
    g += h->decay * c->p;
    c->m2 += g * g;
    c->p -= h->lr * g / (sqrt(c->m2) + h->eps);
}

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x; /* NaN stays */
}

static void step_lion(const struct hyper *h, double g, struct cell *c)
{
    c->p = c->p * (1 - h->lr * h->decay) - h->lr * sign(h->beta1 * c->m1 + (1 - h->beta1) * g);
    c->m1 = h->beta2 * c->m1 + (1 - h->beta2) * g;
}

static void step_cell(optim_kind kind, const struct hyper *h, double g, struct cell *c)
{
    switch (kind) {
    case OPT_SGD:
        step_sgd(h, g, c);
        break;
    case OPT_ADAM:
        g += h->decay * c->p;
        c->p -= h->lr * adam_quotient(h, g, c);
        break;
    case OPT_ADAMW:
        c->p *= 1 - h->lr * h->decay;
        c->p -= h->lr * adam_quotient(h, g, c);
        break;
    case OPT_RMSPROP:
        step_rmsprop(h, g, c);
        break;
    case OPT_LION:
        step_lion(h, g, c);
        break;
    case OPT_ADAGRAD:
        step_adagrad(h, g, c);
        break;
    case OPT_LAMB:
        break; /* by segments */
    }
}

static void step_cells(optim_kind kind, const struct hyper *h, const struct opt_args *a, size_t k)
{
    float *p = tensor_f32(a->params, k), *m1 = tensor_f32(a->m1, k), *m2 = tensor_f32(a->m2, k);
    const float *g = tensor_f32(a->grads, k);
    bool second = kind != OPT_SGD && kind != OPT_LION;
    for (size_t i = 0; i < a->n; i++) {
        struct cell c = {(double)p[i], (double)m1[i], second ? (double)m2[i] : 0};
        step_cell(kind, h, (double)g[i], &c);
        p[i] = (float)c.p;
        m1[i] = (float)c.m1;
        if (second)
            m2[i] = (float)c.m2;
    }
}

/* Reads the stored moments, so that both passes see the same values. */
static double lamb_direction(const struct hyper *h, float p, float m1, float m2)
{
    return (double)m1 / h->correct1 / (sqrt((double)m2 / h->correct2) + h->eps) +
           h->decay * (double)p;
}

static void lamb_segment(const struct hyper *h, const struct opt_args *a, size_t k, size_t segment,
                         size_t from, size_t to)
{
    float *p = tensor_f32(a->params, k), *m1 = tensor_f32(a->m1, k), *m2 = tensor_f32(a->m2, k);
    const float *g = tensor_f32(a->grads, k);
    double p_sum = 0, r_sum = 0;
    for (size_t i = from; i < to; i++) {
        struct cell c = {0, (double)m1[i], (double)m2[i]};
        (void)adam_quotient(h, (double)g[i], &c);
        m1[i] = (float)c.m1;
        m2[i] = (float)c.m2;
        double r = lamb_direction(h, p[i], m1[i], m2[i]);
        p_sum += (double)p[i] * (double)p[i];
        r_sum += r * r;
    }
    double p_norm = sqrt(p_sum), r_norm = sqrt(r_sum);
    tensor_f32(a->work, k)[2 * segment] = (float)p_norm;
    tensor_f32(a->work, k)[2 * segment + 1] = (float)r_norm;
    double trust = p_norm > 0 && r_norm > 0 ? p_norm / r_norm : 1;
    for (size_t i = from; i < to; i++)
        p[i] = (float)((double)p[i] - h->lr * trust * lamb_direction(h, p[i], m1[i], m2[i]));
}

static void step_lamb(const struct hyper *h, const struct opt_args *a, size_t k)
{
    size_t n_segments = a->segments != NULL ? a->n_segments : 1;
    for (size_t s = 0; s < n_segments; s++)
        lamb_segment(h, a, k, s, a->segments != NULL ? a->segments[s] : 0,
                     s + 1 < n_segments ? a->segments[s + 1] : a->n);
}

/* Whether member k is active and has the tensors that its kind needs. */
static bool takes_part(const struct opt_args *a, size_t k)
{
    if (a->active.buf != NULL && *tensor_i32(a->active, k) == 0)
        return false;
    switch (*tensor_i32(a->kind, k)) {
    case OPT_SGD:
    case OPT_LION:
        return true;
    case OPT_ADAM:
    case OPT_ADAMW:
    case OPT_RMSPROP:
    case OPT_ADAGRAD:
        return a->m2.buf != NULL;
    case OPT_LAMB:
        return a->m2.buf != NULL && a->work.buf != NULL;
    default:
        return false;
    }
}

as_status ref_optimize(struct backend *be, const struct opt_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        if (!takes_part(a, k))
            continue;
        optim_kind kind = (optim_kind)*tensor_i32(a->kind, k);
        struct hyper h = hyper_of(a, k);
        if (kind == OPT_LAMB)
            step_lamb(&h, a, k);
        else
            step_cells(kind, &h, a, k);
        ++*tensor_i32(a->step, k);
    }
    return AS_OK;
}
