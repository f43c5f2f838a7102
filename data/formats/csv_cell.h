/* One cell of a CSV table. */
#ifndef ASSAY_DATA_FORMATS_CSV_CELL_H
#define ASSAY_DATA_FORMATS_CSV_CELL_H

#include <stddef.h>

/* The bytes of one cell, without its quotes, NUL-terminated. */
struct csv_cell {
    const char *s;
    size_t len;
};

typedef enum csv_kind { CSV_EMPTY, CSV_NUMBER, CSV_NOT_FINITE, CSV_TEXT } csv_kind;

/* The kind of a cell; *ret is set to the value of a CSV_NUMBER. Spaces around a number are ignored.
 * "nan", "inf" and numbers that overflow a double are CSV_NOT_FINITE. Numbers are decimal, with a
 * point. */
csv_kind csv_cell_kind(const struct csv_cell *cell, double *ret);

#endif
