/* Piecewise-linear encoding of numbers (Y. Gorishniy, I. Rubachev, A. Babenko, "On Embeddings for
 * Numerical Features in Tabular Deep Learning", NeurIPS 2022, section 3.2). The quantiles of the
 * training rows cut a column of numbers into bins, and a number x becomes a value for each bin:
 *   (x - low) / (high - low), where low and high are the edges of the bin, limited to [0, 1]; below
 *   the first bin and above the last one it goes on, without a limit
 * So the bins below x have 1 and those above have 0. A linear model on these values is a
 * piecewise-linear function of each column, continuous at the edges: a spline of degree 1.
 *
 * Cut are the columns that dataset_column_is_number() names; other inputs (indicators, cycles of
 * dates, hashed texts, one-hot categories) stay. Equal quantiles are one edge. A column has the
 * same number of values whatever its rows are; a bin that it lacks has the value 0, as all have
 * of a column that is constant in the training rows. */
#ifndef ASSAY_DATA_PREPROCESS_PIECEWISE_H
#define ASSAY_DATA_PREPROCESS_PIECEWISE_H

#include "data/preprocess/preprocess.h"

/* Edges are at most this far from 0 and at least FLT_MIN apart, so that widths are finite numbers
 * with all of their digits. */
#define PIECEWISE_LARGEST_EDGE 0x1p126F

/* One value of an encoded row: v = (x - low) / width in float32; least if v is less, most if it is
 * more. An input that stays is one piece without limits, which standardises it. */
struct piece {
    size_t input; /* x is the numeric input of this index, before bins are made */
    float low, width, least, most;
};

/* The pieces of all numeric inputs in their order.
 *   ret    owned by the caller
 *   ret_n  preprocess_inputs() without one-hot inputs
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status piecewise_pieces(const struct preprocess *p,
                                         const struct dataset_info *info, struct piece **ret,
                                         size_t *ret_n, struct as_err *err);

/* Set p->bins, p->edges and p->n_edges from the training rows.
 *   set, info  of a table; borrowed
 *   bins       at least 2, at most PREPROCESS_MAX_BINS
 * Quantiles are interpolated between the values that are not missing, as numpy.quantile() does.
 * AS_E_NOMEM; some of them may then be set: the caller frees p. */
AS_MUST_CHECK as_status piecewise_fit(const struct dataset *set, const struct dataset_info *info,
                                      const struct preprocess_rows *rows, size_t bins,
                                      struct preprocess *p, struct as_err *err);

/* Allocate them; n_edges is 0 everywhere. AS_E_NOMEM. */
AS_MUST_CHECK as_status piecewise_alloc(const struct dataset_info *info, size_t bins,
                                        struct preprocess *p, struct as_err *err);

/* Cut rows.
 *   x    [rows, width], not standardised: numeric inputs, then one-hot ones. Borrowed
 *   ret  [rows, preprocess_inputs()], owned by the caller; untouched on failure
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status piecewise_apply(const struct preprocess *p, const struct dataset_info *info,
                                        const float *x, size_t rows, size_t width, float **ret,
                                        struct as_err *err);

#endif
