/* The gradient of a micro-step with `train.privacy` (DP-SGD: Abadi et al. 2016).
 *
 * The rows are not those of the epoch's order: each training row is in a batch by chance, with
 * probability q = rows of the batch / training rows, which is what the accountant counts on
 * (model/network/privacy_account.h). The micro-steps of a batch divide the order of the epoch into
 * equal runs, and each draws from its own run. Every row that is drawn has a pass of its own, its
 * gradient is clipped, and the sum of them gets its part of the noise. So the gradient is a
 * function of (seed, micro-step), like any other, and whoever sums up micro-steps needs to know
 * nothing of it.
 *
 * With rows r_s of micro-step s in a batch of L rows:
 *   gradient = (sum of clipped gradients + clip x noise x sqrt(r_s / L) x normal) / r_s
 * The sum over s of r_s / L x gradient is that of the batch, with the whole noise, divided by L. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_PRIVATE_ROWS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_PRIVATE_ROWS_H

#include "model/network/optimizer.h"
#include "trial-runner/train/member.h"

struct private_rows {
    struct network *network; /* borrowed, as the following */
    struct optimizer *optimizer;
    struct buf *sum;         /* [slots, N]: of clipped gradients */
    struct buf *place, *key; /* [slots] I32: where the row is in the epoch's order; of dropout */
    struct buf *one, *clip;  /* [slots]: 1, the largest norm */
    struct buf *not_first;   /* [slots] I32: 0 */
};

/* The back end is that of the network. AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status private_rows_create(struct backend *be, struct network *network,
                                            struct optimizer *optimizer, struct private_rows **ret,
                                            struct as_err *err);
void private_rows_free(struct private_rows *p);
AS_DEFINE_FREEP(struct private_rows, private_rows_free)

/* The bytes of one slot on the device. */
size_t private_rows_bytes(const struct net_plan *plan);

/* Set what a member's document says. */
AS_MUST_CHECK as_status private_rows_join(struct private_rows *p, size_t slot,
                                          const struct train_spec *spec, struct as_err *err);

/* Computes the gradient of one row of a slot into network_gradients(), and adds up its loss. `row`
 * has the tensors `at`, a place in the epoch's order, and `count`, the key of dropout and
 * augmentation; its others are of the micro-step. */
typedef as_status private_pass(void *arg, const struct micro_step *row, struct as_err *err);

/* network_gradients() of the slot = the gradient of micro-step `at` of the member's epoch.
 *   now    of the micro-step */
AS_MUST_CHECK as_status private_rows_gradient(struct private_rows *p, struct backend *lane,
                                              size_t slot, const struct member *m, size_t at,
                                              const struct micro_step *now, private_pass *pass,
                                              void *arg, struct as_err *err);

#endif
