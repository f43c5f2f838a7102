/* Growing byte strings, and small predicates over C strings.
 *
 * After the first append, a struct str is always NUL-terminated. After an append that failed, later
 * appends do nothing and str_check() fails, so that a caller of many appends checks once at the
 * end. */
#ifndef ASSAY_BASE_STR_H
#define ASSAY_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "base/utf8.h"

struct str {
    char *s;    /* owned; NULL while empty */
    size_t len; /* bytes, without the NUL */
    size_t cap;
    bool failed; /* an append ran out of memory */
};

void str_done(struct str *b);
void str_clear(struct str *b); /* empties, keeps the memory */
void str_add(struct str *b, const char *bytes, size_t len);
void str_puts(struct str *b, const char *s);
void str_putc(struct str *b, char c);
void str_i64(struct str *b, int64_t v); /* in decimal */
void str_printf(struct str *b, const char *fmt, ...) AS_PRINTF(2, 3);

/* The text, "" when nothing was appended; a view of b until the next append. */
const char *str_cstr(const struct str *b);

/* AS_E_NOMEM when any append failed. */
AS_MUST_CHECK as_status str_check(const struct str *b, struct as_err *err);

/* The bytes; owned by the caller, b is empty afterwards. NULL when an append failed. */
char *str_take(struct str *b);

bool as_streq(const char *a, const char *b); /* NULL equals NULL only */
bool as_starts_with(const char *s, const char *prefix);
bool as_ends_with(const char *s, const char *suffix);

/* Slug: [a-z0-9][a-z0-9._-]{0,62}. The names of sweeps, data sets and runners are slugs. */
bool as_slug_valid(const char *s);

/* The length of the decimal number at the beginning of s: [sign] digits [. digits] [e [sign]
 * digits], with a digit before or after the point. 0: there is none. */
size_t as_decimal_len(const char *s);

/* Parse the whole of s as a decimal number without blanks; AS_E_INVAL names what was found. The
 * double must be finite. */
AS_MUST_CHECK as_status as_parse_i64(const char *s, int64_t *ret, struct as_err *err);
AS_MUST_CHECK as_status as_parse_double(const char *s, double *ret, struct as_err *err);

/* "30", "30s", "1.5m", "4h", "1d", "250ms" to milliseconds: digits, perhaps a fraction, and a unit
 * (none: seconds). AS_E_INVAL. */
AS_MUST_CHECK as_status as_parse_duration_ms(const char *s, int64_t *ret_ms, struct as_err *err);

/* "1048576", "500M", "4GiB", "1.5 GB" to bytes: digits, perhaps a fraction, perhaps a blank, and a
 * unit (none: bytes; k, M, G, T and kB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB powers of
 * 1024). AS_E_INVAL. */
AS_MUST_CHECK as_status as_parse_size(const char *s, int64_t *ret_bytes, struct as_err *err);

/* The shortest decimal text that reads back as v ("0.1", "1e-05", "NaN", "Infinity"). buf has 32
 * bytes or more. Use the returned text and not buf: it may be a literal. */
AS_MUST_CHECK const char *as_format_double(double v, char *buf, size_t size);

/* How many bytes must be inserted, deleted, replaced, or swapped with their neighbour to make b of
 * a, where no byte is changed twice (optimal string alignment); 64 when a string has more than 63
 * bytes. */
size_t as_edit_distance(const char *a, const char *b);

/* Finds the name that a mistyped one was meant to be. Set `given`, offer the names that exist, and
 * read `name`: NULL when none is near enough. Names are near with one edit, those of five bytes and
 * more with two, and those that differ in blanks around them and the case of letters alone, which
 * are nearest. One letter is not near another. Of equally near ones the one that has the same
 * length, then the one that begins with the same byte, then the first one is taken. */
struct as_nearest {
    const char *given; /* borrowed */
    const char *name;  /* a view of what was offered */
    size_t rank;       /* of `name`; lower is nearer */
};
void as_nearest_offer(struct as_nearest *n, const char *name);

#endif
