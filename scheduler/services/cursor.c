/* Cursors are neither secret nor trusted: every field is checked when a cursor comes back. */
#include "scheduler/services/cursor_priv.h"

#include <string.h>

#include "base/hash.h"
#include "base/str.h"

#define CURSOR_MAX 256

const char *cursor_make(struct arena *a, const char *list, const char *const *fields, size_t n)
{
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, list);
    for (size_t i = 0; i < n; i++) {
        str_putc(&b, ':');
        str_puts(&b, fields[i]);
    }
    char *hex = b.failed ? NULL : arena_alloc(a, b.len * 2 + 1, 1);
    if (hex)
        hex_format((const uint8_t *)str_cstr(&b), b.len, hex);
    return hex;
}

static int hex_digit(char c)
{
    const char *at = c ? strchr("0123456789abcdef", c) : NULL;
    return at ? (int)(at - "0123456789abcdef") : -1;
}

/* Decode hexadecimal; NULL: it is not hexadecimal of text. */
static char *hex_decode(struct arena *a, const char *hex, size_t len)
{
    char *s = arena_alloc(a, len / 2 + 1, 1);
    for (size_t i = 0; s && i + 1 < len; i += 2) {
        int hi = hex_digit(hex[i]), lo = hex_digit(hex[i + 1]);
        if (hi < 0 || lo < 0 || hi * 16 + lo == 0)
            return NULL;
        s[i / 2] = (char)(hi * 16 + lo);
    }
    return s;
}

static as_status refuse_cursor(struct as_err *err)
{
    return as_fail(err, AS_E_INVAL,
                   "cursor is not one that this list gave; expected a next_cursor of it");
}

as_status cursor_read(struct arena *a, const char *cursor, const char *list,
                      const char **ret_fields, size_t n, struct as_err *err)
{
    size_t len = strlen(cursor), list_len = strlen(list);
    if (len > CURSOR_MAX || len % 2 != 0)
        return refuse_cursor(err);
    char *s = hex_decode(a, cursor, len);
    if (!s || strncmp(s, list, list_len) != 0 || (n > 0) != (s[list_len] == ':') ||
        !as_utf8_valid(s, strlen(s)))
        return refuse_cursor(err);
    s += list_len;
    for (size_t i = 0; i < n; i++) {
        if (!s || *s != ':')
            return refuse_cursor(err);
        *s++ = '\0';
        ret_fields[i] = s;
        s = strchr(s, ':');
    }
    return AS_OK;
}

as_status cursor_i64(const char *field, int64_t *ret, struct as_err *err)
{
    return as_parse_i64(field, ret, NULL) == AS_OK ? AS_OK : refuse_cursor(err);
}

as_status page_size(const struct page_req *page, int64_t *ret, struct as_err *err)
{
    int64_t size = page->size ? page->size : 100;
    if (size < 1 || size > PAGE_SIZE_MAX)
        return as_fail(err, AS_E_INVAL, "page_size is %lld, expected 1 to %d", (long long)size,
                       PAGE_SIZE_MAX);
    *ret = size;
    return AS_OK;
}
