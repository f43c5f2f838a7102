/* The matrix products of a training step, through OpenBLAS and nothing else: the floor of a case of
 * `./dev bench train`. */
#ifndef ASSAY_BENCH_TRAIN_FLOOR_H
#define ASSAY_BENCH_TRAIN_FLOOR_H

#include "model/plan/net.h"

struct floor;

/* The products of one step with `batch` rows: forward, the gradient by the weights, and the
 * gradient by the input, of every linear layer, convolution (as a product of patches) and
 * attention. The first layer has no gradient by the input. Owned by the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status floor_create(const struct net_plan *plan, size_t batch, struct floor **ret,
                                     struct as_err *err);
void floor_free(struct floor *f);
AS_DEFINE_FREEP(struct floor, floor_free)

/* Rows per second of such steps with so many threads of OpenBLAS, in about 0.1 s. */
double floor_rate(struct floor *f, int threads);

/* Processor time of a row in one thread, in microseconds: the median of 5 times 20 ms. */
double floor_cpu_us(struct floor *f);

#endif
