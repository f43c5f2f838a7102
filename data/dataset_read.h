/* Reading the files of a data set: what the server learns of them at registration, and how the
 * trainer loads them. dataset_inspect() takes memory for one record and what it counts;
 * dataset_load() holds the values. Distinct calls may run in distinct threads. */
#ifndef ASSAY_DATA_DATASET_READ_H
#define ASSAY_DATA_DATASET_READ_H

#include "data/dataset.h"
#include "base/status.h"

/* Read the files through once and describe them.
 *   paths    one file as `table`, or features + targets (csv, npz, cifar, safetensors, text,
 *            tokens: a table; idx: both; npy: either); borrowed
 *   target   csv, npy with a table: the column's name, or its index as text, negative from the end
 *            ("-1": the last); several, separated by commas, are a regression of several outputs;
 *            a column whose name is the whole text comes first. NULL for the other formats.
 *            A table's first record is its header when it looks like one (csv.h) or names the
 *            target
 *   task     AUTO: text, or whole numbers with at most DATASET_AUTO_CLASSES distinct values, is
 *            classification; two or more columns or fractions regression; text and tokens
 *            language modeling
 *   options  borrowed; NULL: the defaults
 *   ret      owned by the caller, untouched on failure
 * Missing in a table: a cell of a CSV file that is empty or NA, N/A, NaN, null or ? (any case), and
 * NaN in an array of two dimensions. A target is never missing. A column is categorical when a cell
 * that is not missing is no number.
 * AS_E_INVAL      a missing target (the message lists the columns), a value that is not finite, a
 *                 column with a different text in every row, ragged rows, one class only, fewer
 *                 than 2 rows, files cut short or longer than they say, an option of another format
 * AS_E_TOO_LARGE  past one of the limits above; categories are named with their column
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM, AS_E_UNSUPPORTED (a kind of array) */
AS_MUST_CHECK as_status dataset_inspect(const struct dataset_paths *paths, dataset_format format,
                                        const char *target, dataset_task task,
                                        const struct dataset_options *options,
                                        struct dataset_info *ret, struct as_err *err);

/* Load what `info` describes: format, task, target, columns and classes come from it, and the files
 * must be as it says. ret is owned by the caller, untouched on failure. Errors as dataset_inspect;
 * AS_E_INVAL too when the files do not match `info` (the message has both figures). */
AS_MUST_CHECK as_status dataset_load(const struct dataset_paths *paths,
                                     const struct dataset_info *info, struct dataset *ret,
                                     struct as_err *err);

/* The same, but images whose values are all whole numbers from 0 to 255 come as `bytes`, a quarter
 * of x: whether they do depends on the values alone. */
AS_MUST_CHECK as_status dataset_load_bytes(const struct dataset_paths *paths,
                                           const struct dataset_info *info, struct dataset *ret,
                                           struct as_err *err);

#endif
