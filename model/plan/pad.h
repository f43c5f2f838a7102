/* Padding. The hidden widths of an mlp may be padded with zero weights, so that members whose
 * widths differ by at most 1.5x share one arena. Zero weights into and out of a unit stay exactly
 * zero under every optimizer: relu(0) = tanh(0) = gelu(0) = 0, so each of their gradients is 0 * g.
 * Batch normalisation would break that, because its beta changes: with it, widths are exact.
 * Dropout does not, because it numbers its draws by row and unit. Numbers on disk are always in the
 * member's own shape. */
#ifndef ASSAY_MODEL_PLAN_PAD_H
#define ASSAY_MODEL_PLAN_PAD_H

#include <stdbool.h>
#include <stddef.h>

#include "model/plan/net.h"
#include "base/status.h"

/* The largest width of w's bucket: the smallest of 1, 2, 3, 4, 6, 8, 12, 16, … (powers of two, and
 * 1.5 times them) that is at least w. So usual widths are not padded, and none by more than
 * 1.5x. */
size_t net_width_bucket(size_t w);

/* The plan whose hidden widths are the larger of a's and b's in each layer, so that both fit into
 * it. Owned by the caller. AS_E_INVAL if they differ in more than those widths. AS_E_NOMEM. */
AS_MUST_CHECK as_status net_plan_merge(const struct net_plan *a, const struct net_plan *b,
                                       struct net_plan **ret, struct as_err *err);

/* A copy of p with every hidden width at the top of its bucket: every trial of this signature fits
 * into it. */
AS_MUST_CHECK as_status net_plan_widest(const struct net_plan *p, struct net_plan **ret,
                                        struct as_err *err);

/* Does a member of shape `own` fit into `padded`, that is, do they differ only in smaller hidden
 * widths? */
bool net_plan_fits(const struct net_plan *own, const struct net_plan *padded);

/* Copy a member's own numbers [own->n_params] into its place in an arena [padded->n_params], or
 * back. Spread sets the padding to 0; collect ignores it. */
void net_plan_spread(const struct net_plan *own, const struct net_plan *padded, const float *src,
                     float *dst);
void net_plan_collect(const struct net_plan *own, const struct net_plan *padded, const float *src,
                      float *dst);

#endif
