/* The plain operations, one function for each row of the table. The ops_X.h state what they
 * compute. */
#ifndef ASSAY_KERNELS_REFERENCE_REFERENCE_H
#define ASSAY_KERNELS_REFERENCE_REFERENCE_H

#include "kernels/backend_priv.h"

/* act(z), in double. */
double ref_activate(act_kind act, double z);

as_status ref_gather(struct backend *be, const struct gather_args *a, struct as_err *err);
as_status ref_gather_bytes(struct backend *be, const struct gather_bytes_args *a,
                           struct as_err *err);
as_status ref_columns(struct backend *be, const struct columns_args *a, struct as_err *err);
as_status ref_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                             struct tensor y, struct tensor z, struct as_err *err);
as_status ref_linear_backward(struct backend *be, const struct linear_args *a,
                              const struct linear_grads *g, struct as_err *err);
as_status ref_act_backward(struct backend *be, const struct act_args *a, struct as_err *err);
as_status ref_add(struct backend *be, const struct add_args *a, struct as_err *err);
as_status ref_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err);
as_status ref_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err);
as_status ref_mse(struct backend *be, const struct mse_args *a, struct as_err *err);
as_status ref_grad_stats(struct backend *be, const struct grad_stats_args *a, struct as_err *err);
as_status ref_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err);
as_status ref_optimize(struct backend *be, const struct opt_args *a, struct as_err *err);
as_status ref_tick(struct backend *be, const struct tick_args *a, struct as_err *err);
as_status ref_augment(struct backend *be, const struct augment_args *a, struct as_err *err);
as_status ref_layer_norm_forward(struct backend *be, const struct layer_norm_args *a,
                                 struct tensor y, struct as_err *err);
as_status ref_layer_norm_backward(struct backend *be, const struct layer_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err);
as_status ref_embedding_forward(struct backend *be, const struct embedding_args *a, struct tensor y,
                                struct as_err *err);
as_status ref_embedding_backward(struct backend *be, const struct embedding_args *a,
                                 struct tensor dy, struct tensor dtable, struct tensor dpositions,
                                 struct as_err *err);
size_t ref_attention_work(const struct backend *be, const struct attention_args *a);
as_status ref_attention_forward(struct backend *be, const struct attention_args *a,
                                struct as_err *err);
as_status ref_attention_backward(struct backend *be, const struct attention_args *a,
                                 struct tensor dout, struct tensor dqkv, struct as_err *err);
as_status ref_huber(struct backend *be, const struct huber_args *a, struct as_err *err);
as_status ref_bce(struct backend *be, const struct bce_args *a, struct as_err *err);
as_status ref_weigh_rows(struct backend *be, const struct weigh_rows_args *a, struct as_err *err);
as_status ref_grad_accumulate(struct backend *be, const struct grad_accumulate_args *a,
                              struct as_err *err);
as_status ref_ema(struct backend *be, const struct ema_args *a, struct as_err *err);

/* loss[k] (+)= weight * mean of the rows, in their order: the end of every loss (loss.c). */
void ref_reduce_rows(const struct loss_out *o, size_t k, size_t batch);

size_t ref_conv_work(const struct backend *be, const struct conv_args *a);
as_status ref_conv_forward(struct backend *be, const struct conv_args *a, act_kind act,
                           struct tensor y, struct tensor z, struct as_err *err);
as_status ref_conv_backward(struct backend *be, const struct conv_args *a,
                            const struct conv_grads *g, struct as_err *err);
as_status ref_pool_forward(struct backend *be, const struct pool_args *a, struct tensor x,
                           struct tensor y, struct as_err *err);
as_status ref_pool_backward(struct backend *be, const struct pool_args *a, struct tensor dy,
                            struct tensor dx, struct as_err *err);
as_status ref_batch_norm_train(struct backend *be, const struct batch_norm_args *a, float momentum,
                               struct tensor running_mean, struct tensor running_var,
                               struct as_err *err);
as_status ref_batch_norm_eval(struct backend *be, const struct batch_norm_args *a,
                              struct tensor running_mean, struct tensor running_var,
                              struct as_err *err);
as_status ref_batch_norm_backward(struct backend *be, const struct batch_norm_args *a,
                                  struct tensor dy, struct tensor dx, struct tensor dgamma,
                                  struct tensor dbeta, struct as_err *err);

#endif
