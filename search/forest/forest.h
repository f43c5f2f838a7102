/* A random forest over points: mean and variance of a value, by the trees and their leaves.
 *
 * L. Breiman, "Random forests", 2001; as a model of a sweep after F. Hutter, H. Hoos and K.
 * Leyton-Brown, "Sequential model-based optimization for general algorithm configuration" (SMAC),
 * 2011. Each tree is grown from a bootstrap sample of the rows until its leaves are pure, and each
 * split is the best one of five sixths of the parameters. The mean and the variance at a point are
 * those of a row that is drawn from the leaf of a random tree. */
#ifndef ASSAY_SEARCH_FOREST_FOREST_H
#define ASSAY_SEARCH_FOREST_FOREST_H

#include "search/forest/regression_tree.h"

#define FOREST_TREES 24
#define FOREST_ROWS 1024        /* of a tree, at most: bounds its cost */
#define FOREST_LEAST_SHARE 1e-6 /* of a variance, of that of all rows */

struct forest;

/* Grow the trees.
 *   t    borrowed for the call; n >= 1; its order is not read
 *   r    advanced
 *   ret  owned by the caller
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status forest_grow(const struct tree_rows *t, struct rng *r, struct forest **ret,
                                    struct as_err *err);
void forest_free(struct forest *f);
AS_DEFINE_FREEP(struct forest, forest_free)

/* The mean and the variance at x [d], by the law of total variance over the trees. The variance is
 * at least FOREST_LEAST_SHARE of that of the rows, and above 0. O(trees x their depth). */
void forest_predict(const struct forest *f, const double *x, double *ret_mean,
                    double *ret_variance);

#endif
