/* Requests of the verbs. All paths are built here from escaped parts, so that an id with a slash or
 * a question mark cannot change the address of a request.
 *
 * A list is read in pages of PAGE_SIZE items, because the server limits the size of a page. The
 * cursor of a page is the only state that is kept between two requests. */
#include "cli/session/request.h"

#include <string.h>

#include "base/json.h"

#define PAGE_SIZE 500

as_status request_parse_ref(const char *text, bool number_optional, struct trial_ref *ret,
                            struct as_err *err)
{
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    struct trial_ref ref = {.number = -1};
    if (len == 0 || len >= sizeof ref.sweep)
        return as_fail(err, AS_E_USAGE, "expected %s, found '%.80s'",
                       number_optional ? "SWEEP or SWEEP/NUMBER" : "SWEEP/NUMBER", text);
    memcpy(ref.sweep, text, len);
    if (slash && (as_parse_i64(slash + 1, &ref.number, NULL) < 0 || ref.number < 0))
        return as_fail(err, AS_E_USAGE, "expected the number of a trial after '%s/', found '%.40s'",
                       ref.sweep, slash + 1);
    if (!slash && !number_optional)
        return as_fail(err, AS_E_USAGE, "expected SWEEP/NUMBER, found '%.80s'", text);
    *ret = ref;
    return AS_OK;
}

as_status request_parse_sweep(const char *text, struct trial_ref *ret, struct as_err *err)
{
    struct trial_ref ref;
    as_status st = request_parse_ref(text, true, &ref, err);
    if (st < 0)
        return st;
    if (ref.number >= 0)
        return as_fail(err, AS_E_USAGE, "expected SWEEP, found '%.80s'", text);
    *ret = ref;
    return AS_OK;
}

void request_path(struct str *b, const struct trial_ref *ref, const char *rest)
{
    str_puts(b, "/v1/sweeps");
    client_path_add(b, ref->sweep);
    if (ref->number >= 0) {
        str_puts(b, "/trials");
        client_path_add_i64(b, ref->number);
    }
    if (rest) {
        str_putc(b, '/');
        str_puts(b, rest);
    }
}

static as_status get(struct client *c, const struct trial_ref *ref, const char *rest,
                     const char *query, const struct client_opts *opts, json_t **ret,
                     struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    request_path(&path, ref, rest);
    as_status st = str_check(&path, err);
    if (st < 0)
        return st;
    st = client_call(c, "GET", path.s, query, NULL, opts, ret, NULL, err);
    if (st < 0)
        return st;
    if (!*ret)
        return as_fail(err, AS_E_INTERNAL, "the answer of the server is empty");
    return AS_OK;
}

as_status request_get(struct client *c, const struct trial_ref *ref, const char *rest,
                      const char *query, json_t **ret, struct as_err *err)
{
    return get(c, ref, rest, query, NULL, ret, err);
}

as_status request_get_within(struct client *c, const struct trial_ref *ref, const char *rest,
                             int64_t retry_ms, json_t **ret, struct as_err *err)
{
    const struct client_opts opts = {.retry_ms = retry_ms};
    return get(c, ref, rest, NULL, &opts, ret, err);
}

as_status request_one(struct client *c, const char *path, const char *id, json_t **ret,
                      struct as_err *err)
{
    AS_AUTO(str_done) struct str full = {0};
    str_puts(&full, path);
    client_path_add(&full, id);
    as_status st = str_check(&full, err);
    if (st < 0)
        return st;
    return client_call(c, "GET", full.s, NULL, NULL, NULL, ret, NULL, err);
}

as_status request_patch(struct client *c, const struct trial_ref *ref, const json_t *body,
                        json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str path = {0};
    const struct client_opts opts = {.content_type = "application/merge-patch+json"};
    request_path(&path, ref, NULL);
    as_status st = body ? str_check(&path, err) : as_fail_nomem(err);
    if (st < 0)
        return st;
    return client_call(c, "PATCH", path.s, NULL, body, &opts, ret, NULL, err);
}

as_status request_delete(struct client *c, const char *path, const char *id, struct as_err *err)
{
    AS_AUTO(str_done) struct str full = {0};
    str_puts(&full, path);
    client_path_add(&full, id);
    as_status st = str_check(&full, err);
    if (st < 0)
        return st;
    return client_call(c, "DELETE", full.s, NULL, NULL, NULL, NULL, NULL, err);
}

