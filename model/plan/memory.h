/* The memory that a plan takes: computed from its shapes. */
#ifndef ASSAY_MODEL_PLAN_MEMORY_H
#define ASSAY_MODEL_PLAN_MEMORY_H

#include <stddef.h>

#include "model/plan/net.h"

struct net_bytes {
    /* of one member */
    size_t parameters, gradients, moments; /* moments: two, whatever the optimizer */
    size_t accumulated; /* sums over micro-batches, and the average of weights, where there are */
    size_t state;
    size_t activations; /* values, kept inputs, gradient slots, indices, for the rows asked */
    size_t workspace;   /* the largest net_workspace: nodes share it */
    size_t batch;       /* the gathered batch and its targets, losses of rows */
    size_t tables;      /* its order of the rows, rates and marks of each step, settings */
    size_t member;      /* the sum of the above */
    size_t shared;      /* the data set on the device, whatever the number of members */
};

/* Numbers of workspace that a convolution or attention over `rows` rows takes at most on the host;
 * 0 for other nodes. A CUDA back end may take more: model_bytes() of the trainer asks it. */
size_t net_workspace(const struct net_node *n, size_t rows);

/* Bytes with buffers for `rows` rows, usually p->buffer_rows. */
void net_plan_bytes(const struct net_plan *p, const struct train_spec *spec,
                    const struct net_data *data, size_t rows, struct net_bytes *ret);

/* Bytes of values, kept inputs, gradient slots and indices for so many rows; a double, because a
 * plan that is too large for a size_t is refused by it. */
double net_activation_bytes(const struct net_plan *p, double rows);

#endif
