/* CSV tables: RFC 4180 records with commas or another separator, quotes, LF or CRLF, an optional
 * UTF-8 byte order mark, optional comment lines; as they are or packed with gzip.
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
#include "data/formats/csv_cell.h"
#include "data/formats/csv_dialect.h"

#define CSV_MAX_COLUMNS ((size_t)65537)   /* DATASET_MAX_FEATURES and a target */
#define CSV_MAX_RECORD ((size_t)16 << 20) /* bytes */

/* AUTO: the first record is a header in three cases: it has text in a column where the second
 * record has a number; it is the only record and has text; or its numbers count the columns (four
 * or more: "0,1,2,3", "class,1,2,3,4") and those of the second record do not. */
typedef enum csv_header { CSV_HEADER_AUTO, CSV_HEADER_YES, CSV_HEADER_NO } csv_header;

struct csv_row {
    size_t line; /* where the record starts, from 1 */
    size_t n_cells;
    const struct csv_cell *cells; /* views of the reader until its next csv_next */
};

struct csv;

/* Open a file (with gzip, its unpacked content), or bytes that are borrowed until csv_free. The
 * first two records are read. Cells are separated by commas. AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM,
 * AS_E_TOO_LARGE; AS_E_UNSUPPORTED: text in UTF-16; AS_E_INVAL: no record at all, or a bad one, or
 * a first record with another separator, or the line "sep=;" that Excel writes. */
AS_MUST_CHECK as_status csv_open(const char *path, csv_header header, struct csv **ret,
                                 struct as_err *err);
AS_MUST_CHECK as_status csv_open_bytes(const char *bytes, size_t len, csv_header header,
                                       struct csv **ret, struct as_err *err);
/* The same for a table of any dialect. `dialect` is borrowed. */
AS_MUST_CHECK as_status csv_open_as(const char *path, const struct csv_dialect *dialect,
                                    csv_header header, struct csv **ret, struct as_err *err);
AS_MUST_CHECK as_status csv_open_bytes_as(const char *bytes, size_t len,
                                          const struct csv_dialect *dialect, csv_header header,
                                          struct csv **ret, struct as_err *err);
void csv_free(struct csv *c);
AS_DEFINE_FREEP(struct csv, csv_free)

/* The dialect in use; nothing in it is open any more. */
struct csv_dialect csv_dialect_of(const struct csv *c);

bool csv_has_header(const struct csv *c);
size_t csv_columns(const struct csv *c);
/* The header's text, or the column's index as text without one. A view of c. */
const char *csv_column_name(const struct csv *c, size_t column);

/* The next data record. AS_E_EXHAUSTED at the end (err untouched); AS_E_INVAL for a bad record,
 * such as "line 17 has 64 cells, expected 65"; AS_E_TOO_LARGE, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status csv_next(struct csv *c, struct csv_row *ret, struct as_err *err);

/* A reader over whole records in memory, with the columns of `like` and without a header: a block
 * of the same table (csv_blocks.h), for a thread of its own.
 *   bytes  [len + 1], borrowed until csv_free(), and changed
 *   line   the number of its first line
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status csv_open_block(const struct csv *like, char *bytes, size_t len, size_t line,
                                       struct csv **ret, struct as_err *err);

/* The number in a column of `row`. AS_E_INVAL, with a message such as
 * "column 'ocean_proximity', line 2: found 'NEAR BAY', expected a number". */
AS_MUST_CHECK as_status csv_number(const struct csv *c, const struct csv_row *row, size_t column,
                                   double *ret, struct as_err *err);

#endif
