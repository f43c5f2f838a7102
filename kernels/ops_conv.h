/* Operations on images: convolution, pooling, batch normalisation. backend.h states the rules of
 * all operations. */
#ifndef ASSAY_KERNELS_OPS_CONV_H
#define ASSAY_KERNELS_OPS_CONV_H

#include "kernels/ops_dense.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Images are [B, H, W, C]: channels last. A convolution's weight is [KH, KW, C / groups, O], so
 * that groups = 1 is the matrix [KH KW C, O] of a linear layer over patches. Padding is zeros, the
 * same on both sides; output height = (H + 2 pad - KH) / stride + 1, rounded down. H and W are at
 * least 1; B and C may be 0. AS_E_INVAL names the impossible size; AS_E_TOO_LARGE: a size
 * is past INT_MAX, or a product overflows. */

/* ---- convolution ---- */

struct conv_args {
    size_t members, batch;                  /* K, B */
    size_t height, width, channels;         /* H, W, C of the input */
    size_t out;                             /* O, channels of the output */
    size_t kernel_h, kernel_w, stride, pad; /* kernel >= 1, stride >= 1, pad < kernel */
    size_t groups;                          /* 1, or C (depthwise; O is then a multiple of C, and
                                             * output o reads channel o / (O / C)) */
    struct tensor x;                        /* [K or shared, B, H, W, C] */
    struct tensor w;                        /* [K or shared, KH, KW, C / groups, O] */
    struct tensor b;                        /* [K or shared, O]; absent: no bias */
    struct tensor work;                     /* [K, backend_conv_work()] F32; its contents before and
                                             * after mean nothing. May be absent if that is 0 */
};

/* Length of the output's side: 0 when the kernel is larger than the padded input. */
static inline size_t conv_out_len(size_t len, size_t kernel, size_t stride, size_t pad)
{
    return len + 2 * pad < kernel ? 0 : (len + 2 * pad - kernel) / stride + 1;
}

/* Elements of workspace per member that forward and backward of these sizes need on this back end.
 * On the host: the weight's own size and at most some 16 MiB, for any batch. The call does not read
 * the tensors. It returns 0 for sizes that forward and backward refuse. */
size_t backend_conv_work(const struct backend *be, const struct conv_args *a);

/* A text for people that says which code runs convolutions: "own", or on cuda with
 * ASSAY_CUDA_CONV=cudnn the version of cuDNN, and how many distinct shapes of operations cuDNN and
 * our own code run, or the reason why our own code runs them all. With bf16 cuDNN rounds factors to
 * TF32, not to bfloat16. A view until the next convolution. */
const char *backend_conv_path(const struct backend *be);

/* y = act(x * w + b), the cross-correlation that the field calls convolution.
 *   y   [K, B, OH, OW, O]; z as in backend_linear_forward. */
AS_MUST_CHECK as_status backend_conv_forward(struct backend *be, const struct conv_args *a,
                                             act_kind act, struct tensor y, struct tensor z,
                                             struct as_err *err);

struct conv_grads {
    struct tensor dy; /* [K, B, OH, OW, O]: gradient by the output before the activation: the
                       * output of backend_act_backward */
    struct tensor dx; /* [K, B, H, W, C], overwritten; absent: not computed */
    struct tensor dw; /* as w, overwritten; absent: not computed */
    struct tensor db; /* [K, O], overwritten; absent: not computed */
};

/* The gradients of backend_conv_forward. `a` as in the forward call (b is not read). The outputs
 * must not overlap the inputs or one another. */
AS_MUST_CHECK as_status backend_conv_backward(struct backend *be, const struct conv_args *a,
                                              const struct conv_grads *g, struct as_err *err);

/* ---- pooling ---- */

typedef enum pool_kind { POOL_MAX, POOL_AVG } pool_kind;

struct pool_args {
    size_t members, batch, height, width, channels;
    size_t kernel_h, kernel_w, stride, pad; /* pad <= kernel / 2 */
    pool_kind kind;
    struct tensor index; /* [K, B, OH, OW, C], I32, max: the place of the maximum, y * W + x of the
                          * input, the first of equals; NaN wins. Absent for avg */
};

/* x [K or shared, B, H, W, C] to y [K, B, OH, OW, C]. A maximum ignores padding. In an
 * average padding counts as 0, and the divisor is the size of the whole kernel. */
AS_MUST_CHECK as_status backend_pool_forward(struct backend *be, const struct pool_args *a,
                                             struct tensor x, struct tensor y, struct as_err *err);

/* dx [K, B, H, W, C], overwritten, from dy [K, B, OH, OW, C]. */
AS_MUST_CHECK as_status backend_pool_backward(struct backend *be, const struct pool_args *a,
                                              struct tensor dy, struct tensor dx,
                                              struct as_err *err);

/* ---- batch normalisation (Ioffe and Szegedy 2015) ---- */

struct batch_norm_args {
    size_t members, rows, channels; /* K; R = batch * height * width; C */
    struct tensor x;                /* [K, R, C] */
    struct tensor gamma, beta;      /* [K, C] */
    struct tensor mean, inv_std;    /* [K, C]: of the batch; forward writes, backward reads */
    float eps;
    act_kind act;    /* none or relu, after the scale */
    struct tensor y; /* [K, R, C]: forward writes; backward reads it when act is relu. May be x only
                      * where no backward pass follows */
};

/* Training: y = act((x - mean) * inv_std * gamma + beta), inv_std = 1 / sqrt(var + eps), var the
 * biased variance. With 0 rows var is 0 and the running statistics stay. running_mean and
 * running_var [K, C] are both present or both absent. They become (1 - momentum) * old + momentum *
 * new, with the unbiased variance (for 1 row: the biased one), as in PyTorch. */
AS_MUST_CHECK as_status backend_batch_norm_train(struct backend *be,
                                                 const struct batch_norm_args *a, float momentum,
                                                 struct tensor running_mean,
                                                 struct tensor running_var, struct as_err *err);

/* Evaluation: with the running mean and variance; a->mean and a->inv_std are not used. */
AS_MUST_CHECK as_status backend_batch_norm_eval(struct backend *be, const struct batch_norm_args *a,
                                                struct tensor running_mean,
                                                struct tensor running_var, struct as_err *err);

/* dy [K, R, C]: gradient by y (after act). y may be absent when act is none. dx [K, R, C] may be
 * dy. dgamma, dbeta [K, C], overwritten. */
AS_MUST_CHECK as_status backend_batch_norm_backward(struct backend *be,
                                                    const struct batch_norm_args *a,
                                                    struct tensor dy, struct tensor dx,
                                                    struct tensor dgamma, struct tensor dbeta,
                                                    struct as_err *err);

#ifdef __cplusplus
}
#endif

#endif
