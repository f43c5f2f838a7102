/* Which rows are held out, where a column decides it; and the weights of rows.
 *
 * All functions are pure: the result depends on the cells, their order and the seed alone. Rows in
 * messages are counted from 1, without the header. */
#ifndef ASSAY_DATA_PREPROCESS_HOLDOUT_H
#define ASSAY_DATA_PREPROCESS_HOLDOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/dataset_cells.h"

/* What a row is for. */
enum {
    HOLDOUT_TRAIN,
    HOLDOUT_HELD,
    HOLDOUT_UNUSED,
    HOLDOUT_BOTH /* trained on and measured on: where measures mean nothing (`refit`) */
};

/* By words, in any case:
 *   held out   1, true, t, yes, y, val, valid, validation, dev, held-out, held_out, holdout
 *   training   0, false, f, no, n, train, training
 *   test       test, testing: held out if no row has one of the words above for held out, else
 *              used for nothing: such a column has three parts, and the third is not for choosing
 * Numbers are compared as numbers (1.0 is 1).
 *   name  of the column, for messages
 *   ret   [cells->n]
 * AS_E_INVAL: a cell is none of these words, or one side has no row. */
AS_MUST_CHECK as_status holdout_by_words(const struct dataset_cells *cells, const char *name,
                                         unsigned char *ret, struct as_err *err);

/* The last n_held rows by a column whose cells are all numbers, or all dates or times (data/date.h;
 * 2026-11-23, 2026-11-23T07:15:30.5Z, …+01:00, 23.11.2026; without an offset they are UTC).
 * Rows with equal cells are in the order of the file. 1 <= n_held < cells->n. AS_E_INVAL: a cell is
 * missing or of another kind; AS_E_NOMEM. O(n log n). */
AS_MUST_CHECK as_status holdout_by_order(const struct dataset_cells *cells, const char *name,
                                         size_t n_held, unsigned char *ret, struct as_err *err);

/* Whole groups, which are rows with equal text: the groups are shuffled with the seed, and each is
 * held out if that brings the number of held-out rows nearer to n_held. Each side has at least one
 * group. The same groups are held out whatever the order of the rows is. AS_E_INVAL: a cell is
 * missing, or there is only one group; AS_E_NOMEM. O(n log n). */
AS_MUST_CHECK as_status holdout_by_groups(const struct dataset_cells *cells, const char *name,
                                          size_t n_held, uint64_t seed, unsigned char *ret,
                                          struct as_err *err);

/* Fold `fold` of k: the rows are shuffled with the seed and dealt to the folds in turn, class by
 * class if there are labels. So each row is held out in one fold, and the folds differ by at most
 * one row, also in each class.
 *   labels  [n], each in [0, classes); NULL: any rows
 *   ret     [n]
 * 2 <= k <= n, fold < k. AS_E_NOMEM. */
AS_MUST_CHECK as_status holdout_by_fold(const int32_t *labels, size_t n, size_t classes, size_t k,
                                        size_t fold, uint64_t seed, unsigned char *ret,
                                        struct as_err *err);

/* The cells as weights: numbers from 0 to 1e30. ret [cells->n]. AS_E_INVAL naming the row. */
AS_MUST_CHECK as_status holdout_weights(const struct dataset_cells *cells, const char *name,
                                        float *ret, struct as_err *err);

#endif
