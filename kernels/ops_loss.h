/* Losses with their gradients, and the probabilities of predictions. backend.h states the rules
 * of all operations. */
#ifndef ASSAY_KERNELS_OPS_LOSS_H
#define ASSAY_KERNELS_OPS_LOSS_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses ---- */

/* The outputs of a loss. Without `accumulate` they are overwritten, so weight = 1 gives the batch's
 * mean. With weight = B and `accumulate`, loss sums over the rows of an epoch, and the host need
 * not wait after each step. */
struct loss_out {
    struct tensor row_loss; /* [K, B], F32: each row's loss. Required: it is also the workspace */
    struct tensor loss;     /* [K], F32: weight * mean of row_loss (added when accumulate) */
    float weight;
    bool accumulate;
};

struct softmax_ce_args {
    size_t members, batch, classes; /* K, B, C; C >= 1 */
    struct tensor logits;           /* [K, B, C] */
    struct tensor labels;           /* [K or shared, B], I32, each in [0, C) */
    struct tensor smoothing;        /* [K]: label smoothing s in [0, 1]; absent: 0 */
    struct tensor class_weights;    /* [K or shared, C], >= 0; absent: 1 */
    struct tensor dlogits;          /* [K, B, C]; may be logits (in place); absent: forward only */
    float grad_scale;               /* dlogits = grad_scale / B * (softmax - target); usually 1 */
    struct tensor row_class; /* [K, B], I32: argmax of the logits, the first of equals; -1 when
                              * one is NaN. Required */
    struct tensor correct;   /* [K], I32: rows where row_class is the label (added when
                              * out.accumulate) */
    struct tensor top5; /* [K], I32: rows where no logit is NaN and fewer than 5 logits are larger
                         * than the label's (an equal one counts if its class is lower); added
                         * when out.accumulate; absent: not computed */
    struct loss_out out;
};

/* Softmax cross-entropy, forward and backward in one pass. target = (1 - s) onehot + s / C, as in
 * PyTorch. Class weights w work as in PyTorch's CrossEntropyLoss: the loss is sum_c w_c target_c
 * (-log p_c), summed over the rows and divided by the sum of w[label]. row_loss is a row's sum
 * times B / sum w[label]. A label out of range makes its row's loss and gradient NaN, and is not in
 * the sum of weights. If that sum is 0, no row counts and losses and gradients are 0. (PyTorch
 * gives NaN. That would end a trial at its first batch of such classes alone.) */
AS_MUST_CHECK as_status backend_softmax_ce(struct backend *be, const struct softmax_ce_args *a,
                                           struct as_err *err);

struct mse_args {
    size_t members, batch, outputs; /* K, B, O */
    struct tensor pred;             /* [K, B, O] */
    struct tensor target;           /* [K or shared, B, O] */
    struct tensor dpred;            /* [K, B, O]; may be pred (in place); absent: forward only */
    float grad_scale;    /* dpred = grad_scale * 2 / (B O) * (pred - target); usually 1 */
    struct loss_out out; /* row_loss: mean over the O outputs */
};

/* Mean squared error over rows and outputs, forward and backward. */
AS_MUST_CHECK as_status backend_mse(struct backend *be, const struct mse_args *a,
                                    struct as_err *err);

struct huber_args {
    struct mse_args mse; /* as for backend_mse */
    struct tensor delta; /* [K], > 0 */
};

/* Huber's loss as torch.nn.HuberLoss: e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2); the
 * mean over rows and outputs; dpred = grad_scale / (B O) * clamp(e, -delta, delta). */
AS_MUST_CHECK as_status backend_huber(struct backend *be, const struct huber_args *a,
                                      struct as_err *err);

struct bce_args {
    size_t members, batch, outputs; /* K, B, O */
    struct tensor logits;           /* [K, B, O] */
    struct tensor target;           /* [K or shared, B, O], F32 in [0, 1] */
    struct tensor smoothing;        /* [K]: t becomes (1 - s) t + s / 2; absent: 0 */
    struct tensor
        class_weights;     /* [K or shared, 2]: an output's weight is w0 (1 - t) + w1 t, with t as
                                  * given, divided by the mean weight of the batch (mean 0: no
                                  * output counts); absent: 1 */
    struct tensor dlogits; /* [K, B, O]; may be logits; absent: forward only */
    float grad_scale;
    struct tensor row_class; /* [K, B], I32: 1 when the first logit is > 0, else 0; -1 when it is
                              * NaN or O is 0 */
    struct tensor correct;   /* [K], I32: outputs whose logit is not NaN and where (logit > 0) ==
                              * (t > 0.5); added when out.accumulate */
    struct loss_out out;     /* row_loss: mean over the O outputs */
};

/* Binary cross-entropy of sigmoid(logits), the mean over rows and outputs, in the form that never
 * overflows: max(z, 0) - z t + log(1 + exp(-|z|)). dlogits = grad_scale / (B O) * (sigmoid(z) - t),
 * times the output's weight. */
AS_MUST_CHECK as_status backend_bce(struct backend *be, const struct bce_args *a,
                                    struct as_err *err);

struct weigh_rows_args {
    size_t members, batch, width; /* K, B, D; D is not read without `gradient` */
    struct tensor weights;        /* [K or shared, B], >= 0 */
    struct tensor gradient;       /* [K, B, D], in place; absent: none */
    struct loss_out out;          /* row_loss: in place */
};

/* Weigh the rows of a loss after it was computed: row_loss[r] and the gradient of row r become w[r]
 * times what they were, and loss is that of the new row_loss. A row with weight 0 has a loss and a
 * gradient of 0, also if they were not finite. */
AS_MUST_CHECK as_status backend_weigh_rows(struct backend *be, const struct weigh_rows_args *a,
                                           struct as_err *err);

#ifdef __cplusplus
}
#endif

#endif
