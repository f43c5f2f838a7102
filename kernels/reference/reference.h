/* The plain operations, one function per row of the table. What they compute is told in backend.h.
 */
#ifndef ASSAY_KERNELS_REFERENCE_H
#define ASSAY_KERNELS_REFERENCE_H

#include "kernels/backend_priv.h"

as_status ref_gather(struct backend *be, const struct gather_args *a, struct as_err *err);
as_status ref_linear_forward(struct backend *be, const struct linear_args *a, act_kind act,
                             struct tensor y, struct tensor z, struct as_err *err);
as_status ref_linear_backward(struct backend *be, const struct linear_args *a,
                              const struct linear_grads *g, struct as_err *err);
as_status ref_act_backward(struct backend *be, const struct act_args *a, struct as_err *err);
as_status ref_add(struct backend *be, const struct add_args *a, struct as_err *err);
as_status ref_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err);
as_status ref_softmax_ce(struct backend *be, const struct softmax_ce_args *a, struct as_err *err);
as_status ref_mse(struct backend *be, const struct mse_args *a, struct as_err *err);
as_status ref_softmax(struct backend *be, const struct softmax_args *a, struct as_err *err);
as_status ref_grad_stats(struct backend *be, const struct grad_stats_args *a, struct as_err *err);
as_status ref_grad_clip(struct backend *be, const struct grad_clip_args *a, struct as_err *err);
as_status ref_optimize(struct backend *be, const struct opt_args *a, struct as_err *err);

#endif
