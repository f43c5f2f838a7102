/* Padding. The hidden widths of an mlp may be padded with zero weights, so that members whose
 * widths differ by at most 1.5x share one arena: zero weights into and out of a unit stay exactly
 * zero under every optimizer, because relu(0) = tanh(0) = gelu(0) = 0 makes each of their gradients
 * 0 * g. Batch normalisation (beta moves) and dropout (its draws are numbered by place) would break
 * that: with either, widths are exact. Numbers on disk are always in the member's own shape. */
#ifndef ASSAY_MODEL_PLAN_PAD_H
#define ASSAY_MODEL_PLAN_PAD_H

#include <stdbool.h>
#include <stddef.h>

#include "model/plan/net.h"
#include "base/status.h"

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

#endif
