/* The checks of a head, in two steps: http_filter_add() notes each header line, and
 * http_filter_check() judges them together, because the dangerous heads are combinations.
 *
 * A request that two parsers could read in two ways is refused and not repaired: behind a proxy, a
 * repaired request could hide a second one (request smuggling). The target is decoded once, and an
 * escape that decodes to a separator is refused, so that no later code sees another path than the
 * one that was checked. Content-Length is parsed here by hand: strtol() would accept signs and
 * blanks. */
#include "api/http/http_filter.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

static bool is_printable(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)s[i] < 0x20 && s[i] != '\t') || s[i] == 0x7f)
            return false;
    return true;
}

/* A field name is a token (RFC 9110, 5.6.2). A token has no blanks, so "Content-Length : 5" is
 * refused: parsers differ in whether that is a Content-Length. */
static bool is_token(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "!#$%&'*+-.^_`|~");
    return n > 0 && s[n] == '\0';
}

static bool token_equals(const char *value, size_t len, const char *word)
{
    return len == strlen(word) && strncasecmp(value, word, len) == 0;
}

static void note_length(struct http_filter *f, const char *value, size_t len)
{
    f->n_length++;
    int64_t n = 0;
    f->bad_length |= len == 0 || len > 18;
    for (size_t i = 0; i < len && !f->bad_length; i++) {
        f->bad_length |= !isdigit((unsigned char)value[i]);
        n = n * 10 + (value[i] - '0');
    }
    if (!f->bad_length)
        f->head->content_length = n;
}

/* The field of `h` that stores the header `name`; NULL: the header is not stored. */
static const char **kept_slot(struct http_head *h, const char *name)
{
    const struct {
        const char *name;
        const char **slot;
    } kept[] = {
        {"Host", &h->host},
        {"Origin", &h->origin},
        {"Authorization", &h->authorization},
        {"Content-Type", &h->content_type},
        {"Content-Encoding", &h->content_encoding},
        {"Inference-Header-Content-Length", &h->inference_length},
        {"Idempotency-Key", &h->idempotency_key},
        {"Last-Event-ID", &h->last_event_id},
        {"Assay-Runner-Secret", &h->runner_secret},
        {"Assay-Seat", &h->seat},
        {"Assay-World-Epoch", &h->world_epoch},
        {"If-None-Match", &h->if_none_match},
        {"If-Range", &h->if_range},
        {"Range", &h->range},
        {"Accept-Encoding", &h->accept_encoding},
        {"Accept", &h->accept},
        {"X-Request-Id", &h->request_id},
        {"Sec-Fetch-Site", &h->fetch_site},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(kept); i++)
        if (strcasecmp(name, kept[i].name) == 0)
            return kept[i].slot;
    return NULL;
}

void http_filter_add(struct http_filter *f, const char *name, const char *value, size_t len)
{
    const char **slot = kept_slot(f->head, name);
    if (!is_token(name))
        f->problem = "a header's name is not a token";
    if (strcasecmp(name, "Content-Length") == 0) {
        note_length(f, value, len);
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        f->n_encoding++;
        f->bad_encoding |= !token_equals(value, len, "chunked");
        f->head->is_chunked = true;
    } else if (strcasecmp(name, "Expect") == 0) {
        f->head->expects_continue |= token_equals(value, len, "100-continue");
    }
    f->n_host += strcasecmp(name, "Host") == 0;
    f->n_authorization += strcasecmp(name, "Authorization") == 0;
    f->n_type += strcasecmp(name, "Content-Type") == 0;
    if (!slot)
        return;
    if (!is_printable(value, len) || memchr(value, '\0', len))
        f->problem = "a header holds control characters";
    *slot = arena_strndup(f->arena, value, len);
    f->no_memory |= !*slot;
}

