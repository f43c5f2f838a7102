/* Growing one extremely randomised tree.
 *
 * At each node inputs are drawn, without replacement, until `candidates` of them differ among the
 * node's rows. Each gets one split at random: a number uniform between the smallest and the largest
 * value; a category a random set of categories, not all and not none of those that occur. Rows
 * with a missing value go to the side where they gain more. The candidate that gains most is taken:
 * gain is what the split takes off the weighted sum of squares of the targets, which for classes
 * is the Gini impurity. Nodes are split until they are pure, too light or too deep, or no input
 * differs.
 *
 * All sums are in double in the order of the rows, and a tree draws from its own stream of random
 * numbers, so it depends on its arguments alone. */
#ifndef ASSAY_MODEL_EXTRA_TREES_EXTRA_GROW_H
#define ASSAY_MODEL_EXTRA_TREES_EXTRA_GROW_H

#include "base/mem.h"
#include "base/rng.h"
#include "model/extra-trees/extra_forest.h"

/* Rows to learn from; borrowed. */
struct extra_rows {
    const float *x; /* [inputs, n]: one input after another; a missing value is NaN */
    size_t n;
    struct extra_shape shape; /* outputs: 1 for two classes, else one for each class or target */
    const int32_t *labels;    /* [n] classes; NULL: numbers */
    const float *targets;     /* [n, outputs]; NULL: classes */
    const float *weights;     /* [n], >= 0; NULL: all 1. Rows of weight 0 are left out */
};

struct extra_limits {
    size_t max_depth;       /* 0: none */
    double min_leaf_weight; /* least sum of weights of a leaf */
    size_t candidates;      /* inputs that a split is chosen from, at least 1 */
    double row_share;       /* (0, 1]: each row is taken with this probability */
};

/* A tree that has grown. Leaves of one class have its number as their row of values; the others
 * count from extra_classes() on. */
struct extra_tree {
    struct extra_node *nodes;
    float *values; /* [n_values, outputs] */
    uint32_t *words;
    size_t n_nodes, n_values, n_words;
    double *splits; /* [3, inputs]: splits, gains, covers as of struct extra_forest */
};

void extra_tree_done(struct extra_tree *t); /* a zeroed one is fine */

/* How many classes a leaf may be pure in; 0: numbers. */
static inline size_t extra_classes(const struct extra_rows *rows)
{
    return !rows->labels ? 0 : rows->shape.outputs == 1 ? 2 : rows->shape.outputs;
}

struct extra_grower; /* memory for one tree at a time */

/* AS_E_NOMEM. Owned by the caller. */
AS_MUST_CHECK as_status extra_grower_create(const struct extra_rows *rows,
                                            struct extra_grower **ret, struct as_err *err);
void extra_grower_free(struct extra_grower *g);
AS_DEFINE_FREEP(struct extra_grower, extra_grower_free)

/* Grow a tree for the rows of extra_grower_create(), which are still there.
 *   rng  its stream of random numbers
 *   ret  owned by the caller
 * Without a row of weight above 0 the tree is one leaf of zeros. AS_E_NOMEM.
 * O(rows * candidates * depth). */
AS_MUST_CHECK as_status extra_grow(struct extra_grower *g, const struct extra_limits *limits,
                                   struct rng *rng, struct extra_tree *ret, struct as_err *err);

#endif
