/* The inside of a model: for model*.c alone. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_MODEL_PRIV_H
#define ASSAY_TRIAL_RUNNER_TRAIN_MODEL_PRIV_H

#include "model/network/network.h"

/* What a node leaves behind, [slots, …] each; NULL where its kind has none. */
struct model_value {
    struct buf *y;    /* max_rows rows of the value */
    struct buf *z;    /* what went into the activation, the same size */
    struct buf *kept; /* kept_row of max_rows rows and kept_member; I32 for a maximum's indices */
};

/* A pass over slots [first, first + n) in a lane. */
struct model_run {
    struct model *m;
    struct backend *lane;
    size_t first, n;
    const struct model_pass *pass;
    struct as_err *err;
};

#define MODEL_NORM_EPS 1e-5f     /* of both normalisations, as PyTorch's */
#define MODEL_NORM_MOMENTUM 0.1f /* of running statistics, as PyTorch's */

static inline const struct net_node *model_node(const struct model *m, size_t i)
{
    return &m->plan->nodes[i];
}

/* Does this pass drop anything? Not in validation, nor where no member of the range has a rate. */
static inline bool model_drops(const struct model_run *r)
{
    return r->pass->train && !tensor_is_none(r->pass->rate);
}

static inline size_t model_places(const struct net_node *n)
{
    return n->out.height * n->out.width;
}

act_kind model_act(net_act act);

/* Of the range's first slot: a node's value, its kept input, what else it kept from element `at` of
 * the member on; a parameter or gradient; a state tensor; a gradient slot of the plan. */
struct tensor model_value_at(const struct model_run *r, size_t node);
struct tensor model_z_at(const struct model_run *r, size_t node);
struct tensor model_kept_at(const struct model_run *r, size_t node, size_t at);
struct tensor model_param_at(const struct model_run *r, size_t tensor);
struct tensor model_grad_at(const struct model_run *r, size_t tensor);
struct tensor model_state_at(const struct model_run *r, size_t state);
struct tensor model_slot_at(const struct model_run *r, int slot);
struct tensor model_work_at(const struct model_run *r);

/* The arguments that forward and backward share. */
struct conv_args model_conv_args(const struct model_run *r, size_t node);
struct linear_args model_linear_args(const struct model_run *r, size_t node);
struct pool_args model_pool_args(const struct model_run *r, size_t node);
struct batch_norm_args model_batch_norm_args(const struct model_run *r, size_t node);
struct layer_norm_args model_layer_norm_args(const struct model_run *r, size_t node);
struct embedding_args model_embedding_args(const struct model_run *r, size_t node);
struct attention_args model_attention_args(const struct model_run *r, size_t node);
struct dropout_args model_dropout_args(const struct model_run *r, size_t node, struct tensor from,
                                       struct tensor to);

#endif
