/* Parts of a network: a plan is cut into plans of consecutive nodes, which compute the same numbers
 * one after the other. A plan can be cut behind a node if all later nodes read from it or from
 * later ones: one value goes forward there, and its gradient back. */
#ifndef ASSAY_MODEL_PLAN_PLAN_CUT_H
#define ASSAY_MODEL_PLAN_PLAN_CUT_H

#include "model/plan/net.h"
#include "base/status.h"

/* Consecutive nodes of a plan, and what belongs to them. */
struct net_part {
    char name[NET_NAME_MAX];       /* of a layer */
    size_t first_node, end_node;   /* without node 0, which is the input */
    size_t first_param, end_param; /* numbers of the member */
    size_t first_state, end_state; /* the same */
    struct net_shape out;          /* of a row of its value */
    double flops;                  /* of a row, forward and backward */
};

struct net_parts {
    size_t n;
    struct net_part *of;
};

void net_parts_done(struct net_parts *p); /* a zeroed one is fine */

/* The layers of a plan, which can be cut between any two of them. A layer has the name that its
 * tensors begin with: layers.0, blocks.3, embedding, head. What has no tensors (pools, dropout)
 * belongs to the layer before it. ret: net_parts_done(). AS_E_NOMEM. */
AS_MUST_CHECK as_status net_plan_layers(const struct net_plan *plan, struct net_parts *ret,
                                        struct as_err *err);

/* One part of two that follow one another; the name of the first. */
struct net_part net_part_join(const struct net_part *a, const struct net_part *b);

/* The plan of a part: its first node is the input, with the value of the part before it, and its
 * last has the outputs. Tensors and states keep their names and streams, and their offsets count
 * from the part's first. `outputs` and `tokens` stay those of the whole network. ret: owned by the
 * caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status net_plan_cut(const struct net_plan *plan, const struct net_part *part,
                                     struct net_plan **ret, struct as_err *err);

#endif
