/* Dense operations: linear layers, activations, sums, dropout. backend.h states the rules of all
 * operations. */
#ifndef ASSAY_KERNELS_OPS_DENSE_H
#define ASSAY_KERNELS_OPS_DENSE_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- linear layers ---- */

/* none: z. relu: max(z, 0), NaN stays NaN. tanh. gelu: z * (1 + erf(z / sqrt 2)) / 2, the exact
 * form (Hendrycks and Gimpel 2016), not the tanh approximation. */
typedef enum act_kind { ACT_NONE, ACT_RELU, ACT_TANH, ACT_GELU } act_kind;

/* Whether backend_act_backward needs the activation's *input* z (gelu) or its *output* (others). */
static inline bool act_keeps_input(act_kind act)
{
    return act == ACT_GELU;
}

struct linear_args {
    size_t members, batch, in, out; /* K, B, I, O */
    struct tensor x;                /* [K or shared, B, I] */
    struct tensor w;                /* [K or shared, I, O] */
    struct tensor b;                /* [K or shared, O]; absent: no bias */
};

/* y[k] = act(x[k] w[k] + b[k]).
 *   y   [K, B, O]; must not overlap the inputs
 *   z   [K, B, O]: receives x w + b, before the activation; absent: not kept. The backward pass
 *       of gelu needs it. z may be y only when act is ACT_NONE. */
AS_MUST_CHECK as_status backend_linear_forward(struct backend *be, const struct linear_args *a,
                                               act_kind act, struct tensor y, struct tensor z,
                                               struct as_err *err);

struct linear_grads {
    struct tensor dy; /* [K, B, O]: gradient by z = x w + b: the output of backend_act_backward */
    struct tensor dx; /* [K, B, I]: dy w^T; absent: not computed. Always overwritten */
    struct tensor dw; /* [K, I, O]: x^T dy; absent: not computed */
    struct tensor db; /* [K, O]: sum of dy over the rows; absent: not computed */
    bool accumulate;  /* dw and db are added to instead of overwritten */
};

/* The gradients of backend_linear_forward. `a` as in the forward call (b is not read). The outputs
 * must not overlap the inputs or one another. */
AS_MUST_CHECK as_status backend_linear_backward(struct backend *be, const struct linear_args *a,
                                                const struct linear_grads *g, struct as_err *err);

struct act_args {
    size_t members, n; /* n elements of each member */
    act_kind act;
    struct tensor kept; /* [K, n]: the activation's output, or its input where act_keeps_input() */
    struct tensor dy;   /* [K, n]: gradient by the activation's output */
    struct tensor dx;   /* [K, n]: gradient by its input; may be dy (in place) */
};

/* dx = dy * act'(z). relu'(0) = 0. */
AS_MUST_CHECK as_status backend_act_backward(struct backend *be, const struct act_args *a,
                                             struct as_err *err);

struct add_args {
    size_t members, n;
    struct tensor a, b; /* [K or shared, n] */
    struct tensor y;    /* [K, n]; may be a or b (in place) */
    act_kind act;       /* none or relu */
};

/* y = act(a + b): residual connections, and the sum of gradients where a value was used twice. */
AS_MUST_CHECK as_status backend_add(struct backend *be, const struct add_args *a,
                                    struct as_err *err);

/* ---- dropout ---- */

struct dropout_args {
    size_t members, rows, width; /* K, B, D */
    struct tensor x;             /* [K or shared, B, D] */
    struct tensor y;             /* [K, B, D]; may be x (in place) */
    struct tensor rate;          /* [K]: share of elements dropped. <= 0 or NaN: none; >= 1: all */
    struct tensor seed;          /* [K, 2], I32: low word, high word of the member's 64-bit seed */
    struct tensor
        step;       /* [K], I32: the member's step counter (the optimizer's own may be passed) */
    uint32_t layer; /* < 2^24: number of the dropout in the model */
};

/* y = x * keep / (1 - rate), where keep depends only on (seed, step, layer, row, unit), not on the
 * width. So no mask is stored, and a padded layer drops the same units. The backward pass is the
 * same call on the gradient, with the same step.
 *
 * Unit u of row r of member k is kept when word u mod 4 of philox4x32(key = seed[k], hi = step[k]
 * << 32 | layer << 8 | DROPOUT_PURPOSE, lo = r << 32 | u / 4) is >= rate[k] * 2^32, truncated. The
 * bits are the same on every back end. If dropout works in place on an activation's output, the
 * backward pass of the activation is still right for none and relu, but not for tanh. */
#define DROPOUT_PURPOSE 0xD0u
AS_MUST_CHECK as_status backend_dropout(struct backend *be, const struct dropout_args *a,
                                        struct as_err *err);

#ifdef __cplusplus
}
#endif

#endif
