/* The memory that a plan needs, computed from its shapes. */
#ifndef ASSAY_MODEL_PLAN_MEMORY_H
#define ASSAY_MODEL_PLAN_MEMORY_H

#include <stddef.h>

#include "model/plan/net.h"

struct net_bytes {
    /* of one member */
    size_t parameters, gradients, moments; /* moments: two, whatever the optimizer */
    size_t accumulated; /* sums over micro-batches, and the average of weights, where there are */
    size_t state;
    size_t activations; /* values, kept inputs, gradient slots, indices, for `rows` rows */
    size_t workspace;   /* the largest net_workspace() of a node: the nodes share it */
    size_t batch;       /* the gathered batch and its targets, the loss of each row */
    size_t tables;      /* the order of the rows, rates and marks of each step, settings */
    size_t member;      /* the sum of the above */
    size_t shared;      /* the data set on the device, once for all members */
};

/* The most elements of workspace that a convolution or attention over `rows` rows needs on the CPU;
 * 0 for other nodes. A CUDA back end may need more: the trainer asks it (network_bytes). */
size_t net_workspace(const struct net_node *n, size_t rows);

/* The bytes of a plan with buffers for `rows` rows, usually p->buffer_rows. */
void net_plan_bytes(const struct net_plan *p, const struct train_spec *spec,
                    const struct net_data *data, size_t rows, struct net_bytes *ret);

/* The bytes of values, kept inputs, gradient slots and indices for so many rows. It returns a
 * double because callers use it to refuse plans that are too large for a size_t. */
double net_activation_bytes(const struct net_plan *p, double rows);

#endif
