/* A table without some of its columns: what a model sees of a data set in which other columns say
 * which rows are held out, or how much a row counts. And a table with further columns: what a model
 * sees that other models have predicted for. */
#ifndef ASSAY_DATA_DATASET_VIEW_H
#define ASSAY_DATA_DATASET_VIEW_H

#include <stddef.h>

#include "base/json.h"
#include "data/dataset.h"
#include "data/dataset_cells.h"

/* The index among info->columns of the first feature of the column with this name; SIZE_MAX: there
 * is none. */
size_t dataset_find_column(const struct dataset_info *info, const char *name);

/* Copy a record without n columns of the file.
 *   columns  [n] distinct indices of their first features, n below dataset_file_columns(); borrowed
 *   ret      owned by the caller, untouched on failure
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_info_without(const struct dataset_info *info, const size_t *columns,
                                             size_t n, struct dataset_info *ret,
                                             struct as_err *err);

/* Take the same columns of the record `info` out of the rows of its table, in place. O(values). */
void dataset_without(struct dataset *set, const struct dataset_info *info, const size_t *columns,
                     size_t n);

/* Copy a record with n further columns of numbers after its own, none of which is ever missing.
 * They have names only where the columns of the record have.
 *   names  [n], borrowed
 *   ret    owned by the caller, untouched on failure
 * AS_E_INVAL: it is no table, or its rows would have too many numbers; AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_info_with(const struct dataset_info *info, const char *const *names,
                                          size_t n, struct dataset_info *ret, struct as_err *err);

/* Put the numbers of n further columns behind each row.
 *   set    rows of float32; its x is replaced, and n_features grows by n
 *   added  [rows, n], borrowed
 * AS_E_TOO_LARGE, AS_E_NOMEM: `set` is as it was. */
AS_MUST_CHECK as_status dataset_with(struct dataset *set, const float *added, size_t n,
                                     struct as_err *err);

/* Read the cells of a column of a CSV table. Values in memory (struct dataset) are float32 and know
 * the rare texts of a column only as "other": identifiers and times need the text.
 *   paths, info, name  borrowed; the rows are checked against info->n_rows
 *   ret                owned by the caller: dataset_cells_done()
 * AS_E_INVAL: the table has no such column, or other rows than the record. AS_E_UNSUPPORTED: the
 * data set is no CSV table. AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_read_cells(const struct dataset_paths *paths,
                                           const struct dataset_info *info, const char *name,
                                           struct dataset_cells *ret, struct as_err *err);

#define DATASET_VALUE_TEXT ((size_t)32) /* bytes of a number as text, with its NUL */

/* The text of a cell by which equal values of a column are equal: of a column of numbers the
 * shortest one that reads back as the same float32 ("1" for 1.0 and 01), else the cell itself.
 *   c     the column, or NULL if its kind is not known
 *   cell  without the blanks around it; borrowed
 * Returns `buf` or `cell`. */
const char *dataset_value_text(const struct dataset_column *c, const char *cell,
                               char buf[DATASET_VALUE_TEXT]);

/* Append the texts of a column to a JSON array: of its rows[0..n), or of the first n without
 * `rows`. `name` may be that of a column that is not in info. AS_E_INVAL: a text is no UTF-8;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status dataset_list_values(const struct dataset_info *info, const char *name,
                                            const struct dataset_cells *cells, const int32_t *rows,
                                            size_t n, json_t *list, struct as_err *err);

#endif
