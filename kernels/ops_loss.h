/* Losses with their gradients, and the probabilities of predictions. See backend.h for what holds
 * of all operations. */
#ifndef ASSAY_KERNELS_OPS_LOSS_H
#define ASSAY_KERNELS_OPS_LOSS_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- losses ---- */

/* Where a loss leaves its figures. With `accumulate` false these are overwritten, so weight = 1
 * gives the batch's mean; with weight = B and accumulate, loss sums over the rows of an epoch and
 * needs no wait per step. */
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
    struct tensor top5; /* [K], I32: rows where fewer than 5 classes are larger than the label's
                         * logit (equal ones count when their number is lower) and no logit is
                         * NaN; added when out.accumulate; absent: not wanted */
    struct loss_out out;
};

/* Softmax cross-entropy, forward and backward in one pass. target = (1 - s) onehot + s / C, as
 * PyTorch's. With class weights w each row counts as PyTorch's CrossEntropyLoss has it: the loss is
 * sum_c w_c target_c (-log p_c) summed over the rows and divided by the sum of w[label], so
 * row_loss is that times B / sum w[label]. A label out of range makes its row's loss and gradient
 * NaN, and is not in that sum. Where the sum is 0 no row counts: losses and gradients are 0 (NaN in
 * PyTorch, which would end a trial at its first batch of such classes alone). */
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
    struct tensor class_weights; /* [K or shared, 2]: an output counts w0 (1 - t) + w1 t, with t as
                                  * given, divided by the batch's mean of that (0: no output
                                  * counts); absent: 1 */
    struct tensor dlogits;       /* [K, B, O]; may be logits; absent: forward only */
    float grad_scale;
    struct tensor row_class; /* [K, B], I32: 1 when the first logit is > 0, else 0; -1 when it is
                              * NaN or there is none */
    struct tensor correct;   /* [K], I32: outputs whose logit is not NaN and where (logit > 0) ==
                              * (t > 0.5); added when out.accumulate */
    struct loss_out out;     /* row_loss: mean over the O outputs */
};

/* Binary cross-entropy of sigmoid(logits), the mean over rows and outputs, in the form that never
 * overflows: max(z, 0) - z t + log(1 + exp(-|z|)). dlogits = grad_scale / (B O) * (sigmoid(z) - t),
 * times the output's weight. */
AS_MUST_CHECK as_status backend_bce(struct backend *be, const struct bce_args *a,
                                    struct as_err *err);

struct softmax_args {
    size_t members, batch, classes;
    struct tensor logits; /* [K, B, C] */
    struct tensor probs;  /* [K, B, C]; may be logits (in place) */
};

/* Softmax over the classes, for predictions. */
AS_MUST_CHECK as_status backend_softmax(struct backend *be, const struct softmax_args *a,
                                        struct as_err *err);

struct sigmoid_args {
    size_t members, n;
    struct tensor logits; /* [K, n] */
    struct tensor probs;  /* [K, n]; may be logits (in place) */
};

/* 1 / (1 + exp(-z)), for predictions. */
AS_MUST_CHECK as_status backend_sigmoid(struct backend *be, const struct sigmoid_args *a,
                                        struct as_err *err);

#ifdef __cplusplus
}
#endif

#endif
