/* A network of several members at once: executes a plan (model/plan/plan.h) on a back end. Training
 * and predicting go through this header; nothing here knows of data sets, losses or optimizers.
 *
 * A network has `slots`, each with room for one member. Parameters and gradients are arenas [slots,
 * N], N = plan->n_params; the state of batch normalisation is [slots, n_state]; activations are
 * [slots, max_rows, ...]. Passes work on a range of slots. Ranges that do not overlap may run at
 * the same time, each in a lane of its own (backend_for_each); everything else about one network is
 * for one thread at a time. Passes move nothing between host and device.
 *
 * A member that is narrower than the plan is padded with zeros in its slot. Outside of the network,
 * its numbers are always in its own shape: `own` is its own plan, which net_plan_fits() the
 * network's.
 *
 * To predict: network_create_forward() with one slot; network_write() the parameters and
 * network_write_state() the state; for each batch network_forward() with `train` false; then read
 * network_outputs(), from which model/network/outputs.h makes predictions. Without `train`, the
 * outputs of a row do not depend on the other rows of the batch. Equal bits are promised for the
 * same back end and machine, and for the same number of rows in a pass. */
#ifndef ASSAY_MODEL_NETWORK_NETWORK_H
#define ASSAY_MODEL_NETWORK_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/plan/net.h"
#include "kernels/ops.h"

struct network;
struct network_pass;

/* Buffers on `be` for `slots` >= 1 members and passes of up to max_rows >= 1 rows. `be` and `plan`
 * are borrowed until network_free(). Parameters are not set: network_init() or network_write() does
 * that. ret is owned by the caller, network_free(); untouched on failure. AS_E_NOMEM (host or
 * device), AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status network_create(struct backend *be, const struct net_plan *plan,
                                       size_t slots, size_t max_rows, struct network **ret,
                                       struct as_err *err);
/* The same without the buffers of the backward pass, for programs that only predict:
 * network_backward() and network_gradients() must not be called. */
AS_MUST_CHECK as_status network_create_forward(struct backend *be, const struct net_plan *plan,
                                               size_t slots, size_t max_rows, struct network **ret,
                                               struct as_err *err);
void network_free(struct network *net);
AS_DEFINE_FREEP(struct network, network_free)

/* The exact bytes of the buffers that network_create() would make for these sizes. */
size_t network_bytes(struct backend *be, const struct net_plan *plan, size_t slots,
                     size_t max_rows);

/* ---- several passes at once, of parts of networks ---- */

/* Room for the values of `sets` passes, of which each may wait for its backward pass while others
 * run; at first one. Passes use the set that was chosen last. AS_E_NOMEM. */
AS_MUST_CHECK as_status network_keep(struct network *net, size_t sets, struct as_err *err);
void network_use(struct network *net, size_t set);

/* Of slot 0, after a pass in the chosen set: the value of the last node; where the gradient by it
 * is expected, if no loss has written it to network_outputs(); and, where plan->wants_dx, the
 * gradient by the input. */
struct tensor network_result(struct network *net, const struct network_pass *pass);
struct tensor network_output_gradient(struct network *net);
struct tensor network_input_gradient(struct network *net);

/* ---- members ---- */

/* The arenas [slots, N] F32 of parameters and gradients, and the state [slots, n_state]; views of
 * net. state: NULL if the plan has none. */
struct buf *network_params(const struct network *net);
struct buf *network_gradients(const struct network *net);
struct buf *network_state(const struct network *net);

/* Set the start values of a member: each tensor as its plan says (NET_INIT_NORMAL: draw_stream() of
 * seed and the tensor's stream), drawn for the member's own shape, so that they do not depend on
 * padding; running means 0, running variances 1. AS_E_NOMEM, AS_E_INTERNAL. */
AS_MUST_CHECK as_status network_init(struct network *net, size_t slot, const struct net_plan *own,
                                     uint64_t seed, struct as_err *err);

/* The same draws without a network: ret = the start values of tensors, at their offsets. */
void network_draw(const struct net_tensor *tensors, size_t n, uint64_t seed, float *ret);

