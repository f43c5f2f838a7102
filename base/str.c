/* Growing strings, and numbers and durations from text and to text.
 *
 * An append that fails sets `failed`, and later appends do nothing. A function that builds a text
 * with many appends checks once, through str_check() or str_take().
 *
 * The C library converts numbers. No program here sets LC_NUMERIC, so the decimal separator is
 * always a point. as_format_double() tries 15, 16 and 17 digits and takes the first text that reads
 * back as the same double: 15 are always kept by a double, 17 always suffice.
 *
 * strtod() also reads hexadecimal numbers, "nan", "inf" and blanks before a number. So a text is
 * first checked to be decimal, and strtod() only converts it. */
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void str_done(struct str *b)
{
    free(b->s);
    *b = (struct str){0};
}

void str_clear(struct str *b)
{
    b->len = 0;
    b->failed = false;
    if (b->s)
        b->s[0] = 0;
}

static bool str_room(struct str *b, size_t extra)
{
    size_t need;
    if (b->failed || __builtin_add_overflow(b->len, extra, &need) ||
        __builtin_add_overflow(need, 1, &need)) {
        b->failed = true;
        return false;
    }
    if (need <= b->cap)
        return true;
    size_t cap = b->cap > SIZE_MAX / 2 ? need : b->cap * 2;
    if (cap < need)
        cap = need;
    if (cap < 64)
        cap = 64;
    if (as_grow(&b->s, cap, 1, NULL) < 0) {
        b->failed = true;
        return false;
    }
    b->cap = cap;
    return true;
}

void str_add(struct str *b, const char *bytes, size_t len)
{
    if (!str_room(b, len))
        return;
    if (len)
        memcpy(b->s + b->len, bytes, len);
    b->len += len;
    b->s[b->len] = 0;
}

void str_puts(struct str *b, const char *s)
{
    str_add(b, s, strlen(s));
}

void str_putc(struct str *b, char c)
{
    str_add(b, &c, 1);
}

