/* Building a plan node by node: for this folder alone. */
#ifndef ASSAY_MODEL_PLAN_BUILDER_PRIV_H
#define ASSAY_MODEL_PLAN_BUILDER_PRIV_H

#include "model/plan/net.h"
#include "base/status.h"

/* A plan while it is built. The first failure stays in `st`; after it nothing is added, and each
 * function returns node 0. */
struct net_builder {
    struct net_plan *p;
    size_t node_cap, tensor_cap, state_cap;
    uint64_t n_normal;  /* tensors with drawn values so far */
    uint32_t n_dropout; /* layers so far */
    const struct train_spec *spec;
    const struct net_data *data;
    const char *pointer; /* of the train document */
    as_status st;
    struct as_err *err;
};

struct net_shape net_out(const struct net_builder *b,
                         size_t node); /* the shape of a node's value */

/* Each returns the number of the new node. `name` is that of its tensors, without ".weight". */
size_t net_add_input(struct net_builder *b, struct net_shape shape);
size_t net_add_linear(struct net_builder *b, size_t from, size_t out, net_act act, bool bias,
                      double deviation, const char *name); /* over the channels */
size_t net_add_dense(struct net_builder *b, size_t from, size_t out, net_act act, bool bias,
                     const char *name); /* over all of a row; He's or LeCun's deviation */
size_t net_add_batch_norm(struct net_builder *b, size_t from, net_act act, const char *name);
size_t net_add_layer_norm(struct net_builder *b, size_t from, const char *name);
size_t net_add_sum(struct net_builder *b, size_t from, size_t with, net_act act);
size_t net_add_dropout(struct net_builder *b,
                       size_t from); /* `from` itself without model.dropout */

/* Add a node whose tensors were added before. */
size_t net_add_node(struct net_builder *b, const struct net_node *node);

/* Add a parameter tensor, called NAME.PART; returns its number. Sets count and offset. */
size_t net_add_tensor(struct net_builder *b, const struct net_tensor *t, const char *name,
                      const char *part);

/* The deviation of start values: He et al. 2015 before relu and gelu, LeCun 1998 before tanh and
 * outputs. */
double net_deviation(net_act act, size_t fan_in);
net_act net_act_of(train_activation a);

/* Fail with AS_E_INVAL at `field` of the section `model`. */
void net_refuse(struct net_builder *b, const char *field, const char *fmt, ...) AS_PRINTF(3, 4);

#endif
