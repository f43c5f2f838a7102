/* The input columns of a CSV table while it is read: which are numbers, dates, texts and
 * categories, what is missing, and which values there are.
 *
 * There are two passes. The first separates numbers (every cell that is not missing is one) and
 * dates (the same) from the others. The second counts the values of the others, which are
 * categories, or texts: a column of texts has more than half of its cells of three words or more,
 * and either a different text in every row, or more different texts than categories may have, or
 * more than 100 and more than half as many as rows, or a cell that is too long for a category. */
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
/* The same of a text of `len` bytes, NUL-terminated: a cell without its quotes. A view of it. */
struct column_cell column_cell_of_text(const char *text, size_t len);

/* The cell of a column that holds numbers by the data set's options (`numeric`): a text such as
 * "88,139" or "$5" is that number (written_number.h); what is no number, or one that is infinite or
 * too large for float32, is missing.
 *   decimal  the data set's decimal sign; 0: a point */
void column_cell_as_number(struct column_cell *cell, char decimal);

/* A number that is one of the data set's codes (`missing`) is missing. */
void column_cell_code(struct column_cell *cell, const struct dataset_codes *codes);

/* The number of a text that is one by written_number.h; false: it is none. */
bool column_written_number(const char *s, size_t len, char decimal, double *ret,
                           uint32_t *ret_sign);

/* The dates of a column so far. */
struct column_dates {
    size_t n;
    int64_t first;             /* the earliest day */
    unsigned weekdays, months; /* bit i: the i-th occurs */
    double least, most;        /* seconds of the day */
};

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
    struct column_dates dates;   /* while all cells of text are dates */
    size_t n_wordy;              /* cells of three words or more */
    bool is_text;                /* by the caller, or found in the second pass */
    bool is_date;                /* column_scan_decide() */
    size_t width;                /* features: column_scan_decide() */
    struct column_value *values; /* second pass, sorted by bytes; owned */
    size_t n_values, cap;
};

void column_scan_done(struct column_scan *s);

/* First pass. AS_E_NOMEM. */
AS_MUST_CHECK as_status column_scan_add(struct column_scan *s, const struct column_cell *cell,
                                        size_t line, struct as_err *err);

/* Does the second pass need the column? `n_rows` is the number of rows of the table. */
bool column_scan_counts(const struct column_scan *s, size_t n_rows);

/* Second pass, for cells of columns that column_scan_counts(). AS_E_TOO_LARGE: past
 * DATASET_MAX_CATEGORIES, or a value past DATASET_MAX_CLASS_NAME, and no column of texts;
 * AS_E_NOMEM. The caller prefixes the column's name. */
AS_MUST_CHECK as_status column_scan_count(struct column_scan *s, const struct column_cell *cell,
                                          struct as_err *err);

/* Decide the kind after the passes. Returns the number of features that the column gives. */
size_t column_scan_decide(struct column_scan *s, size_t n_rows, size_t buckets);

/* Describe the features of the column, after column_scan_decide(); the values move to *ret.
 *   name  borrowed; NULL: the caller does not keep the description, and only ret[0] is set, without
 *         a name
 *   ret   [s->width], zeroed
 * AS_E_INVAL: a number that is not finite; a different text in every row. AS_E_NOMEM. */
AS_MUST_CHECK as_status column_scan_end(struct column_scan *s, const char *name, size_t n_rows,
                                        struct dataset_column *ret, struct as_err *err);

/* The value of a cell in dataset.x for one feature: the number, NaN if it is missing, the index of
 * its category, or what c->part says. AS_E_INVAL: text in a column of numbers or dates, a number
 * that is not finite. c NULL: a number. */
AS_MUST_CHECK as_status column_value_of(const struct dataset_column *c,
                                        const struct column_cell *cell, float *ret,
                                        struct as_err *err);

/* The values of all features of a cell's column; c is the first of them. Errors as above. */
AS_MUST_CHECK as_status column_values_of(const struct dataset_column *c,
                                         const struct column_cell *cell, float *ret,
                                         struct as_err *err);

#endif
