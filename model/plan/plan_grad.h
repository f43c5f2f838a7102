/* Gradient slots, values that share a buffer, and FLOPs: they follow from the shapes of a plan. */
#ifndef ASSAY_MODEL_PLAN_PLAN_GRAD_H
#define ASSAY_MODEL_PLAN_PLAN_GRAD_H

#include "model/plan/net.h"
#include "base/status.h"

/* Set gradient slots, which dropout nodes work in place, and FLOPs, from the shapes of the nodes.
 * Call it again after shapes changed. AS_E_NOMEM. */
AS_MUST_CHECK as_status net_plan_finish(struct net_plan *p, struct as_err *err);

/* Of one row, forward and backward; the plan is finished. */
double net_node_flops_train(const struct net_node *n);

#endif
