/* k-means: rows are cut into clusters, each with a centroid, so that the mean squared distance of a
 * row to its nearest centroid is small (S. Lloyd, "Least squares quantization in PCM", IEEE
 * Transactions on Information Theory 28, 1982). Pure: numbers in, numbers out.
 *
 * An iteration assigns each row to the nearest centroid (of equals the first), and moves each
 * centroid to the mean of its rows. The rows are cut into shards, whose number follows from the
 * number of rows alone. A shard has numbers of its own: for each cluster the sum of its rows and
 * their count, and the squared distances. They are added up in the order of the tree of
 * coll_tree_sum (trial-runner/collective/collective.h). So the bits of an iteration depend neither
 * on threads nor on which process computes which shard.
 *
 * Nearest is what minimises |c|^2 / 2 - x c, in float32, by the products of kernels/cpu/gemm.h; the
 * distance to it is then computed in double from the differences. So a row's cluster and its
 * distance depend on the row and the centroids alone (without AVX2, where OpenBLAS multiplies,
 * clusters of rows that are equally near may depend on the rows beside them). */
#ifndef ASSAY_MODEL_KMEANS_KMEANS_H
#define ASSAY_MODEL_KMEANS_KMEANS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define KMEANS_MAX_SHARDS 64

/* Rows, borrowed. */
struct kmeans_rows {
    const float *x; /* [n, dims], finite */
    size_t n, dims;
};

/* Which centroid is nearest to each row, by up to `threads` threads.
 *   centroids  [clusters, rows->dims]
 *   ret        [n]: its index
 *   ret_square [n]: the squared distance to it
 * AS_E_NOMEM; AS_E_UNSUPPORTED: no matrix products on this machine (cpu_gemm_ready). */
AS_MUST_CHECK as_status kmeans_assign(const struct kmeans_rows *rows, const float *centroids,
                                      size_t clusters, size_t threads, int32_t *ret,
                                      double *ret_square, struct as_err *err);

/* ---- an iteration ---- */

/* The shards of so many rows: at least 1, at most KMEANS_MAX_SHARDS, of 64 rows or more if there
 * are so many. Shard s has the rows from kmeans_shard_begin(s) to that of s + 1. */
uint32_t kmeans_shards(size_t rows);
size_t kmeans_shard_begin(size_t rows, uint32_t shard);

/* The numbers of a shard: [clusters, dims] sums of rows, [clusters] counts, 1 sum of squared
 * distances. */
size_t kmeans_numbers(size_t clusters, size_t dims);

/* The numbers of shards [first, first + count); ret[i] [kmeans_numbers()] is of shard first + i.
 * Errors of kmeans_assign(). */
AS_MUST_CHECK as_status kmeans_shard_sums(const struct kmeans_rows *rows, const float *centroids,
                                          size_t clusters, uint32_t first, uint32_t count,
                                          size_t threads, double *const *ret, struct as_err *err);

/* partials[0] = the sum of all, n numbers each, in the order of the tree. The others change. */
void kmeans_tree_sum(double *const *partials, uint32_t total, size_t n);

/* The second half of an iteration.
 *   numbers    of all rows; changed
 *   centroids  those of the sums; then the means of their rows. One without rows moves to the row
 *              that is farthest from its centroid, which leaves its cluster (as in scikit-learn);
 *              where all rows lie on centroids it stays
 *   ret_shift  the sum over the centroids of the squares of how far they moved; 0 means that no
 *              row will change its cluster any more
 * Errors of kmeans_assign(). */
AS_MUST_CHECK as_status kmeans_move(const struct kmeans_rows *rows, double *numbers,
                                    size_t clusters, size_t threads, float *centroids,
                                    double *ret_shift, struct as_err *err);

/* ---- where it starts ---- */

typedef enum kmeans_init {
    KMEANS_PLUSPLUS, /* each centroid is a row, drawn in proportion to its squared distance to the
                      * nearest one so far; of 2 + log(clusters) draws the one that leaves the least
                      * sum of them (D. Arthur, S. Vassilvitskii, "k-means++: the advantages of
                      * careful seeding", SODA 2007; the greedy form is in its section 6) */
    KMEANS_RANDOM    /* rows drawn without replacement */
} kmeans_init;

/* ret [clusters, dims]: the centroids before the first iteration: of rows, seed and the others
 * alone, for any number of threads. clusters <= rows->n. Errors of kmeans_assign(). */
AS_MUST_CHECK as_status kmeans_start(const struct kmeans_rows *rows, size_t clusters,
                                     kmeans_init init, uint64_t seed, size_t threads, float *ret,
                                     struct as_err *err);

/* ---- measures ---- */

/* The mean over the columns of their variance: what `tolerance` is relative to. */
double kmeans_variance(const struct kmeans_rows *rows);

/* The index of Davies and Bouldin ("A cluster separation measure", IEEE PAMI 1, 1979), as
 * davies_bouldin_score of scikit-learn: the mean over the clusters of the largest (s_i + s_j) /
 * d_ij, where s is the mean distance of a cluster's rows to their mean, and d the distance between
 * the means. Less is better. Clusters without rows are left out; NaN: fewer than two have rows.
 *   labels  [n], each below `clusters`
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status kmeans_davies_bouldin(const struct kmeans_rows *rows, const int32_t *labels,
                                              size_t clusters, double *ret, struct as_err *err);

#endif
