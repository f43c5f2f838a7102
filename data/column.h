/* The feature columns of a CSV table while it is read: which are numbers and which categories, what
 * is missing, and which values there are.
 *
 * There are two passes. The first finds the kinds: one cell of text at the end makes a column
 * categorical. The second counts the values of the categorical columns; without any, it is not
 * needed. */
#ifndef ASSAY_DATA_COLUMN_H
#define ASSAY_DATA_COLUMN_H

#include <stdbool.h>
#include <stddef.h>

#include "data/formats/csv.h"
#include "data/dataset.h"

/* The words for a missing cell besides the empty one, NULL-terminated; letters of any case. */
extern const char *const column_missing_words[];

/* A cell without the blanks around it, and its kind. */
struct column_cell {
    const char *s;
    size_t len;
    bool missing; /* empty, NA, N/A, NaN, null, ? (any case) */
    csv_kind kind;
    double number;
};

/* A view of `cell`. */
struct column_cell column_cell_of(const struct csv_cell *cell);

struct column_value {
    char *text; /* owned */
    size_t n_rows;
};

/* The scan of one column; a zeroed struct is a scan that has seen nothing. */
struct column_scan {
    size_t n_missing, n_text;
    size_t text_line;         /* of the first cell of text … */
    char *text;               /* … and the cell; owned */
    struct as_err bad_number; /* the first number that is infinite or too large for float32 */
    bool any_bad;
    struct column_value *values; /* second pass, sorted by bytes; owned */
    size_t n_values, cap;
};

void column_scan_done(struct column_scan *s);

/* First pass. AS_E_NOMEM. */
AS_MUST_CHECK as_status column_scan_add(struct column_scan *s, const struct column_cell *cell,
                                        size_t line, struct as_err *err);

/* Second pass, for cells of categorical columns. AS_E_TOO_LARGE: past DATASET_MAX_CATEGORIES, or a
 * value past DATASET_MAX_CLASS_NAME; AS_E_NOMEM. The caller prefixes the column's name. */
AS_MUST_CHECK as_status column_scan_count(struct column_scan *s, const struct column_cell *cell,
                                          struct as_err *err);

/* Describe the column that was scanned; the values move to *ret. `n_rows` is the number of rows of
 * the table. AS_E_INVAL: a number that is not finite; a different text in every row. */
AS_MUST_CHECK as_status column_scan_end(struct column_scan *s, size_t n_rows,
                                        struct dataset_column *ret, struct as_err *err);

/* The value of a cell in dataset.x: the number, NaN if it is missing, or the index of its category.
 * AS_E_INVAL: text in a numeric column, a number that is not finite. */
AS_MUST_CHECK as_status column_value_of(const struct dataset_column *c,
                                        const struct column_cell *cell, float *ret,
                                        struct as_err *err);

#endif
