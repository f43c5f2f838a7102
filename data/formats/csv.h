/* CSV tables: RFC 4180 records with commas, quotes, LF or CRLF, and an optional UTF-8 byte order
 * mark.
 *
 * A reader returns one record at a time and needs memory for one record. It knows line numbers and
 * column names, so that each message names the place. It is strict: ragged rows, text after a
 * closing quote, a quote inside an unquoted cell, an unclosed quote and text that is not UTF-8 are
 * errors. Empty lines are skipped. One thread per reader. */
#ifndef ASSAY_DATA_FORMATS_CSV_H
#define ASSAY_DATA_FORMATS_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define CSV_MAX_COLUMNS ((size_t)65537)   /* DATASET_MAX_FEATURES and a target */
#define CSV_MAX_RECORD ((size_t)16 << 20) /* bytes */

/* AUTO: the first record is a header in three cases: it has text in a column where the second
 * record has a number; it is the only record and has text; or its numbers count the columns (four
 * or more: "0,1,2,3", "class,1,2,3,4") and those of the second record do not. */
typedef enum csv_header { CSV_HEADER_AUTO, CSV_HEADER_YES, CSV_HEADER_NO } csv_header;

/* The bytes of one cell, without its quotes, NUL-terminated. */
struct csv_cell {
    const char *s;
    size_t len;
};

struct csv_row {
    size_t line; /* where the record starts, from 1 */
    size_t n_cells;
    const struct csv_cell *cells; /* views of the reader until its next csv_next */
};

typedef enum csv_kind { CSV_EMPTY, CSV_NUMBER, CSV_NOT_FINITE, CSV_TEXT } csv_kind;

struct csv;

/* Open a file, or bytes that are borrowed until csv_free. The first two records are read.
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM, AS_E_TOO_LARGE; AS_E_INVAL: no record at all, or a bad one,
 * or a first record with other separators than commas. */
AS_MUST_CHECK as_status csv_open(const char *path, csv_header header, struct csv **ret,
                                 struct as_err *err);
AS_MUST_CHECK as_status csv_open_bytes(const char *bytes, size_t len, csv_header header,
                                       struct csv **ret, struct as_err *err);
void csv_free(struct csv *c);
AS_DEFINE_FREEP(struct csv, csv_free)

bool csv_has_header(const struct csv *c);
size_t csv_columns(const struct csv *c);
/* The header's text, or the column's index as text without one. A view of c. */
const char *csv_column_name(const struct csv *c, size_t column);

/* The next data record. AS_E_EXHAUSTED at the end (err untouched); AS_E_INVAL for a bad record,
 * such as "line 17 has 64 cells, expected 65"; AS_E_TOO_LARGE, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status csv_next(struct csv *c, struct csv_row *ret, struct as_err *err);

/* A reader over whole records in memory, with the columns of `like` and without a header: a block of
 * the same table (csv_blocks.h), for a thread of its own.
 *   bytes  [len + 1], borrowed until csv_free(), and changed
 *   line   the number of its first line
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status csv_open_block(const struct csv *like, char *bytes, size_t len, size_t line,
                                       struct csv **ret, struct as_err *err);

/* The number in a text of digits with at most one point and a minus, as most cells are: true if it
 * is one of at most 15 digits. Then *ret is exactly what csv_cell_kind() gives. */
static inline bool csv_plain_number(const char *s, size_t len, double *ret)
{
    static const double power[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *p = s, *end = s + len, *point = NULL;
    bool negative = p < end && *p == '-';
    uint64_t mantissa = 0;
    p += negative;
    if (p == end || end - p > 16)
        return false;
    for (; p < end; p++) {
        unsigned digit = (unsigned char)*p - (unsigned)'0';
        if (digit <= 9)
            mantissa = mantissa * 10 + digit;
        else if (*p == '.' && !point)
            point = p;
        else
            return false;
    }
    size_t digits = (size_t)(end - s) - negative - (point != NULL);
    if (digits == 0 || digits > 15)
        return false;
    /* the quotient of two whole numbers that a double holds is rounded once (Clinger 1990) */
    double v = (double)mantissa / power[point ? end - point - 1 : 0];
    *ret = negative ? -v : v;
    return true;
}

/* The kind of a cell; *ret is set to the value of a CSV_NUMBER. Spaces around a number are ignored.
 * "nan", "inf" and numbers that overflow a double are CSV_NOT_FINITE. Numbers are decimal, with a
 * point. */
csv_kind csv_cell_kind(const struct csv_cell *cell, double *ret);

/* The number in a column of `row`. AS_E_INVAL, with a message such as
 * "column 'ocean_proximity', line 2: found 'NEAR BAY', expected a number". */
AS_MUST_CHECK as_status csv_number(const struct csv *c, const struct csv_row *row, size_t column,
                                   double *ret, struct as_err *err);

#endif
