/* Reading the files of a data set: the server inspects them at registration, the trainer loads
 * them. dataset_inspect() needs memory for one record and for what it counts; dataset_load() for
 * all values. Distinct calls may run in distinct threads. */
#ifndef ASSAY_DATA_DATASET_READ_H
#define ASSAY_DATA_DATASET_READ_H

#include "data/dataset.h"
#include "base/status.h"

/* Read the files through once and describe them.
 *   paths    one file as `table`, or features + targets (csv, npz, cifar, safetensors, text,
 *            tokens: a table; idx: both; npy: either); borrowed
 *   target   csv, npy with a table: the column's name, or its index as text, negative from the end;
 *            csv with the task clustering: NULL, or what is left out
 *            ("-1": the last). Several names, separated by commas, are a regression with several
 *            outputs, unless one column has the whole text as its name. NULL for other formats.
 *            The first record of a table is its header if it looks like one (csv.h) or names the
 *            target
 *   task     AUTO: text, or whole numbers with at most DATASET_AUTO_CLASSES distinct values, is
 *            classification; two or more columns or fractions regression; text and tokens
 *            language modeling
 *   options  borrowed; NULL: the defaults
 *   ret      owned by the caller, untouched on failure
 * A value of a table is missing if its cell in a CSV file is empty or NA, N/A, NaN, null or ? (any
 * case), or if it is NaN in an array of two dimensions. A target must not be missing. A column is
 * categorical if a cell that is not missing is not a number.
 * options.positive must be one of two classes and becomes the last one, class 1.
 * AS_E_INVAL      a missing target (the message lists the columns), a value that is not finite, a
 *                 column with a different text in every row, ragged rows, one class only, fewer
 *                 than 2 rows, files cut short or longer than they say, an option of another format
 * AS_E_TOO_LARGE  past one of the limits of dataset.h; for categories the message names the column
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM, AS_E_UNSUPPORTED (a kind of array) */
AS_MUST_CHECK as_status dataset_inspect(const struct dataset_paths *paths, dataset_format format,
                                        const char *target, dataset_task task,
                                        const struct dataset_options *options,
                                        struct dataset_info *ret, struct as_err *err);

/* Load the data set that `info` describes: format, task, target, columns and classes come from it,
 * and the files must match it. ret is owned by the caller, untouched on failure. Errors as in
 * dataset_inspect(); also AS_E_INVAL if the files do not match `info` (the message has both
 * figures). */
AS_MUST_CHECK as_status dataset_load(const struct dataset_paths *paths,
                                     const struct dataset_info *info, struct dataset *ret,
                                     struct as_err *err);

/* The same, but images whose values are all whole numbers from 0 to 255 are returned as `bytes`
 * instead of x, in a quarter of the memory. Only the values decide this, not the format. */
AS_MUST_CHECK as_status dataset_load_bytes(const struct dataset_paths *paths,
                                           const struct dataset_info *info, struct dataset *ret,
                                           struct as_err *err);

/* ---- test rows: other files of the same form ----
 *
 * They are read by what `info` says of the training part: its header or none, columns, kinds,
 * classes, categories. What the training part has not is an error, whose message has the line and
 * the column: another header, an unknown class, a category that it has not seen (unless it has rare
 * ones, which all count as "other"), a value that is missing in a column that lacks none. */

/* Check the files whole, and count their rows.
 *   paths  as `info` was inspected with; `decoded` is not used
 * AS_E_INVAL as above, or no rows; AS_E_UNSUPPORTED: text and tokens, which have no rows; else as
 * for dataset_load(). Needs memory for one row. */
AS_MUST_CHECK as_status dataset_test_inspect(const struct dataset_paths *paths,
                                             const struct dataset_info *info, size_t *ret_rows,
                                             struct as_err *err);

/* Load them; there must be `rows`, and ret->n_rows is that. ret is owned by the caller, untouched
 * on failure. Images are in x. */
AS_MUST_CHECK as_status dataset_test_load(const struct dataset_paths *paths,
                                          const struct dataset_info *info, size_t rows,
                                          struct dataset *ret, struct as_err *err);

#endif