/* One page after `cursor` (NULL: the first). */
static as_status get_page(struct client *c, const char *path, const char *query, const char *cursor,
                          int64_t size, json_t **ret, struct as_err *err)
{
    AS_AUTO(str_done) struct str q = {0};
    str_puts(&q, query ? query : "");
    client_query_add_i64(&q, "page_size", size);
    if (cursor)
        client_query_add(&q, "cursor", cursor);
    as_status st = str_check(&q, err);
    if (st < 0)
        return st;
    st = client_call(c, "GET", path, q.s, NULL, NULL, ret, NULL, err);
    if (st < 0)
        return st;
    if (!json_is_array(json_object_get(*ret, "items"))) {
        json_decref(*ret);
        *ret = NULL;
        return as_fail(err, AS_E_INTERNAL, "the server returned a list without items");
    }
    return AS_OK;
}

as_status request_pages(struct client *c, const char *path, const char *query, int64_t limit,
                        request_page_fn page, void *arg, struct as_err *err)
{
    if (limit < 0)
        return as_fail(err, AS_E_USAGE, "--limit: found %lld, expected 0 (all) or more",
                       (long long)limit);
    AS_AUTO(as_freep) char *cursor = NULL;
    int64_t left = limit > 0 ? limit : INT64_MAX;
    do {
        JSON_AUTO answer = NULL;
        as_status st =
            get_page(c, path, query, cursor, left < PAGE_SIZE ? left : PAGE_SIZE, &answer, err);
        if (st < 0)
            return st;
        const json_t *items = json_object_get(answer, "items");
        st = page(arg, items, err);
        if (st < 0)
            return st;
        left -= (int64_t)json_array_size(items);
        as_freep(&cursor);
        const char *next = json_string_value(json_object_get(answer, "next_cursor"));
        cursor = as_strdup(next);
        if (next && !cursor)
            return as_fail_nomem(err);
    } while (cursor && left > 0);
    return AS_OK;
}

/* Add the page after `cursor` to *whole, and take over its cursor. */
static as_status append_page(struct client *c, const struct trial_ref *ref, const char *rest,
                             const char *query, const char *cursor, json_t *whole,
                             struct as_err *err)
{
    AS_AUTO(str_done) struct str q = {0};
    JSON_AUTO page = NULL;
    str_puts(&q, query ? query : "");
    client_query_add(&q, "cursor", cursor);
    as_status st = str_check(&q, err);
    if (st < 0)
        return st;
    st = request_get(c, ref, rest, q.s, &page, err);
    if (st < 0)
        return st;
    if (json_array_extend(json_object_get(whole, "items"), json_object_get(page, "items")) != 0 ||
        json_object_set(whole, "next_cursor", json_object_get(page, "next_cursor")) != 0)
        return as_fail(err, AS_E_INTERNAL, "the server returned a list without items");
    return AS_OK;
}

as_status request_items(struct client *c, const struct trial_ref *ref, const char *rest,
                        const char *query, int64_t limit, json_t **ret, struct as_err *err)
{
    JSON_AUTO whole = NULL;
    const char *cursor;
    as_status st = request_get(c, ref, rest, query, &whole, err);
    while (st == AS_OK && (cursor = json_string_value(json_object_get(whole, "next_cursor"))) &&
           (int64_t)json_array_size(json_object_get(whole, "items")) < limit)
        st = append_page(c, ref, rest, query, cursor, whole, err);
    if (st < 0)
        return st;
    json_t *items = json_object_get(whole, "items");
    while ((int64_t)json_array_size(items) > limit)
        (void)json_array_remove(items, json_array_size(items) - 1);
    *ret = as_steal(whole);
    return AS_OK;
}

static as_status append_items(void *arg, const json_t *items, struct as_err *err)
{
    if (json_array_extend(arg, (json_t *)items) != 0)
        return as_fail_nomem(err);
    return AS_OK;
}

as_status request_list(struct client *c, const char *path, const char *query, int64_t limit,
                       json_t **ret, struct as_err *err)
{
    JSON_AUTO all = json_array();
    if (!all)
        return as_fail_nomem(err);
    as_status st = request_pages(c, path, query, limit, append_items, all, err);
    if (st < 0)
        return st;
    *ret = as_steal(all);
    return AS_OK;
}
