/* What a network is made of, before any of it exists: layers with their shapes, parameter tensors,
 * FLOPs and bytes, from a train document and what the data looks like.
 *
 * Pure: the server asks it for the shape signature and the memory of a trial, the trainer executes
 * it (model/network/network.h). A plan is a list of nodes in order; a node reads the values of
 * nodes before it. Node 0 is the input, the last node holds the outputs.
 *
 * Padding. The hidden widths of an mlp may be padded with zero weights, so that members whose
 * widths differ by at most 1.5x share one arena: zero weights into and out of a unit stay exactly
 * zero under every optimizer, because relu(0) = tanh(0) = gelu(0) = 0 makes each of their gradients
 * 0 * g. Batch normalisation (beta moves) and dropout (its draws are numbered by place) would break
 * that: with either, widths are exact. Numbers on disk are always in the member's own shape. */
#ifndef ASSAY_MODEL_PLAN_PLAN_H
#define ASSAY_MODEL_PLAN_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "base/mem.h"
#include "model/document/train_spec.h"
#include "base/status.h"
#include "base/str.h"

/* ---- the data, as a network sees it ---- */

typedef enum net_input { NET_TABLE, NET_IMAGES, NET_TOKENS } net_input;

struct net_data {
    net_input kind;
    dataset_task task;
    size_t rows;           /* of the whole data set; 0: not known (batches are not clipped) */
    size_t numeric;        /* table: columns of numbers, indicators of missing values counted */
    size_t n_categories;   /* table: columns of categories */
    size_t category_slots; /* table: inputs that these are one-hot (dataset.h) */
    size_t height, width, channels; /* images */
    size_t
        pixel_bytes; /* images, of a value on the device: 1 where the format has bytes only, else 4,
                      * which is the most that it may be: what is in a file is not known here */
    size_t vocab;    /* tokens */
    size_t outputs;  /* classes; targets of regression; tokens: vocab. Of each row, or token */
};

/* From what the data set's record says. */
struct net_data net_data_of(const struct dataset_info *info);

/* Do the trial's batches go through augmentation, if only with strengths of 0? */
static inline bool net_augments(const struct train_spec *spec, net_input input)
{
    return input == NET_IMAGES && spec->augment.given;
}

/* ---- nodes ---- */

typedef enum net_op {
    NET_INPUT,      /* the batch as it comes */
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

/* Of one row: height x width places of `channels` numbers, channels last. A vector is 1 x 1 x D, a
 * sequence 1 x T x D. */
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

/* Where a node's backward pass reads and writes: numbers of gradient slots (net_plan.slots). A slot
 * is used again as soon as nobody needs what is in it. */
struct net_grad {
    int dy;       /* by the node's output */
    int pre;      /* by what it was before the activation; dy when in place or without one */
    int dx;       /* by `from`, as the operation writes it; NET_NO_SLOT: not wanted */
    int old, sum; /* `from` had a gradient already in `old`: old + dx goes to sum. Else sum = dx */
    int old2, sum2; /* NET_ADD: the same for `with` */
};

struct net_node {
    net_op op;
    size_t from, with; /* nodes read; NET_NONE */
    struct net_shape in, out;
    net_act act;   /* of linear, conv, batch norm, add */
    bool in_place; /* dropout: its value is in its source's buffer */
    bool keeps_z;  /* linear, conv with gelu: the input of the activation is kept too */
    size_t kept_row, kept_member; /* elements kept for the way back beside value and z, of each row
                                   * (and of each member): indices of a maximum, means, deviations,
                                   * log-sums of attention */
    size_t kernel_h, kernel_w, stride, pad, groups; /* conv, pools */
    size_t heads;                                   /* attention */
    uint32_t layer;                                 /* dropout: which of the model, from 0 */
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
    uint64_t stream;  /* of its draws: counts the normal tensors */
};

/* ---- the plan ---- */

#define NET_HELD_ROWS ((size_t)256)

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

struct net_plan {
    net_input input;
    size_t n_nodes;
    struct net_node *nodes;
    size_t n_tensors; /* parameters, in order of offset */
    struct net_tensor *tensors;
    size_t n_states;
    struct net_tensor *states;
    size_t n_params, n_state; /* numbers of one member */
    size_t n_slots;
    size_t *slots;                  /* [n_slots]: elements per row of each gradient slot */
    size_t outputs;                 /* of each row, or of each token of a row */
    size_t tokens;                  /* per row: 1; tokens: the context */
    size_t n_categories, embedding; /* NET_CATEGORIES; else 0 */
    size_t max_rows;                /* the micro-batch, at most the training rows */
    size_t buffer_rows; /* what buffers are made for: max_rows; where rows are cheap (mlp, linear)
                         * at least NET_HELD_ROWS or all that are held out, for validation */
    size_t n_hidden;    /* mlp: widths that may be padded (0 when none may) */
    size_t hidden[TRAIN_MAX_LAYERS];
    double flops_forward; /* of one row: 2 per multiply-add of products and convolutions, 1 per
                           * element elsewhere */
    double flops_train;   /* of one row: forward and backward */
};

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
void net_plan_free(struct net_plan *p);
AS_DEFINE_FREEP(struct net_plan, net_plan_free)

/* ---- padding ---- */

/* The largest width of w's bucket: the next of 1, 2, 3, 4, 6, 8, 12, 16, … (powers of two and 1.5
 * times them), so that the usual widths are not padded at all, and none by more than 1.5x. */
size_t net_width_bucket(size_t w);

/* The plan whose hidden widths are the larger of a's and b's, layer by layer: both fit into it.
 * Owned by the caller. AS_E_INVAL when they differ in anything but padding. AS_E_NOMEM. */
AS_MUST_CHECK as_status net_plan_merge(const struct net_plan *a, const struct net_plan *b,
                                       struct net_plan **ret, struct as_err *err);

/* p with every hidden width at the top of its bucket: what a group of this signature can need. */
AS_MUST_CHECK as_status net_plan_widest(const struct net_plan *p, struct net_plan **ret,
                                        struct as_err *err);

/* Does a member of shape `own` fit into `padded` (equal but for smaller hidden widths)? */
bool net_plan_fits(const struct net_plan *own, const struct net_plan *padded);

/* Between a member's own numbers [own->n_params] and its place in an arena [padded->n_params]. What
 * lies in between is set to 0 by spread and not looked at by collect. */
void net_plan_spread(const struct net_plan *own, const struct net_plan *padded, const float *src,
                     float *dst);
void net_plan_collect(const struct net_plan *own, const struct net_plan *padded, const float *src,
                      float *dst);

/* ---- memory ---- */

/* Numbers of workspace that a convolution or attention over `rows` rows takes at most on the host;
 * 0 for other nodes. A CUDA back end may take more: model_bytes() of the trainer asks it. */
size_t net_workspace(const struct net_node *n, size_t rows);

/* Bytes with buffers for `rows` rows, usually p->buffer_rows. */
void net_plan_bytes(const struct net_plan *p, const struct train_spec *spec,
                    const struct net_data *data, size_t rows, struct net_bytes *ret);

/* ---- the shape signature ---- */

/* Trials of one data set with equal signatures may share a group: their tensors have equal shapes
 * (mlp widths: in one bucket), and micro-batch, loss, precision, split, standardisation,
 * activation, and the presence of augmentation and of an average of weights agree. Of an optimizer,
 * a schedule, rates, seeds, epochs and the batch size it says nothing. Appends text to `out`;
 * str_check() it. `spec` must fit the data (train_spec_check). */
void net_signature(const struct train_spec *spec, const struct net_data *data, struct str *out);

#endif
