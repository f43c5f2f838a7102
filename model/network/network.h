/* A network of several members at once: executes a plan (model/plan/plan.h) over the kernels.
 *
 * A network has `slots`, each with room for one member. Parameters and gradients are arenas [slots,
 * N] with N = plan->n_params, the state of batch normalisation [slots, n_state], activations
 * [slots, max_rows, …]. Passes work on a range of slots: ranges that do not overlap may run at the
 * same time in distinct lanes (backend_for_each). Arenas of the same shape that belong to others
 * (moments, averages of weights) are read and written with network_read and network_write too.
 *
 * A member narrower than the plan lies in its slot padded with zeros; on the outside its numbers
 * are always in its own shape (`own`, a plan that net_plan_fits the network's). */
#ifndef ASSAY_MODEL_NETWORK_NETWORK_H
#define ASSAY_MODEL_NETWORK_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/plan/plan.h"
#include "kernels/ops.h"

struct network {
    struct backend *be;          /* borrowed */
    const struct net_plan *plan; /* borrowed */
    size_t slots, max_rows;
    struct buf *params, *grads;   /* [slots, N] */
    struct buf *state;            /* [slots, n_state]; NULL when the plan has none */
    struct network_value *values; /* [n_nodes], model_priv.h */
    struct buf **gradients;       /* [n_slots of the plan]: [slots, max_rows, …] */
    struct buf *work;             /* [slots, work_len]: of convolutions and attention; or NULL */
    size_t work_len;
};

/* Buffers for `slots` members and passes of up to max_rows rows. `plan` and `be` are borrowed until
 * network_free. AS_E_NOMEM, AS_E_TOO_LARGE. Owned by the caller. */
AS_MUST_CHECK as_status network_create(struct backend *be, const struct net_plan *plan,
                                       size_t slots, size_t max_rows, struct network **ret,
                                       struct as_err *err);
void network_free(struct network *net);
AS_DEFINE_FREEP(struct network, network_free)

/* ---- members ---- */

/* Start values of a member: each tensor as its plan says (NET_INIT_NORMAL: draw_stream of seed and
 * the tensor's stream), drawn for its own shape, so that they do not depend on padding; state 0 and
 * 1. */
AS_MUST_CHECK as_status network_init(struct network *net, size_t slot, const struct net_plan *own,
                                     uint64_t seed, struct as_err *err);

/* A member's numbers [own->n_params] out of or into an arena [slots, N]: net->params, or another
 * buffer of that shape. Writing sets the padding to 0. */
AS_MUST_CHECK as_status network_read(const struct network *net, const struct buf *arena,
                                     size_t slot, const struct net_plan *own, float *ret,
                                     struct as_err *err);
AS_MUST_CHECK as_status network_write(const struct network *net, struct buf *arena, size_t slot,
                                      const struct net_plan *own, const float *values,
                                      struct as_err *err);

/* The state [n_state] of a member; nothing to do when the plan has none. */
AS_MUST_CHECK as_status network_read_state(const struct network *net, size_t slot, float *ret,
                                           struct as_err *err);
AS_MUST_CHECK as_status network_write_state(struct network *net, size_t slot, const float *values,
                                            struct as_err *err);

/* Copy parameters and state of slot `from` into slot `to` (compaction). */
AS_MUST_CHECK as_status network_move(struct network *net, size_t from, size_t to,
                                     struct as_err *err);

/* ---- passes ---- */

/* What a pass reads. Tensors are those of slot 0; the network steps to the range itself. */
struct network_pass {
    size_t rows;         /* at most max_rows */
    struct tensor x;     /* [slots or shared, rows, …], F32: numbers of a table, images */
    struct tensor codes; /* [slots or shared, rows, …], I32: tokens; or a table's categories, each
                          * plus the number of values of the columns before it */
    struct buf
        *params; /* [slots, N] to use in place of the network's own (an average); NULL: own */
    bool train;  /* batch statistics, running ones updated; dropout. Needed for backward */
    struct tensor rate; /* [slots] dropout; absent: none */
    struct tensor seed; /* [slots, 2], I32 */
    struct tensor step; /* [slots], I32: must differ from micro-batch to micro-batch */
};

/* Outputs of slots [first, first + n), in `lane` (net->be, or what backend_for_each gave). */
AS_MUST_CHECK as_status network_forward(struct network *net, struct backend *lane, size_t first,
                                        size_t n, const struct network_pass *pass,
                                        struct as_err *err);

/* The outputs [slots, rows * tokens, outputs] of slot 0 on; a loss may put its gradient there. */
struct tensor network_outputs(const struct network *net);

/* Gradients of all parameters into net->grads (overwritten), from the gradient that lies in
 * network_outputs(net) and what the forward pass of the same range and pass left. */
AS_MUST_CHECK as_status network_backward(struct network *net, struct backend *lane, size_t first,
                                         size_t n, const struct network_pass *pass,
                                         struct as_err *err);

/* Bytes of the buffers that network_create makes for these sizes: exact, known before. */
size_t network_bytes(struct backend *be, const struct net_plan *plan, size_t slots,
                     size_t max_rows);

#endif
