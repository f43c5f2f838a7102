/* The inside of a network: for model/network/ alone. */
#ifndef ASSAY_MODEL_NETWORK_NETWORK_PRIV_H
#define ASSAY_MODEL_NETWORK_NETWORK_PRIV_H

#include "model/network/network.h"

struct network {
    struct backend *be;          /* borrowed */
    const struct net_plan *plan; /* borrowed */
    size_t slots, max_rows;
    struct buf *params, *grads;   /* [slots, N] */
    struct buf *state;            /* [slots, n_state]; NULL when the plan has none */
    struct network_value *values; /* [n_nodes]: the set in use */
    struct network_value **sets;  /* [n_sets], of which `values` is one */
    size_t n_sets;
    struct buf **gradients; /* [n_slots of the plan]: [slots, max_rows, …] */
    struct buf *work;       /* [slots, work_len]: of convolutions and attention; or NULL */
    size_t work_len;
};

/* The buffers of a node, [slots, …] each; NULL if its kind has none. */
struct network_value {
    struct buf *y;    /* max_rows rows of the value */
    struct buf *z;    /* the input of the activation, the same size */
    struct buf *kept; /* kept_row for each of max_rows rows, then kept_member; I32 for the indices
                       * of a maximum */
};

/* A pass over slots [first, first + n) in a lane. */
struct network_run {
    struct network *net;
    struct backend *lane;
    size_t first, n;
    const struct network_pass *pass;
    struct as_err *err;
};

#define NETWORK_NORM_EPS 1e-5f     /* of both normalisations, as PyTorch's */
#define NETWORK_NORM_MOMENTUM 0.1f /* of running statistics, as PyTorch's */

static inline const struct net_node *network_node(const struct network *net, size_t i)
{
    return &net->plan->nodes[i];
}

/* Does this pass use dropout? Not in validation, and not if no member of the range has a rate. */
static inline bool network_drops(const struct network_run *r)
{
    return r->pass->train && !tensor_is_none(r->pass->rate);
}

static inline size_t network_places(const struct net_node *n)
{
    return n->out.height * n->out.width;
}

act_kind network_act(net_act act);

/* Tensors that begin at the first slot of the range: a node's value; the input of its activation;
 * its other kept numbers, from element `at` of the member on; a parameter; the gradient of a
 * parameter; a state tensor; a gradient slot of the plan; the workspace. */
struct tensor network_value_at(const struct network_run *r, size_t node);
struct tensor network_z_at(const struct network_run *r, size_t node);
struct tensor network_kept_at(const struct network_run *r, size_t node, size_t at);
struct tensor network_param_at(const struct network_run *r, size_t tensor);
struct tensor network_grad_at(const struct network_run *r, size_t tensor);
struct tensor network_state_at(const struct network_run *r, size_t state);
struct tensor network_slot_at(const struct network_run *r, int slot);
struct tensor network_work_at(const struct network_run *r);

/* Sizes alone, without tensors: of `members` members and `rows` rows. */
struct conv_args network_conv_sizes(const struct net_node *n, size_t members, size_t rows);
struct attention_args network_attention_sizes(const struct net_node *n, size_t members,
                                              size_t rows);

/* The arguments that forward and backward share. */
struct conv_args network_conv_args(const struct network_run *r, size_t node);
struct linear_args network_linear_args(const struct network_run *r, size_t node);
struct pool_args network_pool_args(const struct network_run *r, size_t node);
struct batch_norm_args network_batch_norm_args(const struct network_run *r, size_t node);
struct layer_norm_args network_layer_norm_args(const struct network_run *r, size_t node);
struct embedding_args network_embedding_args(const struct network_run *r, size_t node);
struct attention_args network_attention_args(const struct network_run *r, size_t node);
struct dropout_args network_dropout_args(const struct network_run *r, size_t node,
                                         struct tensor from, struct tensor to);

#endif
