/* Are an operation's arguments sound? One function per operation; backend.c calls them before the
 * table, so that no back end has to.
 *
 * AS_E_INVAL     a tensor is missing, of another back end or kind, too small for its shape, or
 *                shared where it is written
 * AS_E_TOO_LARGE a dimension is past 2^31 - 1, or a product overflows */
#ifndef ASSAY_KERNELS_CHECK_H
#define ASSAY_KERNELS_CHECK_H

#include "kernels/backend_priv.h"

AS_MUST_CHECK as_status check_gather(struct backend *be, const struct gather_args *a,
                                     struct as_err *err);
AS_MUST_CHECK as_status check_linear_forward(struct backend *be, const struct linear_args *a,
                                             act_kind act, struct tensor y, struct tensor z,
                                             struct as_err *err);
AS_MUST_CHECK as_status check_linear_backward(struct backend *be, const struct linear_args *a,
                                              const struct linear_grads *g, struct as_err *err);
AS_MUST_CHECK as_status check_act_backward(struct backend *be, const struct act_args *a,
                                           struct as_err *err);
AS_MUST_CHECK as_status check_dropout(struct backend *be, const struct dropout_args *a,
                                      struct as_err *err);
AS_MUST_CHECK as_status check_softmax_ce(struct backend *be, const struct softmax_ce_args *a,
                                         struct as_err *err);
AS_MUST_CHECK as_status check_mse(struct backend *be, const struct mse_args *a, struct as_err *err);
AS_MUST_CHECK as_status check_softmax(struct backend *be, const struct softmax_args *a,
                                      struct as_err *err);
AS_MUST_CHECK as_status check_grad_stats(struct backend *be, const struct grad_stats_args *a,
                                         struct as_err *err);
AS_MUST_CHECK as_status check_grad_clip(struct backend *be, const struct grad_clip_args *a,
                                        struct as_err *err);
AS_MUST_CHECK as_status check_sgd(struct backend *be, const struct sgd_args *a, struct as_err *err);
AS_MUST_CHECK as_status check_adamw(struct backend *be, const struct adamw_args *a,
                                    struct as_err *err);

#endif