void str_i64(struct str *b, int64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;
    do
        digits[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        digits[--at] = '-';
    str_add(b, digits + at, sizeof digits - at);
}

void str_printf(struct str *b, const char *fmt, ...)
{
    char few[160]; /* what fits here is formatted once */
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(few, sizeof few, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = true;
    } else if ((size_t)n < sizeof few) {
        str_add(b, few, (size_t)n);
    } else if (str_room(b, (size_t)n)) {
        (void)vsnprintf(b->s + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

const char *str_cstr(const struct str *b)
{
    return b->s ? b->s : "";
}

as_status str_check(const struct str *b, struct as_err *err)
{
    return b->failed ? as_fail(err, AS_E_NOMEM, "out of memory while building a text") : AS_OK;
}

char *str_take(struct str *b)
{
    if (b->failed) {
        str_done(b);
        return NULL;
    }
    char *s = b->s ? b->s : as_strdup("");
    *b = (struct str){0};
    return s;
}

bool as_streq(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool as_starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool as_ends_with(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

bool as_slug_valid(const char *s)
{
    size_t n = strlen(s);
    if (n == 0 || n > 63 || strchr("._-", s[0]))
        return false;
    return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

as_status as_parse_i64(const char *s, int64_t *ret, struct as_err *err)
{
    char *end;
    errno = 0;
    intmax_t v = strtoimax(s, &end, 10);
    if (end == s || *end || errno || isspace((unsigned char)s[0]))
        return as_fail(err, AS_E_INVAL, "'%.40s' is not a whole number", s);
    *ret = v;
    return AS_OK;
}

size_t as_decimal_len(const char *s)
{
    static const char digits[] = "0123456789";
    size_t n = s[0] == '-' || s[0] == '+';
    size_t whole = strspn(s + n, digits), fraction = 0;
    n += whole;
    if (s[n] == '.') {
        fraction = strspn(s + n + 1, digits);
        n += 1 + fraction;
    }
    if (whole + fraction == 0)
        return 0;
    if (s[n] == 'e' || s[n] == 'E') {
        size_t sign = s[n + 1] == '-' || s[n + 1] == '+';
        size_t power = strspn(s + n + 1 + sign, digits);
        n += power > 0 ? 1 + sign + power : 0;
    }
    return n;
}

as_status as_parse_double(const char *s, double *ret, struct as_err *err)
{
    size_t n = as_decimal_len(s);
    double v = n > 0 && !s[n] ? strtod(s, NULL) : NAN;
    if (isnan(v))
        return as_fail(err, AS_E_INVAL, "'%.40s' is not a number", s);
    if (isinf(v))
        return as_fail(err, AS_E_INVAL, "'%.40s' is too large for a number", s);
    *ret = v;
    return AS_OK;
}

as_status as_parse_duration_ms(const char *s, int64_t *ret_ms, struct as_err *err)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    size_t whole = strspn(s, "0123456789"), n = whole;
    if (whole > 0 && s[n] == '.' && isdigit((unsigned char)s[n + 1]))
        n += 1 + strspn(s + n + 1, "0123456789");
    for (size_t i = 0; whole > 0 && i < AS_ARRAY_LEN(units); i++) {
        double ms = strtod(s, NULL) * units[i].ms;
        if (strcmp(s + n, units[i].unit) != 0)
            continue;
        if (ms > 9e15)
            return as_fail(err, AS_E_INVAL, "'%.40s' is too long for a duration", s);
        *ret_ms = (int64_t)llround(ms);
        return AS_OK;
    }
    return as_fail(err, AS_E_INVAL, "'%.40s' is not a duration such as 30s, 5m, 4h or 1d", s);
}

as_status as_parse_size(const char *s, int64_t *ret_bytes, struct as_err *err)
{
    static const char letters[] = "kMGT";
    size_t whole = strspn(s, "0123456789"), n = whole;
    double unit = 1;
    if (whole > 0 && s[n] == '.' && isdigit((unsigned char)s[n + 1]))
        n += 1 + strspn(s + n + 1, "0123456789");
    const char *word = s[n] == ' ' && s[n + 1] ? s + n + 1 : s + n;
    const char *letter = *word ? strchr(letters, *word == 'K' ? 'k' : *word) : NULL;
    if (letter) {
        bool is_binary = word[1] == 'i';
        for (const char *at = letters; at <= letter; at++)
            unit *= is_binary ? 1024 : 1000;
        word += is_binary ? 2 : 1;
    }
    word += *word == 'B';
    double bytes = whole > 0 ? strtod(s, NULL) * unit : 0;
    if (whole == 0 || *word)
        return as_fail(err, AS_E_INVAL, "'%.40s' is not a size such as 4GiB, 500M or 1048576", s);
    if (bytes > 9e15)
        return as_fail(err, AS_E_INVAL, "'%.40s' is too large for a size", s);
    *ret_bytes = (int64_t)llround(bytes);
    return AS_OK;
}

const char *as_format_double(double v, char *buf, size_t size)
{
    if (isnan(v))
        return "NaN";
    if (isinf(v))
        return v > 0 ? "Infinity" : "-Infinity";
    /* a double keeps every text of 15 digits, except below DBL_MIN */
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        char format[] = "%.17g";
        format[2] = (char)('0' + digits / 10);
        format[3] = (char)('0' + digits % 10);
        /* not printf(), which is slow in a program that has libquadmath (OpenBLAS brings it) */
        (void)strfromd(buf, size, format, v);
        if (digits == 17 || strtod(buf, NULL) == v) /* 17 always suffice */
            break;
    }
    return buf;
}

size_t as_edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > 63 || m > 63)
        return 64;
    size_t rows[3][64]; /* the last three rows of the matrix of distances; row i is rows[i % 3] */
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        const size_t *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
            size_t best = above[j] < row[j - 1] ? above[j] + 1 : row[j - 1] + 1;
            row[j] = change < best ? change : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return rows[n % 3][m];
}

/* Are they equal but for the case of ASCII letters and blanks around them? */
static bool is_same_word(const char *a, const char *b)
{
    a += strspn(a, " ");
    b += strspn(b, " ");
    size_t n = strlen(a), m = strlen(b);
    while (n && a[n - 1] == ' ')
        n--;
    while (m && b[m - 1] == ' ')
        m--;
    return n == m && n > 0 && strncasecmp(a, b, n) == 0;
}

void as_nearest_offer(struct as_nearest *n, const char *name)
{
    size_t len = strlen(n->given), distance = as_edit_distance(n->given, name);
    size_t rank = 4 * distance + 2 * (strlen(name) != len) + (name[0] != n->given[0]);
    if (is_same_word(n->given, name))
        rank = 0;
    else if (distance >= len || distance > (len < 5 ? 1 : 2))
        return;
    if (n->name && rank >= n->rank)
        return;
    n->name = name;
    n->rank = rank;
}
