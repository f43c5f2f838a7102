/* The plan of a network: its layers with their shapes, parameter tensors, FLOPs and bytes, derived
 * from a train document and the description of the data, before any buffer exists.
 *
 * Pure: the server uses it for the shape signature and the memory of a trial, the trainer executes
 * it (model/network/network.h). net.h has its types. */
#ifndef ASSAY_MODEL_PLAN_PLAN_H
#define ASSAY_MODEL_PLAN_PLAN_H

#include "model/plan/net.h"
#include "base/status.h"

/* The plan of one member in its own shape.
 *   spec, data  borrowed for the call
 *   pointer     of the train document, for messages ("/trial/train")
 *   ret         owned by the caller: net_plan_free()
 * AS_E_INVAL with the pointer of the block that is impossible: a kernel larger than the image, a
 * branch whose shape cannot be projected, heads that do not divide the width, a model that does not
 * take such data. AS_E_TOO_LARGE: more than TRAIN_MAX_PARAMETERS, or more than 2^40 bytes of
 * activations. AS_E_NOMEM. */
AS_MUST_CHECK as_status net_plan_create(const struct train_spec *spec, const struct net_data *data,
                                        const char *pointer, struct net_plan **ret,
                                        struct as_err *err);

#endif
