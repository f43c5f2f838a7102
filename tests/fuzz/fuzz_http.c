/* The raw head of a request, through everything that reads it before a handler does: the filter,
 * the target, the route table, Host and Origin. Each line of the input after the first is a header.
 */
#include <stdlib.h>
#include <string.h>

#include "api/server/auth.h"
#include "api/http/http_filter.h"
#include "api/server/route_find.h"
#include "api/server/routes.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t line_length(const char *s, size_t left)
{
    const char *end = memchr(s, '\n', left);
    return end ? (size_t)(end - s) : left;
}

/* "Name: value" as libmicrohttpd would hand it over. */
static void add_header(struct http_filter *f, const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);
    size_t n = colon ? (size_t)(colon - line) : len;
    char *name = arena_strndup(f->arena, line, n);
    if (name)
        http_filter_add(f, name, colon ? colon + 1 : "", colon ? len - n - 1 : 0);
}

/* What was accepted must be what the handlers rely on. */
static void check_head(const struct http_head *h, struct arena *a)
{
    static const char *const names[] = {"example.org", NULL};
    static const char *const methods[] = {"GET", "POST", "PUT", "HEAD"};
    if (h->path[0] != '/' || !as_utf8_valid(h->path, strlen(h->path)) || strchr(h->path, '\\') ||
        strstr(h->path, "/../") || as_ends_with(h->path, "/.."))
        abort();
    for (size_t i = 0; i < h->n_query; i++)
        if (http_query(h, h->query[i].name) != h->query[i].value)
            abort(); /* a name twice */
    for (size_t i = 0; i < AS_ARRAY_LEN(methods); i++) {
        struct route_match m;
        if (route_find(routes, n_routes, methods[i], h->path, a, &m, NULL) < 0)
            return;
        for (size_t k = 0; m.outcome == ROUTE_FOUND && k < ROUTE_PARAMS_MAX; k++)
            if (m.params[k] && (!*m.params[k] || strchr(m.params[k], '/')))
                abort();
    }
    if (h->host && http_host_allowed(h->host, names) && strchr(h->host, '/'))
        abort();
    if (h->origin)
        (void)http_origin_matches(h->origin, h->host);
    const char *token = auth_bearer(h->authorization);
    if (token && strpbrk(token, " \t\r\n"))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AS_AUTO(arena_done) struct arena a = {0};
    struct http_head head = {.content_length = -1};
    struct http_filter filter = {.head = &head, .arena = &a};
    const char *s = (const char *)data;
    size_t n = line_length(s, size);
    char *target = arena_strndup(&a, s, n);
    bool parsed = target && http_target_parse(target, &a, &head, NULL) == AS_OK;
    while (n < size) {
        s += n + 1;
        size -= n + 1;
        n = line_length(s, size);
        add_header(&filter, s, n);
    }
    bool clean = http_filter_check(&filter, "HTTP/1.1", NULL) == AS_OK;
    if (clean && head.is_chunked && head.content_length >= 0)
        abort();
    if (parsed)
        check_head(&head, &a);
    return 0;
}
