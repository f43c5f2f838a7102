/* What a network is made of, before any of it exists: layers with their shapes, parameter tensors,
 * FLOPs and bytes, from a train document and what the data looks like.
 *
 * Pure: the server asks it for the shape signature and the memory of a trial, the trainer executes
 * it (model/network/network.h). A plan is a list of nodes in order; a node reads the values of
 * nodes before it. Node 0 is the input, the last node holds the outputs. */
#ifndef ASSAY_MODEL_PLAN_PLAN_H
#define ASSAY_MODEL_PLAN_PLAN_H

#include "model/plan/net.h"
#include "base/status.h"

/* The plan of one member in its own shape.
 *   spec, data  borrowed for the call
 *   pointer     of the train document, for messages ("/trial/train")
 *   ret         owned by the caller: net_plan_free()
 * AS_E_INVAL with the pointer of the block that cannot be: a kernel larger than the image, a branch
 * whose shape cannot be projected, heads that do not divide the width, a model that does not take
 * such data. AS_E_TOO_LARGE: more than TRAIN_MAX_PARAMETERS, or activations past 2^40. AS_E_NOMEM.
 */
AS_MUST_CHECK as_status net_plan_create(const struct train_spec *spec, const struct net_data *data,
                                        const char *pointer, struct net_plan **ret,
                                        struct as_err *err);

#endif
