/* The reader of json_reader.h. A number is read with integer arithmetic where that is exact: up to
 * 15 digits and a power of ten up to 22, which a double holds exactly, so that one multiplication
 * or division gives the nearest double. All other numbers go through strtod(). */
#include "base/json_reader.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void json_reader_init(struct json_reader *r, const char *text, size_t len, struct arena *arena)
{
    *r = (struct json_reader){.begin = text, .at = text, .end = text + len, .arena = arena};
}

bool json_reader_fail(struct json_reader *r, as_status st, const char *fmt, ...)
{
    char msg[AS_ERR_MSG_MAX];
    va_list ap;
    if (r->st < 0)
        return false;
    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    as_utf8_repair(msg);
    r->st = as_fail(&r->err, st, "%s", msg);
    return false;
}

static bool fail_here(struct json_reader *r, const char *expected)
{
    size_t line = 1, column = 1;
    for (const char *p = r->begin; p < r->at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    if (r->at >= r->end)
        return json_reader_fail(r, AS_E_INVAL,
                                "the JSON ends too early, at line %zu column %zu: expected %s",
                                line, column, expected);
    return json_reader_fail(
        r, AS_E_INVAL, "the JSON is wrong at line %zu column %zu: found '%.*s', expected %s", line,
        column, r->end - r->at < 12 ? (int)(r->end - r->at) : 12, r->at, expected);
}

static void skip_blanks(struct json_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
        r->at++;
}

char json_reader_peek(struct json_reader *r)
{
    skip_blanks(r);
    if (r->st < 0)
        return '\0';
    char c = r->at < r->end ? *r->at : '\0';
    if (c == '-' || (c >= '0' && c <= '9'))
        return '0';
    if (c && strchr("{[\"tfn", c))
        return c;
    (void)fail_here(r, "a value");
    return '\0';
}

static const char *kind_of(char c)
{
    switch (c) {
    case '{':
        return "an object";
    case '[':
        return "an array";
    case '"':
        return "a string";
    case '0':
        return "a number";
    case 'n':
        return "null";
    default:
        return "true or false";
    }
}

static bool expect(struct json_reader *r, char kind, const char *what)
{
    char c = json_reader_peek(r);
    if (c == kind)
        return true;
    return c && json_reader_fail(r, AS_E_INVAL, "%s is %s, expected %s", what, kind_of(c),
                                 kind_of(kind));
}

bool json_reader_enter(struct json_reader *r, char open, const char *what)
{
    if (!expect(r, open, what))
        return false;
    if (++r->depth > JSON_READER_MAX_DEPTH)
        return json_reader_fail(r, AS_E_TOO_LARGE, "the JSON is more than %d levels deep",
                                JSON_READER_MAX_DEPTH);
    r->at++;
    return true;
}

/* Pass the comma before the next member, or the end of an object or array. */
static bool next_member(struct json_reader *r, char close, bool *is_first)
{
    skip_blanks(r);
    if (r->st < 0)
        return false;
    bool was_first = *is_first;
    *is_first = false;
    if (r->at < r->end && *r->at == close) {
        r->at++;
        r->depth--;
        return false;
    }
    if (was_first)
        return r->at < r->end || fail_here(r, close == '}' ? "a key or }" : "a value or ]");
    if (r->at >= r->end || *r->at != ',')
        return fail_here(r, close == '}' ? "a comma or }" : "a comma or ]");
    r->at++;
    return true;
}

bool json_reader_more(struct json_reader *r, bool *is_first)
{
    return next_member(r, ']', is_first);
}

bool json_reader_key(struct json_reader *r, bool *is_first, struct json_text *ret)
{
    if (!next_member(r, '}', is_first))
        return false;
    skip_blanks(r);
    if (r->at >= r->end || *r->at != '"')
        return fail_here(r, "a key in quotes");
    if (!json_reader_text(r, "a key", ret))
        return false;
    skip_blanks(r);
    if (r->at >= r->end || *r->at != ':')
        return fail_here(r, "a colon after the key");
    r->at++;
    return true;
}

/* ---- strings ---- */

static int read_hex4(struct json_reader *r)
{
    int n = 0;
    if (r->end - r->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = *r->at++;
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return -1;
        n = n * 16 + d;
    }
    return n;
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xc0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xe0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3f));
        to[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3f));
    to[2] = (char)(0x80 | (c >> 6 & 0x3f));
    to[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Decode one escape; r->at is behind the backslash. Its text is never longer than the escape. */
static bool read_escape(struct json_reader *r, char *to, size_t *ret_n)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    char c = r->at < r->end ? *r->at++ : '\0';
    const char *found = c ? strchr(from, c) : NULL;
    if (found) {
        to[0] = into[found - from];
        *ret_n = 1;
        return true;
    }
    int high = c == 'u' ? read_hex4(r) : -1, low = 0;
    if (high >= 0xd800 && high < 0xdc00) {
        bool is_pair = r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u';
        r->at += is_pair ? 2 : 0;
        low = is_pair ? read_hex4(r) : -1;
        high =
            low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00) : -1;
    } else if (high >= 0xdc00 && high < 0xe000) {
        high = -1;
    }
    if (high < 0)
        return json_reader_fail(r, AS_E_INVAL, "the JSON has a bad escape in a string");
    *ret_n = put_utf8(to, (uint32_t)high);
    return true;
}

