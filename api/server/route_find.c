#include "api/server/route_find.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* Does `path` match `pattern`? If `params` is not NULL, copies its parameters into the arena.
 * *ret_failed is set if memory ran out. */
static bool match_path(const char *pattern, const char *path, struct arena *arena,
                       const char **params, bool *ret_failed)
{
    size_t n = 0;
    while (*pattern == '/' && *path == '/') {
        size_t want = strcspn(++pattern, "/"), have = strcspn(++path, "/");
        if (pattern[0] == '{') {
            if (have == 0)
                return false;
            if (params && n < ROUTE_PARAMS_MAX) {
                params[n] = arena_strndup(arena, path, have);
                *ret_failed |= !params[n];
            }
            n++;
        } else if (want != have || memcmp(pattern, path, want) != 0) {
            return false;
        }
        pattern += want;
        path += have;
    }
    return !*pattern && !*path;
}

static void add_allow(char allow[64], const char *method)
{
    size_t len = strlen(allow);
    if (!strstr(allow, method))
        (void)snprintf(allow + len, 64 - len, "%s%s", len ? ", " : "", method);
}

as_status route_find(const struct route *routes, size_t n, const char *method, const char *path,
                     struct arena *arena, struct route_match *ret, struct as_err *err)
{
    struct route_match m = {.outcome = ROUTE_UNKNOWN};
    bool is_head = as_streq(method, "HEAD"), failed = false;
    const struct route *get = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct route *r = &routes[i];
        if (!match_path(r->path, path, NULL, NULL, &failed))
            continue;
        add_allow(m.allow, r->method);
        if (as_streq(r->method, method))
            m.route = r;
        if (as_streq(r->method, "GET")) {
            get = r;
            add_allow(m.allow, "HEAD");
        }
    }
    if (m.allow[0])
        add_allow(m.allow, "OPTIONS");
    if (!m.route && is_head)
        m.route = get;
    m.outcome = m.route ? ROUTE_FOUND : m.allow[0] ? ROUTE_WRONG_METHOD : ROUTE_UNKNOWN;
    if (m.route)
        (void)match_path(m.route->path, path, arena, m.params, &failed);
    if (failed)
        return as_fail(err, AS_E_NOMEM, "out of memory for the path");
    *ret = m;
    return AS_OK;
}

bool route_has_query(const struct route *r, const char *name)
{
    size_t len = strlen(name);
    for (const char *s = r->query; s && *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        if (n == len && memcmp(s, name, n) == 0)
            return true;
        s += n;
    }
    return false;
}
