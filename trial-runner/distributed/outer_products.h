/* Gradients of linear layers that travel as factors.
 *
 * The gradient by a layer's weight [rows, cols] is the sum of outer products of the layer's inputs
 * and of the gradients by its outputs, one for each row of the batch. Where a batch has few rows,
 * these factors are fewer numbers than the gradient: each rank sends those of its shards to all
 * others, and every rank computes the products of all shards and adds them up in the order of the
 * tree (sufficient factor broadcasting: Xie et al. 2015, Petuum; Zhang et al. 2017, Poseidon). So
 * the sum has the bits of `allreduce: tree`, with any number of ranks.
 *
 * Which layers travel so depends on the document, the model and the rows of the batch alone, and
 * not on the ranks: a step that is done again in another world goes on with what was computed.
 * What a rank sends: for each of its shards 4 pairs (rows + cols) bytes to each other rank, where
 * the sum of the whole gradient sends 8 (R - 1)/R rows cols (docs/decisions/8020). */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_OUTER_PRODUCTS_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_OUTER_PRODUCTS_H

#include "trial-runner/distributed/shard_sum.h"

struct outer_products;

/* For vectors of n numbers. setup->replica is borrowed. *ret is NULL if the document wants no
 * factors, or no tensor has them. ret: outer_products_free(). AS_E_NOMEM. */
AS_MUST_CHECK as_status outer_products_create(const struct strategy_setup *setup, size_t n,
                                              struct outer_products **ret, struct as_err *err);
void outer_products_free(struct outer_products *o);
AS_DEFINE_FREEP(struct outer_products, outer_products_free)

/* A step begins, of the batch at the replica's position, or goes on in another world: then the
 * factors of this rank's shards stay. AS_E_NOMEM. */
AS_MUST_CHECK as_status outer_products_begin(struct outer_products *o, struct shard_step at,
                                             struct as_err *err);

/* As replica_sink.factors, for a shard of the step. */
bool outer_products_place(const struct outer_products *o, uint32_t shard, size_t first,
                          size_t pairs, float **ret_left, float **ret_right);

/* Numbers [first, first + n) of a vector that are at `at` in one that has only what travels as it
 * is: all but the layers of this step. */
struct number_range {
    size_t first, n, at;
};
/* In order; a view until the next begin. */
const struct number_range *outer_products_rest(const struct outer_products *o, size_t *ret_n);
/* How many numbers they are together. */
size_t outer_products_rest_n(const struct outer_products *o);

/* sum [n]: has the rest, summed, in its first numbers; they move to their places, and the sums of
 * the layers come between them. The factors of this rank's run are there.
 * AS_E_UNAVAILABLE: a rank is lost; the step can be repeated in the next world, then `sum` is
 * undefined. */
AS_MUST_CHECK as_status outer_products_sum(struct outer_products *o, struct coll *c,
                                           struct backend *lane, float *sum, struct as_err *err);

#endif
