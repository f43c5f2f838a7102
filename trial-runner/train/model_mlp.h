/* The network: linear layers with an activation and dropout between them, for K members at once.
 *
 * Parameters and gradients are arenas [K, N]: member k's parameters lie together, layer by layer,
 * the weight [in, out] and then the bias [out] of each. Activations are [K, batch, width]. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_MODEL_MLP_H
#define ASSAY_TRIAL_RUNNER_TRAIN_MODEL_MLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/spec/train_spec.h"
#include "kernels/ops.h"

struct model_shape {
    size_t n_linear;                        /* hidden layers + 1 */
    size_t width[TRAIN_MAX_LAYERS + 2];     /* features, hidden layers, outputs */
    size_t weight_at[TRAIN_MAX_LAYERS + 1]; /* element of a member's parameters */
    size_t bias_at[TRAIN_MAX_LAYERS + 1];
    size_t n_params; /* N */
    act_kind act;
};

void model_shape_of(const struct train_model_spec *spec, size_t features, size_t outputs,
                    struct model_shape *ret);

/* Dropout of one training step; NULL where none is wanted (validation). */
struct model_dropout {
    struct tensor rate; /* [K] */
    struct tensor seed; /* [K, 2], I32 */
    struct tensor step; /* [K], I32 */
};

struct model {
    struct backend *be; /* borrowed */
    struct model_shape shape;
    size_t members, max_batch;
    struct buf *params, *grads; /* [K, N] */
    /* Of each linear layer, [K, max_batch, its outputs]: y after the activation, z before it (gelu
     * only), d after dropout (only when the model has some). y of the last holds the logits. */
    struct buf *y[TRAIN_MAX_LAYERS + 1], *z[TRAIN_MAX_LAYERS + 1], *d[TRAIN_MAX_LAYERS + 1];
    struct buf *delta[2]; /* [K, max_batch, widest hidden layer]: gradients on their way back */
};

/* Buffers for batches of up to max_batch rows; `dropout`: will model_forward be given some?
 * AS_E_NOMEM, AS_E_TOO_LARGE. Owned by the caller: model_free(). */
AS_MUST_CHECK as_status model_create(struct backend *be, const struct model_shape *shape,
                                     size_t members, size_t max_batch, bool dropout,
                                     struct model **ret, struct as_err *err);
void model_free(struct model *m);
AS_DEFINE_FREEP(struct model, model_free)

/* Weights of member k from its seed: normal with deviation sqrt(2 / inputs) before relu and gelu
 * (He et al. 2015), sqrt(1 / inputs) before tanh and at the output (LeCun 1998); biases 0. */
AS_MUST_CHECK as_status model_init(struct model *m, size_t k, uint64_t seed, struct as_err *err);

/* Outputs of a batch, into model_outputs(m). x is [K or shared, batch, features]. */
AS_MUST_CHECK as_status model_forward(struct model *m, struct tensor x, size_t batch,
                                      const struct model_dropout *dropout, struct as_err *err);

/* The last layer's outputs [K, batch, outputs]; a loss may put its gradient in their place. */
struct tensor model_outputs(const struct model *m);

/* Gradients of all parameters, from the gradient by the outputs that lies in model_outputs(m) and
 * what the forward pass of the same x, batch and dropout left. */
AS_MUST_CHECK as_status model_backward(struct model *m, struct tensor x, size_t batch,
                                       const struct model_dropout *dropout, struct as_err *err);

#endif
