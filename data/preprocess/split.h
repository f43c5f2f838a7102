/* Which rows of a table or of images are held out. */
#ifndef ASSAY_DATA_PREPROCESS_SPLIT_H
#define ASSAY_DATA_PREPROCESS_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/preprocess/preprocess.h"

/* Rows are shuffled with the seed, and the caller holds out the first ones, as many as it wants.
 *   ret  [n]
 * The result depends on the arguments alone. O(n). */
void split_random(size_t n, uint64_t seed, int32_t *ret);

/* The same shuffle, but each class has its share of the held-out rows: n_held * rows of the class /
 * n, rounded so that the sum is n_held. A class of two or more rows has at least one row on each
 * side, if n_held leaves room for that; a class of one row has it among the training rows, if the
 * other classes have n_held rows.
 *   labels  [n], each in [0, classes); borrowed
 *   ret     [n]: the held-out rows, then the training rows, both in shuffled order
 * 1 <= n_held < n. AS_E_NOMEM. O(n + classes^2), where the square needs many classes whose shares
 * were rounded to one row. */
AS_MUST_CHECK as_status split_stratified(const int32_t *labels, size_t n, size_t classes,
                                         size_t n_held, uint64_t seed, int32_t *ret,
                                         struct as_err *err);

/* The training rows and the held-out rows of a table or of images, by the options: as opts->part
 * says, in the order of the file; else the first opts->n_validation rows of a shuffle, stratified
 * if opts->stratify and there are labels.
 *   labels  [n], each in [0, classes); NULL: the rows have no classes. Borrowed
 *   rows    [n]: the held-out rows, then the training rows, then those that are used for nothing
 *   ret     views of `rows`, which overlap in rows that are for both
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status split_rows(const struct preprocess_opts *opts, const int32_t *labels,
                                   size_t n, size_t classes, int32_t *rows,
                                   struct preprocess_rows *ret, struct as_err *err);

#endif