/* The length of the string up to its closing quote, with escapes; r->at is behind the first
 * quote. */
static bool measure_text(struct json_reader *r, size_t *ret_len, bool *ret_escaped)
{
    const char *p = r->at;
    *ret_escaped = false;
    for (; p < r->end && *p != '"'; p++) {
        if ((unsigned char)*p < 0x20)
            return json_reader_fail(r, AS_E_INVAL, "the JSON has a control character in a string");
        if (*p == '\\') {
            *ret_escaped = true;
            p++;
        }
    }
    if (p >= r->end) {
        r->at = r->end;
        return fail_here(r, "the end of a string");
    }
    *ret_len = (size_t)(p - r->at);
    if (*ret_len && !as_utf8_valid(r->at, *ret_len))
        return json_reader_fail(r, AS_E_INVAL, "a string of the JSON is not valid UTF-8");
    return true;
}

bool json_reader_text(struct json_reader *r, const char *what, struct json_text *ret)
{
    size_t raw = 0, len = 0;
    bool is_escaped;
    if (!expect(r, '"', what))
        return false;
    r->at++;
    if (!measure_text(r, &raw, &is_escaped))
        return false;
    if (!is_escaped) {
        *ret = (struct json_text){r->at, raw};
        r->at += raw + 1;
        return true;
    }
    char *to = arena_alloc(r->arena, raw + 1, 1);
    if (!to)
        return json_reader_fail(r, AS_E_NOMEM, "out of memory for a string");
    const char *stop = r->at + raw;
    while (r->at < stop) {
        size_t n = 1;
        if (*r->at != '\\')
            to[len] = *r->at++;
        else if (r->at++, !read_escape(r, to + len, &n))
            return false;
        len += n;
    }
    r->at++;
    *ret = (struct json_text){to, len};
    return true;
}

/* ---- numbers and words ---- */

static bool is_digit(const struct json_reader *r)
{
    return r->at < r->end && *r->at >= '0' && *r->at <= '9';
}

/* Digits; at least one. Adds them to *mantissa while it has room, and counts all. */
static bool read_digits(struct json_reader *r, uint64_t *mantissa, int *n)
{
    if (!is_digit(r))
        return fail_here(r, "a digit");
    for (; is_digit(r); r->at++, ++*n)
        if (*n < 18)
            *mantissa = *mantissa * 10 + (uint64_t)(*r->at - '0');
    return true;
}

