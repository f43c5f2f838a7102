/* The types of a plan. A plan is a list of nodes in order; a node reads the values of nodes before
 * it. Node 0 is the input, the last node has the outputs. */
#ifndef ASSAY_MODEL_PLAN_NET_H
#define ASSAY_MODEL_PLAN_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/document/train_spec.h"
#include "model/plan/net_data.h"

/* ---- nodes ---- */

typedef enum net_op {
    NET_INPUT,      /* the batch */
    NET_CATEGORIES, /* [B, numeric] and codes [B, n] to [B, numeric + n * embedding] */
    NET_LINEAR,     /* over the channels of each place (or of the whole image, flattened) */
    NET_CONV,
    NET_POOL_MAX,
    NET_POOL_AVG,
    NET_BATCH_NORM,
    NET_ADD, /* act(from + with) */
    NET_DROPOUT,
    NET_EMBEDDING, /* tokens and positions */
    NET_LAYER_NORM,
    NET_ATTENTION /* causal, over [T, 3 heads, head_dim] */
} net_op;

/* The shape of one row: height x width places of `channels` numbers, channels last. A vector is
 * 1 x 1 x D, a sequence 1 x T x D. */
struct net_shape {
    size_t height, width, channels;
};

static inline size_t net_shape_elements(struct net_shape s)
{
    return s.height * s.width * s.channels;
}

typedef enum net_act { NET_ACT_NONE, NET_ACT_RELU, NET_ACT_TANH, NET_ACT_GELU } net_act;

#define NET_NONE ((size_t)-1)
#define NET_NO_SLOT (-1)
#define NET_OUTPUT_SLOT (-2) /* the outputs' own buffer, where the loss leaves its gradient */

/* The gradient slots (indices of net_plan.slots) that a node's backward pass reads and writes. A
 * slot is used again as soon as no node needs its content. */
struct net_grad {
    int dy;       /* the gradient with respect to the node's output */
    int pre;      /* with respect to the activation's input; dy if in place or no activation */
    int dx;       /* with respect to `from`, as the operation writes it; NET_NO_SLOT: not needed */
    int old, sum; /* if `from` already has a gradient in `old`: sum = old + dx. Else sum = dx */
    int old2, sum2; /* NET_ADD: the same for `with` */
};

struct net_node {
    net_op op;
    size_t from, with; /* nodes read; NET_NONE */
    struct net_shape in, out;
    net_act act;   /* of linear, conv, batch norm, add */
    bool in_place; /* dropout: its value is in the buffer of its source */
    bool keeps_z;  /* linear, conv with gelu: the input of the activation is kept, too */
    size_t kept_row, kept_member; /* elements kept for the backward pass in addition to value and z,
                                   * for each row (and each member): indices of a maximum, means,
                                   * deviations, log-sums of attention */
    size_t kernel_h, kernel_w, stride, pad, groups; /* conv, pools */
    size_t heads;                                   /* attention */
    uint32_t layer;                                 /* dropout: its index in the model, from 0 */
    size_t weight, bias; /* parameter tensors: weight / gamma / table; bias / beta / positions */
    size_t state;        /* batch norm: state tensor of the mean; the variance follows it */
    struct net_grad grad;
};

/* ---- tensors ---- */

typedef enum net_init { NET_INIT_ZERO, NET_INIT_ONE, NET_INIT_NORMAL } net_init;

#define NET_NAME_MAX 48
struct net_tensor {
    char name[NET_NAME_MAX]; /* "layers.0.weight"; unique */
    size_t offset, count;    /* in the member's parameters (or state) */
    size_t n_dims, dims[4];
    size_t fan_in;
    net_init init;
    double deviation; /* of NET_INIT_NORMAL */
    uint64_t stream;  /* of its draws: its index among the normal tensors */
};

/* ---- the plan ---- */

#define NET_HELD_ROWS ((size_t)256)

struct net_plan {
    net_input input;
    size_t n_nodes;
    struct net_node *nodes;
    size_t n_tensors; /* parameters, in order of offset */
    struct net_tensor *tensors;
    size_t n_states;
    struct net_tensor *states;
    size_t n_params, n_state; /* numbers of one member */
    bool wants_dx;            /* a part of a network: its input gets a gradient, too */
    int input_slot;           /* the slot with it, after the backward pass; NET_NO_SLOT: none */
    size_t n_slots;
    size_t *slots;                  /* [n_slots]: elements per row of each gradient slot */
    size_t outputs;                 /* of each row, or of each token of a row */
    size_t tokens;                  /* per row: 1; tokens: the context */
    size_t n_categories, embedding; /* NET_CATEGORIES; else 0 */
    size_t max_rows;                /* the micro-batch, at most the training rows */
    size_t buffer_rows; /* rows of the buffers: max_rows; for mlp and linear, where rows are cheap,
                         * at least NET_HELD_ROWS or all held-out rows, for validation */
    size_t n_hidden;    /* mlp: widths that may be padded (0 when none may) */
    size_t hidden[TRAIN_MAX_LAYERS];
    double flops_forward; /* of one row: 2 per multiply-add of products and convolutions, 1 per
                           * element elsewhere */
    double flops_train;   /* of one row: forward and backward */
};

void net_plan_free(struct net_plan *p);
AS_DEFINE_FREEP(struct net_plan, net_plan_free)

#endif
