/* Norms and clipping of all gradients, optimizers, averages of weights. backend.h states the rules
 * of all operations. */
#ifndef ASSAY_KERNELS_OPS_OPTIM_H
#define ASSAY_KERNELS_OPS_OPTIM_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- norms and clipping of all gradients ---- */

struct grad_stats_args {
    size_t members, n;     /* K, N */
    struct tensor grads;   /* [K, N] */
    struct tensor sq_norm; /* [K], F32: sum of squares (summed in double) */
    struct tensor finite;  /* [K], I32: 1 when every element is finite, else 0 */
    struct tensor
        active; /* [K], I32: set to 0 where not finite, otherwise unchanged; absent: none */
};

AS_MUST_CHECK as_status backend_grad_stats(struct backend *be, const struct grad_stats_args *a,
                                           struct as_err *err);

struct grad_clip_args {
    size_t members, n;
    struct tensor grads;    /* [K, N], in place */
    struct tensor sq_norm;  /* [K], from backend_grad_stats */
    struct tensor max_norm; /* [K]; <= 0 or NaN: that member is not clipped */
};

/* grads[k] *= min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_. A member whose norm
 * is not finite is unchanged. */
AS_MUST_CHECK as_status backend_grad_clip(struct backend *be, const struct grad_clip_args *a,
                                          struct as_err *err);

struct grad_accumulate_args {
    size_t members, n;
    struct tensor grads; /* [K, N]: of this micro-batch */
    struct tensor sum;   /* [K, N], in place */
    struct tensor scale; /* [K]: share of this micro-batch in its batch */
    struct tensor first; /* [K], I32: non-zero where this micro-batch begins a batch */
};

/* sum[k] = (first[k] ? 0 : sum[k]) + scale[k] * grads[k]; where first is set, old values
 * (NaN too) are discarded. */
AS_MUST_CHECK as_status backend_grad_accumulate(struct backend *be,
                                                const struct grad_accumulate_args *a,
                                                struct as_err *err);

/* ---- optimizers over an arena [K, N] ---- */

/* Formulas as in PyTorch 2's torch.optim, unless stated. g: gradient, p: parameter, t: steps done,
 * this one included, wd: weight decay. m1, m2: the two moments, zero before the first step.
 *   SGD      g += wd p; with momentum > 0: m1 = momentum m1 + g,
 *            g = nesterov ? g + momentum m1 : m1; p -= lr g
 *   ADAM     g += wd p; then as ADAMW without its decay (Kingma and Ba 2015)
 *   ADAMW    p *= 1 - lr wd; m1 = b1 m1 + (1 - b1) g; m2 = b2 m2 + (1 - b2) g^2;
 *            p -= lr / (1 - b1^t) * m1 / (sqrt(m2 / (1 - b2^t)) + eps) (Loshchilov and Hutter 2019)
 *   RMSPROP  g += wd p; m2 = b2 m2 + (1 - b2) g^2; u = g / (sqrt(m2) + eps);
 *            with momentum > 0: m1 = momentum m1 + u, u = m1; p -= lr u (torch's alpha is b2)
 *   LAMB     r = m1^ / (sqrt(m2^) + eps) + wd p with ADAMW's corrected moments; for each segment:
 *            p -= lr * (|p| > 0 and |r| > 0 ? |p| / |r| : 1) * r (You et al. 2020)
 *   LION     p *= 1 - lr wd; p -= lr sign(b1 m1 + (1 - b1) g); m1 = b2 m1 + (1 - b2) g
 *            (Chen et al. 2023)
 *   ADAGRAD  g += wd p; m2 += g^2; p -= lr g / (sqrt(m2) + eps) (Duchi et al. 2011) */
typedef enum optim_kind {
    OPT_SGD,
    OPT_ADAM,
    OPT_ADAMW,
    OPT_RMSPROP,
    OPT_LAMB,
    OPT_LION,
    OPT_ADAGRAD
} optim_kind;
#define OPTIM_KINDS 7

/* A member whose `active` is 0 is untouched: parameters, moments and step counter. An active
 * member's step counter goes up by one. */
struct opt_args {
    size_t members, n;    /* K, N */
    struct tensor kind;   /* [K], I32: an optim_kind each; a member is unchanged if its kind is any
                           * other value, or if its kind needs an m2 or work that is absent */
    struct tensor params; /* [K, N], in place */
    struct tensor grads;  /* [K, N], read only */
    struct tensor m1;     /* [K, N], in place: SGD's velocity, the first moment */
    struct tensor m2;     /* [K, N], in place; absent when all members are SGD or LION */
    struct tensor lr;     /* [K] */
    struct tensor weight_decay; /* [K]; absent: 0 */
    struct tensor momentum;     /* [K]: SGD, RMSPROP; absent: 0 */
    struct tensor nesterov;     /* [K], I32: SGD; absent: no */
    struct tensor beta1, beta2; /* [K]; absent: 0.9, 0.999 */
    struct tensor eps;          /* [K]; absent: 1e-8 */
    struct tensor active;       /* [K], I32; absent: all */
    struct tensor step;         /* [K], I32: steps done so far, in place */
    const size_t *segments; /* host, borrowed for the call (of a graph: until it is freed): where
                             * each parameter tensor begins, ascending, the first 0. Only LAMB
                             * reads them; NULL: one segment */
    size_t n_segments;      /* not read when segments is NULL */
    struct tensor work; /* [K, 2 n_segments (at least 2)] F32: LAMB writes |p| (before the step) and
                         * |r| of each segment here; absent when no member is LAMB */
};

AS_MUST_CHECK as_status backend_optimize(struct backend *be, const struct opt_args *a,
                                         struct as_err *err);

/* ---- exponential moving average of weights ---- */

struct ema_args {
    size_t members, n;
    struct tensor params;  /* [K, N] */
    struct tensor average; /* [K, N], in place; the caller begins with a copy of params */
    struct tensor decay;   /* [K] in [0, 1): average = decay average + (1 - decay) params */
    struct tensor active;  /* [K], I32: 0: the member is unchanged; absent: all are active */
};

AS_MUST_CHECK as_status backend_ema(struct backend *be, const struct ema_args *a,
                                    struct as_err *err);

#ifdef __cplusplus
}
#endif

#endif
