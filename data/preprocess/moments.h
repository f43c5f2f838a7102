/* Means and deviations over training rows. */
#ifndef ASSAY_DATA_PREPROCESS_MOMENTS_H
#define ASSAY_DATA_PREPROCESS_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "data/preprocess/table.h"
#include "base/status.h"

/* Rows of numbers, and the columns to sum: the first `n` of each row. Columns with equal index
 * modulo n_means share a mean. All borrowed. */
struct moments_columns {
    const float *x;             /* row r begins at x + r * width */
    const unsigned char *bytes; /* the same, instead of x; not for moments_of_pixels() */
    size_t width, n;
    size_t n_means;      /* n is a multiple of it; 0: there is nothing to compute */
    const int32_t *rows; /* row numbers, in the order of summing */
    size_t n_rows;       /* at least 1 */
    const struct preprocess_table *table; /* if not NULL, rows of x are as in the file, and the
                                           * columns are the numeric inputs made of them */
};

/* Means and scales [n_means]. The scale is the standard deviation, or 1 if the deviation is only
 * rounding noise beside the mean. Two passes, in double. AS_E_NOMEM. */
AS_MUST_CHECK as_status moments_of_columns(const struct moments_columns *v, double *ret_mean,
                                           double *ret_scale, struct as_err *err);

/* The same in one pass, because images are large; `table` is NULL. Values are summed as differences
 * from the first pixel of the first row, so that a channel far from 0 loses no digits. AS_E_NOMEM.
 */
AS_MUST_CHECK as_status moments_of_pixels(const struct moments_columns *v, double *ret_mean,
                                          double *ret_scale, struct as_err *err);

/* The same for pixels that are bytes [n_rows, width], channels last: all rows except the n_held
 * rows that are held out. The sums are exact, so the order of adding does not matter.
 * AS_E_NOMEM. */
struct moments_bytes {
    const unsigned char *bytes;
    size_t n_rows, width, channels; /* channels 0: there is nothing to compute */
    const int32_t *held;
    size_t n_held;
};
AS_MUST_CHECK as_status moments_of_bytes(const struct moments_bytes *v, double *ret_mean,
                                         double *ret_scale, struct as_err *err);

#endif
