/* A CSV file as a table: which of its columns are targets, which are inputs, and which are neither
 * (`select` and `drop` of the options). */
#ifndef ASSAY_DATA_CSV_TABLE_H
#define ASSAY_DATA_CSV_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "data/formats/csv.h"
#include "data/column.h"
#include "data/dataset.h"
#include "data/target.h"

struct csv_table {
    struct csv *csv;
    size_t n_columns, n_targets, n_inputs;
    size_t *targets;   /* columns */
    size_t *input;     /* [n_columns] which input a column is; SIZE_MAX: none */
    const char **name; /* [n_columns] views of csv */
    bool *numeric;     /* [n_columns] holds numbers by the options (column_cell_as_number) */
    size_t *feature; /* [n_columns] of a test file whose columns are known by their names: the first
                        * feature of an input. NULL: inputs are in the order of the features */
    struct dataset_codes missing; /* a view of the options */
    bool is_test; /* dataset_csv.c: a cell that the training part has not seen is an error */
    bool drop_unlabelled; /* by the options: csv_table_next() */
};

void csv_table_done(struct csv_table *t);

/* The dialect of a file that was inspected: its separator is a comma and its decimal sign a point
 * where `o` does not say otherwise. */
struct csv_dialect dataset_dialect(const struct dataset_options *o);

/* Append the pattern that stands for this name alone, as an item of a list with commas: what
 * patterns and lists give a meaning (* ? [ " \ and the comma) has a backslash before it. The empty
 * name, which the index of a table of pandas has, is "". */
void dataset_name_pattern(const char *name, struct str *b);

/* Does one of the patterns stand for the name? */
bool dataset_names_match(const struct dataset_names *names, const char *name);

/* The next row of the data set, as csv_next(): with the option drop_unlabelled, the next one that
 * lacks none of its targets. Who reads the rows of a table reads them by this, so that all count
 * the same ones. */
AS_MUST_CHECK as_status csv_table_next(const struct csv_table *t, struct csv_row *ret,
                                       struct as_err *err);

/* Append the names of the columns for a message, no more after `most` bytes. */
void csv_table_list(const struct csv_table *t, size_t most, struct str *ret);

/* Is a target of the row missing, by the words for missing cells? */
bool csv_table_lacks_target(const struct csv_table *t, const struct csv_row *row);

/* The cell of a column of `row`. Of an input, a code of the options (`missing`) is missing. */
struct column_cell csv_table_cell(const struct csv_table *t, const struct csv_row *row,
                                  size_t column);

/* Put column and line before an error. Returns st. */
as_status csv_table_prefix(const struct csv_table *t, const struct csv_row *row, size_t column,
                           as_status st, struct as_err *err);

/* A target: the cell of one of t->targets. `ret` is a view of the row. AS_E_INVAL: it is missing,
 * or no number that the task takes; the message has column and line. */
AS_MUST_CHECK as_status csv_table_target(const struct csv_table *t, const struct csv_row *row,
                                         size_t column, dataset_task task, struct target_value *ret,
                                         struct as_err *err);

#define CSV_NO_TARGET "" /* of a table without targets, as `target` of the functions below */

/* The target of a data set, for the functions below. */
const char *csv_table_target_of(const struct dataset_info *info);

/* Open a file for inspection: what `o` leaves open of the dialect is found in the file.
 *   target  as in dataset_inspect()
 *   ret     owned by the caller, also on failure
 * Errors of csv_open(); AS_E_INVAL: no such target, a pattern of the options that fits no column, a
 * target that is dropped, a column that holds texts and numbers by the options, two columns with
 * one name that are not dropped, no input is left; AS_E_NOMEM. */
AS_MUST_CHECK as_status csv_table_find(const char *path, const char *target,
                                       const struct dataset_options *o, struct csv_table *ret,
                                       struct as_err *err);

/* The same for a file that was inspected: dataset_dialect(). Two columns may have one name: data
 * sets from before 2026-11-28 do. */
AS_MUST_CHECK as_status csv_table_open(const char *path, const char *target,
                                       const struct dataset_options *o, struct csv_table *ret,
                                       struct as_err *err);

/* The same, but whether the first record is the header is known. */
AS_MUST_CHECK as_status csv_table_open_as(const char *path, const char *target,
                                          const struct dataset_options *o, csv_header header,
                                          struct csv_table *ret, struct as_err *err);

#endif
