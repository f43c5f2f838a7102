/* The dialect of a CSV table: what its first bytes show. */
#ifndef ASSAY_DATA_FORMATS_CSV_DIALECT_H
#define ASSAY_DATA_FORMATS_CSV_DIALECT_H

#include <stdbool.h>
#include <stddef.h>

/* How the cells of a table are written. 0 in `separator` or `decimal`: csv_open_as() finds it in
 * the first records (csv_dialect_find). */
struct csv_dialect {
    char separator; /* between cells; one of CSV_SEPARATORS */
    char comment;   /* lines that begin with it are skipped; 0: there are none */
    char decimal;   /* '.', or ',': then cells such as "3,14" are returned as "3.14", and those such
                     * as "1.234,5" as "1234.5" */
};

#define CSV_SEPARATORS ",\t;|:^~"

/* Decide what `d` leaves open (0) from the first `len` bytes of a table; `whole`: they are all of
 * it.
 *   separator  of comma, tab, ';' and '|' those that cut all records into equally many cells, at
 *              least two. If there are several, the one with the smallest share of cells of text; a
 *              comma if that is equal. If there is none, a comma if the first record has one, else
 *              the one that cuts it into the most cells, else a comma
 *   decimal    ',' if cells are separated by ';', the comma of one is not one between thousands
 *              ("3,14", "0,896"; "3,141" may be), and no cell is a number with a point that is not
 *              one between thousands ("3.14"; "3.141" may be); else '.' */
void csv_dialect_find(const char *bytes, size_t len, bool whole, struct csv_dialect *d);

/* Replace the comma of a cell such as "-3,14" or "2,5e-3" by a point, and leave out what stands
 * between the thousands of one such as "1.234,5" or "1 234" (written_number.h); other cells stay.
 * cell [len + 1]: NUL-terminated, before and after. Returns its length. */
size_t csv_dialect_point(char *cell, size_t len);

/* "a comma", "a tab", "';'" … for messages. */
const char *csv_separator_name(char separator);

#endif