/* Read or write a member's numbers [own->n_params], which have the order and offsets of
 * own->tensors. The arena [slots, N] is network_params(), network_gradients() or another buffer of
 * that shape (moments, averages of weights). Writing sets the padding to 0. AS_E_NOMEM,
 * AS_E_INTERNAL. */
AS_MUST_CHECK as_status network_read(const struct network *net, const struct buf *arena,
                                     size_t slot, const struct net_plan *own, float *ret,
                                     struct as_err *err);
AS_MUST_CHECK as_status network_write(const struct network *net, struct buf *arena, size_t slot,
                                      const struct net_plan *own, const float *values,
                                      struct as_err *err);

/* Read or write a member's state [n_state], which has the offsets of plan->states. They do nothing
 * if the plan has no state. AS_E_INTERNAL. */
AS_MUST_CHECK as_status network_read_state(const struct network *net, size_t slot, float *ret,
                                           struct as_err *err);
AS_MUST_CHECK as_status network_write_state(struct network *net, size_t slot, const float *values,
                                            struct as_err *err);

/* ---- passes ---- */

/* The inputs of a pass; the tensors' buffers are borrowed for the call. Tensors begin at slot 0,
 * and the network advances to the range (a stride of 0: all slots share them). */
struct network_pass {
    size_t rows;         /* at most max_rows */
    struct tensor x;     /* [slots, rows, ...] F32: numbers of a table, or images, channels last */
    struct tensor codes; /* [slots, rows, ...] I32: tokens; or a table's categories, numbered across
                          * all columns (dataset.h) */
    struct buf *params;  /* [slots, N] to use instead of the network's own (an average); or NULL */
    bool train;          /* use batch statistics and update running ones; dropout. Needed before a
                          * backward pass */
    struct tensor rate;  /* dropout: [slots] F32, its rate; absent: no dropout */
    struct tensor seed;  /* dropout: [slots, 2] I32, its seed */
    struct tensor step;  /* dropout: [slots] I32, must differ between micro-batches */
    /* The backward pass calls it when the operations that make the gradient of parameters [first,
     * first + n) of the plan have been called: nothing later in the pass changes them. Each tensor
     * that gets a gradient is reported once. It must move nothing while a graph is recorded. NULL:
     * not called. */
    as_status (*on_grads)(void *arg, size_t first, size_t n, struct as_err *err);
    /* The backward pass calls it before it computes the gradient of a linear layer's weight, which
     * is that of the parameters from `first` on: the product of a->x, transposed, and `dy`, both
     * with a->batch rows. *ret_taken: true if somebody else computes it from them; then what
     * network_gradients() has there is undefined. NULL: not called. */
    as_status (*on_factors)(void *arg, size_t first, const struct linear_args *a, struct tensor dy,
                            bool *ret_taken, struct as_err *err);
    void *watch_arg; /* of both */
};

/* Compute the outputs of slots [first, first + n) for the rows of the pass. `lane` is the network's
 * back end, or a lane from backend_for_each(). AS_E_INTERNAL: the device failed, perhaps
 * earlier. */
AS_MUST_CHECK as_status network_forward(struct network *net, struct backend *lane, size_t first,
                                        size_t n, const struct network_pass *pass,
                                        struct as_err *err);

/* The outputs of slot `first` and the slots behind it: [slots - first, rows * tokens, outputs] F32,
 * logits or (standardised) numbers. A view of net, valid after network_forward() until the next
 * pass of that slot; a loss may write its gradient there. */
struct tensor network_outputs(const struct network *net, size_t first);

/* Compute the gradients of all parameters into network_gradients(), overwriting it. It starts from
 * the gradient in network_outputs() and uses the values that the forward pass of the same range and
 * pass left. Errors as in network_forward(). */
AS_MUST_CHECK as_status network_backward(struct network *net, struct backend *lane, size_t first,
                                         size_t n, const struct network_pass *pass,
                                         struct as_err *err);

#endif
