/* Extremely randomised trees, as they are stored and predict. P. Geurts, D. Ernst, L. Wehenkel,
 * "Extremely randomized trees", Machine Learning 63, 2006.
 *
 * A forest is one block of bytes, little-endian, whose arrays follow each other without gaps:
 *   char   [8]                "assayet1"
 *   uint32 [6]                inputs, outputs, trees, nodes, values, words
 *   double [3][inputs]        of the splits on each input: how many, the sum of their gains, the
 *                             sum of the weights of their rows
 *   uint32 [trees]            the root of each tree: its first node. A tree ends where the next one
 *                             begins
 *   struct extra_node [nodes]
 *   float  [values][outputs]  what leaves predict; leaves of equal content may share a row
 *   uint32 [words]            sets of categories, bit c of a set is bit c % 32 of its word c / 32
 *   zeros                     to a multiple of 8 bytes
 * A child comes after its parent, and the right child after the left one. So a walk ends, whatever
 * the bytes are, once extra_forest_read() has checked the order. */
#ifndef ASSAY_MODEL_EXTRA_TREES_EXTRA_FOREST_H
#define ASSAY_MODEL_EXTRA_TREES_EXTRA_FOREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define EXTRA_MAX_INPUTS ((size_t)1 << 24)
#define EXTRA_MAX_NODES ((size_t)1 << 31)

/* Parts of extra_node.split beside the input. */
#define EXTRA_LEAF ((uint32_t)1 << 31)
#define EXTRA_CATEGORY ((uint32_t)1 << 30)
#define EXTRA_MISSING_LEFT ((uint32_t)1 << 29)
#define EXTRA_INPUT (((uint32_t)1 << 29) - 1)

struct extra_node {
    uint32_t split; /* the input and the flags above; of a leaf EXTRA_LEAF alone */
    uint32_t left;  /* the left child, its sibling is the next node; of a leaf its row of values */
    union {
        float threshold; /* a number below it goes left */
        uint32_t set;    /* the first word of the categories that go left */
    } at;
};

/* A view of such bytes. */
struct extra_forest {
    size_t inputs, outputs, n_trees, n_nodes, n_values, n_words;
    double *splits, *gain, *cover; /* [inputs]; owned, in one piece from splits on */
    const uint32_t *roots;         /* [n_trees] */
    const struct extra_node *nodes;
    const float *values;
    const uint32_t *words;
    char *copy; /* owned: the bytes, where those that were given are not aligned; else NULL */
};

/* What the caller expects of a forest. */
struct extra_shape {
    size_t inputs, outputs;
    const uint32_t *codes; /* [inputs]: how many codes a category has; 0: a number. Borrowed */
};

/* Read and check a forest.
 *   bytes  stay until extra_forest_done(): nodes and values are not copied if they lie on a
 *          multiple of 4; hostile ones are refused
 *   ret    untouched on failure
 * AS_E_INVAL: not such bytes, cut short, another shape, or a node that points out of its tree.
 * AS_E_NOMEM. O(nodes). */
AS_MUST_CHECK as_status extra_forest_read(const void *bytes, size_t len,
                                          const struct extra_shape *shape, struct extra_forest *ret,
                                          struct as_err *err);
void extra_forest_done(struct extra_forest *f); /* a zeroed one is fine */

/* The bytes of a forest; f->gain and f->cover are where they follow from f->splits. Owned by the
 * caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status extra_forest_write(const struct extra_forest *f, char **ret,
                                           size_t *ret_len, struct as_err *err);

/* The words of a set of so many codes. */
static inline size_t extra_set_words(uint32_t codes)
{
    return ((size_t)codes + 31) / 32;
}

/* The leaf that a row comes to, from node `at` on. Value i of the row is x[i * stride]; a missing
 * one is NaN, and a category is one of its codes. */
const struct extra_node *extra_walk(const struct extra_node *nodes, const uint32_t *words,
                                    uint32_t at, const float *x, size_t stride);

/* The means over the trees: x [rows, inputs] to ret [rows, outputs]. Sums are in double in the
 * order of the trees, so the bits of a row depend on the row alone. Any number of threads may call
 * it at once. AS_E_NOMEM. */
AS_MUST_CHECK as_status extra_forest_predict(const struct extra_forest *f, const float *x,
                                             size_t rows, float *ret, struct as_err *err);

#endif
