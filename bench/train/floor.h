/* The products of matrices that a training step cannot do without, through OpenBLAS and nothing
 * else: what a case of `./dev bench train` is held against. */
#ifndef ASSAY_BENCH_TRAIN_FLOOR_H
#define ASSAY_BENCH_TRAIN_FLOOR_H

#include "model/plan/net.h"

struct floor;

/* The products of one step with `batch` rows: forward, by the weights, and by the input of every
 * linear layer, convolution (as a product of patches) and attention, but not by the data itself.
 * Owned by the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status floor_create(const struct net_plan *plan, size_t batch, struct floor **ret,
                                     struct as_err *err);
void floor_free(struct floor *f);
AS_DEFINE_FREEP(struct floor, floor_free)

/* Rows per second of such steps with so many threads of OpenBLAS, in about 0.1 s. */
double floor_rate(struct floor *f, int threads);

#endif
