/* One cell of a CSV table. */
#ifndef ASSAY_DATA_FORMATS_CSV_CELL_H
#define ASSAY_DATA_FORMATS_CSV_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of one cell, without its quotes, NUL-terminated. */
struct csv_cell {
    const char *s;
    size_t len;
};

typedef enum csv_kind { CSV_EMPTY, CSV_NUMBER, CSV_NOT_FINITE, CSV_TEXT } csv_kind;

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

#endif
