/* The kind of a cell, and its number.
 *
 * parse_decimal() converts numbers of up to 15 digits itself, because strtod() is slower. */
#include "data/formats/csv_cell.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_space(char ch)
{
    return ch == ' ' || ch == '\t';
}

/* 10^0 … 10^22: the powers that a double holds exactly. */
static const double exact_power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Parse a whole text of the form: sign digits [. digits] [e sign digits]. A few digits with a small
 * power are exact in double arithmetic (Clinger 1990); strtod() does the rest. No program here sets
 * LC_NUMERIC, so strtod() expects a point. */
static bool parse_decimal(const char *s, size_t len, double *ret)
{
    const char *p = s, *end = s + len;
    bool negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    uint64_t mantissa = 0;
    int digits = 0, significant = 0, power = 0;
    bool point = false;
    for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        digits++;
        significant += significant > 0 || *p != '0';
        if (significant <= 15) {
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
            power -= point;
        }
    }
    if (digits == 0)
        return false;
    if (p < end) {
        if (*p != 'e' && *p != 'E')
            return false;
        const char *q = p + 1;
        q += q < end && (*q == '-' || *q == '+');
        if (q == end || strspn(q, "0123456789") != (size_t)(end - q))
            return false;
        significant = 16; /* exponents are rare in tables: strtod() handles them */
    }
    if (significant <= 15 && power >= -22)
        *ret = (negative ? -1.0 : 1.0) * ((double)mantissa / exact_power[-power]);
    else
        *ret = strtod(s, NULL);
    return true;
}

static bool is_word(const char *s, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(s, word, len) == 0;
}

csv_kind csv_cell_kind(const struct csv_cell *cell, double *ret)
{
    const char *s = cell->s;
    size_t len = cell->len;
    for (; len && is_space(*s); s++)
        len--;
    while (len && is_space(s[len - 1]))
        len--;
    if (len == 0)
        return CSV_EMPTY;
    double v;
    if (csv_plain_number(s, len, ret))
        return CSV_NUMBER;
    char number[512];
    if (len < sizeof number && memchr("+-.0123456789", *s, 13)) {
        memcpy(number, s, len);
        number[len] = 0;
        if (parse_decimal(number, len, &v)) {
            if (!isfinite(v))
                return CSV_NOT_FINITE;
            *ret = v;
            return CSV_NUMBER;
        }
    }
    if (*s == '+' || *s == '-') {
        s++;
        len--;
    }
    bool word = is_word(s, len, "nan") || is_word(s, len, "inf") || is_word(s, len, "infinity");
    return word ? CSV_NOT_FINITE : CSV_TEXT;
}