/* A number that the fast path cannot hold exactly. */
static bool read_slowly(struct json_reader *r, const char *from, const char *what, double *ret)
{
    char small[64];
    size_t len = (size_t)(r->at - from);
    char *copy = len < sizeof small ? small : malloc(len + 1);
    if (!copy)
        return json_reader_fail(r, AS_E_NOMEM, "out of memory for a number");
    memcpy(copy, from, len);
    copy[len] = '\0';
    *ret = strtod(copy, NULL);
    if (copy != small)
        free(copy);
    return isfinite(*ret) ||
           json_reader_fail(r, AS_E_INVAL, "%s is %.*s, past the range of doubles", what,
                            (int)(len < 40 ? len : 40), from);
}

bool json_reader_number(struct json_reader *r, const char *what, double *ret)
{
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t mantissa = 0, power = 0;
    int n = 0, n_whole, n_power = 0;
    if (!expect(r, '0', what))
        return false;
    const char *from = r->at;
    bool is_negative = *r->at == '-', is_down = false;
    r->at += is_negative;
    bool leads_with_0 = r->at < r->end && *r->at == '0';
    if (!read_digits(r, &mantissa, &n))
        return false;
    if (leads_with_0 && n > 1)
        return json_reader_fail(r, AS_E_INVAL, "%s begins with 0 and has more digits", what);
    n_whole = n;
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (!read_digits(r, &mantissa, &n))
            return false;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        is_down = r->at < r->end && *r->at == '-';
        r->at += r->at < r->end && (*r->at == '-' || *r->at == '+');
        if (!read_digits(r, &power, &n_power))
            return false;
    }
    int64_t e = (n_power < 10 ? (is_down ? -(int64_t)power : (int64_t)power) : 1000) -
                (int64_t)(n - n_whole);
    if (n > 18 || mantissa > (uint64_t)1 << 53 || e < -22 || e > 22)
        return read_slowly(r, from, what, ret);
    double v = e < 0 ? (double)mantissa / tens[-e] : (double)mantissa * tens[e];
    *ret = is_negative ? -v : v;
    return true;
}

static bool read_word(struct json_reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return fail_here(r, "true, false or null");
    r->at += n;
    return true;
}

bool json_reader_bool(struct json_reader *r, const char *what, bool *ret)
{
    char c = json_reader_peek(r);
    if (!c)
        return false;
    if (c != 't' && c != 'f')
        return json_reader_fail(r, AS_E_INVAL, "%s is %s, expected true or false", what,
                                kind_of(c));
    *ret = c == 't';
    return read_word(r, c == 't' ? "true" : "false");
}

bool json_reader_count(struct json_reader *r, const char *what, size_t *ret)
{
    double v = 0;
    if (!json_reader_number(r, what, &v))
        return false;
    if (!(v >= 0 && v <= 9007199254740992.0 && v == floor(v)))
        return json_reader_fail(r, AS_E_INVAL, "%s is %.17g, expected a whole number of 0 or more",
                                what, v);
    *ret = (size_t)v;
    return true;
}

bool json_reader_null(struct json_reader *r)
{
    return json_reader_peek(r) == 'n' && read_word(r, "null");
}

bool json_reader_skip(struct json_reader *r)
{
    struct json_text text;
    double number;
    bool flag, is_first = true;
    switch (json_reader_peek(r)) {
    case '{':
        (void)json_reader_enter(r, '{', "a value");
        while (json_reader_key(r, &is_first, &text))
            (void)json_reader_skip(r);
        break;
    case '[':
        (void)json_reader_enter(r, '[', "a value");
        while (json_reader_more(r, &is_first))
            (void)json_reader_skip(r);
        break;
    case '"':
        return json_reader_text(r, "a value", &text);
    case '0':
        return json_reader_number(r, "a number", &number);
    case 'n':
        return json_reader_null(r);
    case '\0':
        return false;
    default:
        return json_reader_bool(r, "a value", &flag);
    }
    return r->st == AS_OK;
}

as_status json_reader_end(struct json_reader *r, struct as_err *err)
{
    skip_blanks(r);
    if (r->st == AS_OK && r->at < r->end)
        (void)fail_here(r, "the end of the JSON");
    if (r->st < 0 && err)
        *err = r->err;
    return r->st;
}
