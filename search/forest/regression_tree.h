/* One regression tree over points: it splits the space where the values differ most, and predicts
 * the mean of a leaf.
 *
 * A split of a number is a threshold, drawn between the two neighbouring rows that it parts, so
 * that the trees of a forest differ where no row is (F. Hutter et al., "Algorithm runtime
 * prediction: methods & evaluation", 2014, section 4.3.2). A split of a choice is a set of its
 * values: those that the rows have are cut where their means, in order, differ most (W. Fisher,
 * "On grouping for maximum homogeneity", 1958), and each other value is on a side by chance. */
#ifndef ASSAY_SEARCH_FOREST_REGRESSION_TREE_H
#define ASSAY_SEARCH_FOREST_REGRESSION_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

/* What trees are grown from. Everything borrowed. */
struct tree_rows {
    size_t n, d;
    const double *x;        /* n x d; a choice's are whole numbers below its levels */
    const double *y;        /* n, finite */
    const uint64_t *levels; /* [d]; 0: a number */
    const uint32_t *order;  /* d x n: the rows by the places of each number, of tree_order() */
};

/* Write the order of rows whose other fields are set; ret: d x n, of which the choices' are
 * untouched. O(d n log n), once for all trees. AS_E_NOMEM. */
AS_MUST_CHECK as_status tree_order(const struct tree_rows *t, uint32_t *ret, struct as_err *err);

struct tree_limits {
    size_t n_tried; /* parameters that a split is chosen from, at least 1; more where those are
                        constant among the rows */
    size_t leaf;    /* rows of a leaf, at least 1 */
};

/* The values of the rows of a leaf. */
struct tree_leaf {
    double mean, variance;
};

struct regression_tree;

/* Grow a tree from these rows.
 *   times  [t->n] how often each row counts; not all 0
 *   r      advanced
 *   ret    owned by the caller
 * O(n d) for each level of the tree, n the sum of `times`. AS_E_NOMEM. */
AS_MUST_CHECK as_status regression_tree_grow(const struct tree_rows *t,
                                             const struct tree_limits *limits,
                                             const uint32_t *times, struct rng *r,
                                             struct regression_tree **ret, struct as_err *err);
void regression_tree_free(struct regression_tree *tree);
AS_DEFINE_FREEP(struct regression_tree, regression_tree_free)

/* The leaf of the point x [d]. View of the tree. */
const struct tree_leaf *regression_tree_find(const struct regression_tree *tree, const double *x);

#endif
