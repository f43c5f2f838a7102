/* Readers of three request headers. A header that is malformed counts as absent, never as an error:
 * RFC 9110 lets a server ignore a Range that it does not understand, and an answer in full is
 * always right. Only the first of several ranges would save bytes, so a list of ranges gets the
 * whole content. Numbers are read by hand, because strtoll() accepts signs and blanks. */
#include "api/http/http_content.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define BLANKS " \t"

/* The weight of a coding in thousandths: "gzip;q=0.5". 1000 without one; 0 if it is malformed. */
static int read_weight(const char *s, size_t len)
{
    const char *q = memchr(s, ';', len);
    if (!q)
        return 1000;
    q += 1 + strspn(q + 1, BLANKS);
    if (q + 3 > s + len || strncasecmp(q, "q=", 2) != 0)
        return 0;
    char *end = NULL;
    double w = strtod(q + 2, &end);
    return end > q + 2 && end <= s + len && w >= 0 && w <= 1 ? (int)(w * 1000 + 0.5) : 0;
}

bool http_accepts_gzip(const char *accept_encoding)
{
    int gzip = -1, identity = -1, any = -1;
    for (const char *s = accept_encoding; s && *s;) {
        s += strspn(s, BLANKS ",");
        size_t len = strcspn(s, ","), name = strcspn(s, BLANKS ",;");
        int w = read_weight(s, len);
        if ((name == 4 && strncasecmp(s, "gzip", 4) == 0) ||
            (name == 6 && strncasecmp(s, "x-gzip", 6) == 0))
            gzip = w;
        else if (name == 8 && strncasecmp(s, "identity", 8) == 0)
            identity = w;
        else if (name == 1 && *s == '*')
            any = w;
        s += len;
    }
    gzip = gzip < 0 ? any : gzip;
    return gzip > 0 && gzip >= identity;
}

static const char *without_weak(const char *etag)
{
    return as_starts_with(etag, "W/") ? etag + 2 : etag;
}

bool http_etag_listed(const char *list, const char *etag)
{
    const char *wanted = without_weak(etag);
    size_t n = strlen(wanted);
    for (const char *s = list; s && *s;) {
        s += strspn(s, BLANKS ",");
        if (*s == '*')
            return true;
        s = without_weak(s);
        if (*s != '"')
            return false; /* malformed */
        size_t len = 1 + strcspn(s + 1, "\"");
        if (!s[len])
            return false;
        len++;
        if (len == n && memcmp(s, wanted, n) == 0)
            return true;
        s += len;
    }
    return false;
}

/* Read digits; returns where they end, NULL if there are none or too many. */
static const char *read_digits(const char *s, int64_t *ret)
{
    size_t n = strspn(s, "0123456789");
    if (n == 0 || n > 18)
        return NULL;
    *ret = strtoll(s, NULL, 10);
    return s + n;
}

http_range http_range_read(const char *range, int64_t size, int64_t *ret_first, int64_t *ret_last)
{
    int64_t first = 0, last = size - 1;
    if (!range || strncasecmp(range, "bytes=", 6) != 0)
        return HTTP_RANGE_WHOLE;
    const char *s = range + 6;
    if (*s == '-') { /* the last so many bytes */
        s = read_digits(s + 1, &last);
        first = s && last < size ? size - last : 0;
        bool is_none = s && last == 0;
        last = size - 1;
        if (is_none && !*s)
            return HTTP_RANGE_UNSATISFIABLE;
    } else {
        s = read_digits(s, &first);
        if (!s || *s++ != '-')
            return HTTP_RANGE_WHOLE;
        if (*s)
            s = read_digits(s, &last);
        if (s && last < first && last != size - 1)
            return HTTP_RANGE_WHOLE; /* such as 5-2 */
        last = last < size ? last : size - 1;
    }
    if (!s || *s)
        return HTTP_RANGE_WHOLE;
    if (first >= size)
        return HTTP_RANGE_UNSATISFIABLE;
    *ret_first = first;
    *ret_last = last;
    return HTTP_RANGE_PART;
}

as_status http_gzip(const void *bytes, size_t len, int level, struct str *ret, struct as_err *err)
{
    z_stream z = {.next_in = (void *)(uintptr_t)bytes, .avail_in = (uInt)len};
    if (len > UINT32_MAX ||
        deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return as_fail_nomem(err);
    size_t bound = deflateBound(&z, (uLong)len);
    char *out = malloc(bound);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)bound;
    bool whole = out && deflate(&z, Z_FINISH) == Z_STREAM_END;
    if (whole)
        str_add(ret, out, bound - z.avail_out);
    (void)deflateEnd(&z);
    free(out);
    return whole && !ret->failed ? AS_OK : as_fail_nomem(err);
}
