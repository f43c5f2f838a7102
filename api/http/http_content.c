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

#define PIECE_BYTES ((size_t)16 << 10)
#define SAMPLE_BYTES 1024
#define SAMPLE_SHRINKS (SAMPLE_BYTES - SAMPLE_BYTES / 32)
#define PIECE_EXTRA 16 /* heads of blocks, at most, where the level changes */

/* Do the first bytes of a piece shrink? One without so many is taken to. */
static bool shrinks(z_stream *probe, const char *bytes, size_t len)
{
    Bytef out[SAMPLE_SHRINKS];
    if (len < SAMPLE_BYTES || deflateReset(probe) != Z_OK)
        return true;
    probe->next_in = (void *)(uintptr_t)bytes;
    probe->avail_in = SAMPLE_BYTES;
    probe->next_out = out;
    probe->avail_out = sizeof out;
    return deflate(probe, Z_FINISH) == Z_STREAM_END;
}

/* Append the pieces to z, which has room for all of them. probe: NULL: all have the level. */
static bool deflate_pieces(z_stream *z, z_stream *probe, const char *bytes, size_t len, int level)
{
    int before = level;
    for (size_t i = 0; i < len; i += PIECE_BYTES) {
        size_t n = len - i < PIECE_BYTES ? len - i : PIECE_BYTES;
        int now = !probe || shrinks(probe, bytes + i, n) ? level : Z_NO_COMPRESSION;
        if (now != before && deflateParams(z, now, Z_DEFAULT_STRATEGY) != Z_OK)
            return false;
        before = now;
        z->next_in = (void *)(uintptr_t)(bytes + i);
        z->avail_in = (uInt)n;
        if (deflate(z, Z_NO_FLUSH) != Z_OK)
            return false;
    }
    return deflate(z, Z_FINISH) == Z_STREAM_END;
}

static as_status gzip(const void *bytes, size_t len, int level, z_stream *probe, struct str *ret,
                      struct as_err *err)
{
    z_stream z = {0};
    if (len > UINT32_MAX / 2 ||
        deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return as_fail_nomem(err);
    size_t room = deflateBound(&z, (uLong)len) + (len / PIECE_BYTES + 2) * PIECE_EXTRA;
    char *out = malloc(room);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)room;
    bool whole = out && deflate_pieces(&z, probe, bytes, len, level);
    if (whole)
        str_add(ret, out, room - z.avail_out);
    (void)deflateEnd(&z);
    free(out);
    return whole && !ret->failed ? AS_OK : as_fail_nomem(err);
}

as_status http_gzip(const void *bytes, size_t len, int level, struct str *ret, struct as_err *err)
{
    return gzip(bytes, len, level, NULL, ret, err);
}

as_status http_gzip_planes(const void *bytes, size_t len, int level, struct str *ret,
                           struct as_err *err)
{
    z_stream probe = {0};
    if (deflateInit2(&probe, 1, Z_DEFLATED, -12, 5, Z_DEFAULT_STRATEGY) != Z_OK)
        return as_fail_nomem(err);
    as_status st = gzip(bytes, len, level, &probe, ret, err);
    (void)deflateEnd(&probe);
    return st;
}