as_status http_filter_check(const struct http_filter *f, const char *version, struct as_err *err)
{
    bool is_11 = as_streq(version, "HTTP/1.1");
    if (f->no_memory)
        return as_fail(err, AS_E_NOMEM, "out of memory for the headers");
    if (!is_11 && !as_streq(version, "HTTP/1.0"))
        return as_fail(err, AS_E_INVAL, "the HTTP version is not 1.0 or 1.1");
    if (f->n_length > 1 || f->bad_length)
        return as_fail(err, AS_E_INVAL, "Content-Length must be one decimal number");
    if (f->n_encoding && f->n_length)
        return as_fail(err, AS_E_INVAL, "Content-Length and Transfer-Encoding exclude each other");
    if (f->n_encoding > 1 || f->bad_encoding || (f->n_encoding && !is_11))
        return as_fail(err, AS_E_INVAL, "the only Transfer-Encoding known here is chunked");
    if (f->n_host > 1 || (is_11 && f->n_host == 0))
        return as_fail(err, AS_E_INVAL, "there must be exactly one Host header");
    if (f->n_authorization > 1 || f->n_type > 1)
        return as_fail(err, AS_E_INVAL, "Authorization and Content-Type may be sent once each");
    if (f->problem)
        return as_fail(err, AS_E_INVAL, "%s", f->problem);
    return AS_OK;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode [s, s + len) into the arena. In a path an encoded slash or backslash is refused: decoding
 * must not create new path segments. */
static as_status decode_escapes(const char *s, size_t len, bool in_path, struct arena *arena,
                                const char **ret, struct as_err *err)
{
    char *out = arena_alloc(arena, len + 1, 1);
    size_t n = 0;
    if (!out)
        return as_fail(err, AS_E_NOMEM, "out of memory for the request target");
    for (size_t i = 0; i < len; i++) {
        char c = s[i];
        if (c == '%') {
            int hi = i + 2 < len ? hex_digit(s[i + 1]) : -1;
            int lo = i + 2 < len ? hex_digit(s[i + 2]) : -1;
            if (hi < 0 || lo < 0)
                return as_fail(err, AS_E_INVAL, "the request target has a bad %% escape");
            c = (char)(hi * 16 + lo);
            i += 2;
            if (in_path && c == '/')
                return as_fail(err, AS_E_INVAL, "the path has an encoded slash");
        } else if (c == '+' && !in_path) {
            c = ' ';
        }
        if ((unsigned char)c < 0x20 || c == 0x7f || (in_path && c == '\\'))
            return as_fail(err, AS_E_INVAL, "the request target has a character 0x%02x",
                           (unsigned char)c);
        out[n++] = c;
    }
    if (!as_utf8_valid(out, n))
        return as_fail(err, AS_E_INVAL, "the request target is not UTF-8");
    *ret = out;
    return AS_OK;
}

static bool has_dot_segment(const char *path)
{
    for (const char *s = path; (s = strchr(s, '/'));) {
        s++;
        size_t n = strcspn(s, "/");
        if ((n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
            return true;
    }
    return false;
}

static as_status add_parameter(const char *s, size_t len, struct arena *arena,
                               struct http_head *head, struct as_err *err)
{
    const char *equals = memchr(s, '=', len);
    size_t n_name = equals ? (size_t)(equals - s) : len;
    struct http_pair p = {NULL, ""};
    as_status st = decode_escapes(s, n_name, false, arena, &p.name, err);
    if (st < 0)
        return st;
    if (equals)
        st = decode_escapes(equals + 1, len - n_name - 1, false, arena, &p.value, err);
    if (st < 0)
        return st;
    if (http_query(head, p.name))
        return as_fail(err, AS_E_INVAL, "the parameter '%.60s' is given twice", p.name);
    if (head->n_query == HTTP_QUERY_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "more than %d parameters", HTTP_QUERY_MAX);
    head->query[head->n_query++] = p;
    return AS_OK;
}

as_status http_target_parse(const char *raw, struct arena *arena, struct http_head *head,
                            struct as_err *err)
{
    size_t len = strlen(raw);
    if (len > HTTP_TARGET_MAX)
        return as_fail(err, AS_E_TOO_LARGE, "the request target is longer than %d bytes",
                       HTTP_TARGET_MAX);
    if (raw[0] != '/' || memchr(raw, '#', len))
        return as_fail(err, AS_E_INVAL, "the request target must be a path");
    size_t n_path = strcspn(raw, "?");
    as_status st = decode_escapes(raw, n_path, true, arena, &head->path, err);
    if (st < 0)
        return st;
    if (has_dot_segment(head->path))
        return as_fail(err, AS_E_INVAL, "the path has a dot segment");
    head->n_query = 0;
    head->query = arena_alloc(arena, HTTP_QUERY_MAX, sizeof *head->query);
    if (!head->query)
        return as_fail(err, AS_E_NOMEM, "out of memory for the request target");
    for (const char *s = raw + n_path; *s;) {
        size_t n = strcspn(++s, "&");
        if (n)
            st = add_parameter(s, n, arena, head, err);
        if (st < 0)
            return st;
        s += n;
    }
    return AS_OK;
}

const char *http_query(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->n_query; i++)
        if (strcmp(head->query[i].name, name) == 0)
            return head->query[i].value;
    return NULL;
}

/* The length of the host in "host[:port]", with the brackets of an IPv6 address; 0 if malformed. */
static size_t host_length(const char *host)
{
    size_t n = 0;
    if (host[0] == '[') {
        n = strcspn(host, "]");
        n = host[n] == ']' ? n + 1 : 0;
    } else {
        n = strcspn(host, ":");
    }
    if (n == 0 || (host[n] && host[n] != ':'))
        return 0;
    return host[n] == ':' && strspn(host + n + 1, "0123456789") != strlen(host + n + 1) ? 0 : n;
}

static bool host_is(const char *host, size_t n, const char *name)
{
    return strlen(name) == n && strncasecmp(host, name, n) == 0;
}

bool http_host_allowed(const char *host, const char *const *names)
{
    size_t n = host ? host_length(host) : 0;
    if (n == 0)
        return false;
    if (host_is(host, n, "localhost") || host_is(host, n, "127.0.0.1") || host_is(host, n, "[::1]"))
        return true;
    for (; names && *names; names++)
        if (host_is(host, n, *names))
            return true;
    return false;
}

bool http_origin_matches(const char *origin, const char *host)
{
    const char *rest = as_starts_with(origin, "http://")    ? origin + 7
                       : as_starts_with(origin, "https://") ? origin + 8
                                                            : NULL;
    return rest && host && strcasecmp(rest, host) == 0;
}
