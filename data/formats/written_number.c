/* A text is read once, from left to right, and its plain form is made on the way: a sign or a blank
 * that has no place in a number ends it. What may stand between thousands is the first that stands
 * behind the first digits, so that "1,234'567" is no number. */
#include "data/formats/written_number.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

/* What is left of the text, and the plain form so far. */
struct reader {
    const char *p, *end;
    char plain[WRITTEN_NUMBER_MAX];
    size_t n;
};

/* Step over a text if it stands here. */
static bool take(struct reader *r, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, text, n) != 0)
        return false;
    r->p += n;
    return true;
}

static void skip_blanks(struct reader *r)
{
    while (take(r, " ") || take(r, "\t") || take(r, "\u00a0") || take(r, "\u202f"))
        continue;
}

static bool take_minus(struct reader *r)
{
    bool minus = take(r, "-");
    if (minus)
        r->plain[r->n++] = '-';
    return minus || take(r, "+");
}

/* Digits, to the plain form; returns how many. */
static size_t take_digits(struct reader *r)
{
    size_t n = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; n++)
        r->plain[r->n++] = *r->p++;
    return n;
}

/* A sign of a currency, or of percent: its bytes. */
static uint32_t take_sign(struct reader *r, bool percent)
{
    static const char *const signs[] = {"%", "$", "€", "£", "¥", "₹", "₽", "₩", "₺"};
    for (size_t i = percent ? 0 : 1; i < AS_ARRAY_LEN(signs); i++)
        if (take(r, signs[i])) {
            uint32_t bytes = 0;
            for (size_t k = strlen(signs[i]); k-- > 0;)
                bytes = bytes << 8 | (unsigned char)signs[i][k];
            return bytes;
        }
    return 0;
}

/* Groups of three digits behind the first one; false: they are none. */
static bool take_groups(struct reader *r, const char *between, size_t first, bool zero)
{
    size_t groups = 0;
    for (; take(r, between); groups++)
        if (take_digits(r) != 3)
            return false;
    return groups == 0 || (first >= 1 && first <= 3 && !zero);
}

/* Of what may stand between thousands, what stands here; NULL: nothing. A blank before a sign of a
 * currency is none. */
static const char *group_sign(const struct reader *r, char decimal)
{
    static const char *const points[] = {",", "'", "\u2019", " ", "\u00a0", "\u202f"};
    static const char *const commas[] = {".", "'", "\u2019", " ", "\u00a0", "\u202f"};
    const char *const *const signs = decimal == ',' ? commas : points;
    for (size_t i = 0; i < AS_ARRAY_LEN(points); i++) {
        struct reader ahead = *r;
        if (take(&ahead, signs[i]) && take_digits(&ahead) > 0)
            return signs[i];
    }
    return NULL;
}

static bool take_number(struct reader *r, char decimal)
{
    const char point[2] = {decimal, 0};
    bool zero = r->p < r->end && *r->p == '0';
    size_t first = take_digits(r), behind = 0;
    const char *between = first ? group_sign(r, decimal) : NULL;
    if (between && !take_groups(r, between, first, zero))
        return false;
    if (take(r, point)) {
        r->plain[r->n++] = '.';
        behind = take_digits(r);
    }
    return first + behind > 0;
}

size_t written_number(const char *s, size_t len, char decimal, char *ret, uint32_t *ret_sign)
{
    struct reader r = {.p = s, .end = s + len};
    if (len >= WRITTEN_NUMBER_MAX)
        return 0;
    skip_blanks(&r);
    bool owed = take(&r, "("), minus = !owed && take_minus(&r);
    if (owed)
        r.plain[r.n++] = '-';
    uint32_t sign = take_sign(&r, false);
    skip_blanks(&r);
    (void)(!minus && !owed && take_minus(&r));
    if (!take_number(&r, decimal))
        return 0;
    skip_blanks(&r);
    sign = sign ? sign : take_sign(&r, true);
    skip_blanks(&r);
    bool closed = !owed || take(&r, ")");
    skip_blanks(&r);
    if (!closed || r.p != r.end)
        return 0;
    r.plain[r.n] = 0;
    memcpy(ret, r.plain, r.n + 1);
    *ret_sign = sign;
    return r.n;
}
