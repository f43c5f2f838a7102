/* Parameters in, answers out: the part of a request that handlers touch.
 *
 * Path and query parameters are read strictly: each number has one spelling, and each word must be
 * in a list. Otherwise two URLs could mean the same page, and a misspelt filter would look like no
 * filter.
 *
 * Every answer passes settle_call(), which notes the time for the metrics and adds the headers that
 * all answers have. JSON is formatted into the arena of the exchange, which outlives the handler:
 * the transport sends the bytes later, from another thread. */
#include "api/server/call.h"

#include <string.h>

#include "api/http/http_content.h"
#include "api/server/answer_content.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

const char *call_param(const struct call *c, const char *name)
{
    size_t n = 0, len = strlen(name);
    for (const char *s = c->route->path; (s = strchr(s, '{')); n++) {
        s++;
        if (strncmp(s, name, len) == 0 && s[len] == '}')
            return c->params[n];
    }
    return ""; /* the route has no such parameter */
}

bool call_read_i64(const char *s, int64_t min, int64_t max, int64_t *ret)
{
    const char *digits = s + (*s == '-');
    int64_t v = 0;
    if (!as_streq(s, "0") && (*digits < '1' || *digits > '9'))
        return false;
    if (as_parse_i64(s, &v, NULL) < 0 || v < min || v > max)
        return false;
    *ret = v;
    return true;
}

as_status call_param_i64(const struct call *c, const char *name, int64_t min, int64_t *ret,
                         struct as_err *err)
{
    const char *s = call_param(c, name);
    if (!call_read_i64(s, min, INT32_MAX, ret))
        return as_fail(err, AS_E_INVAL,
                       "%s in the path is '%.40s', expected a number of at least %lld", name, s,
                       (long long)min);
    return AS_OK;
}

const char *call_query(const struct call *c, const char *name)
{
    return http_query(&c->x->head, name);
}

as_status call_query_i64(const struct call *c, const char *name, int64_t min, int64_t max,
                         int64_t *ret, struct as_err *err)
{
    const char *s = call_query(c, name);
    if (s && !call_read_i64(s, min, max, ret))
        return as_fail(err, AS_E_INVAL,
                       "parameter %s is '%.40s', expected a number in [%lld, %lld]", name, s,
                       (long long)min, (long long)max);
    return AS_OK;
}

as_status call_query_word(const struct call *c, const char *name, const char *const *words,
                          int *ret, struct as_err *err)
{
    const char *s = call_query(c, name);
    struct str list = {0};
    if (!s)
        return AS_OK;
    for (int i = 0; words[i]; i++) {
        if (as_streq(s, words[i])) {
            *ret = i;
            str_done(&list);
            return AS_OK;
        }
        str_printf(&list, "%s%s", i ? ", " : "", words[i]);
    }
    as_status st = as_fail(err, AS_E_INVAL, "parameter %s is '%.40s', expected one of %s", name, s,
                           str_cstr(&list));
    str_done(&list);
    return st;
}

as_status call_query_bool(const struct call *c, const char *name, bool *ret, struct as_err *err)
{
    static const char *const words[] = {"false", "true", NULL};
    int word = *ret;
    as_status st = call_query_word(c, name, words, &word, err);
    *ret = word == 1;
    return st;
}

as_status call_page(const struct call *c, struct page_req *ret, struct as_err *err)
{
    struct page_req page = {.cursor = call_query(c, "cursor")};
    as_status st = call_query_i64(c, "page_size", 1, PAGE_SIZE_MAX, &page.size, err);
    if (st < 0)
        return st;
    *ret = page;
    return AS_OK;
}

as_status call_runner_secret(const struct call *c, const char **ret, struct as_err *err)
{
    static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *secret = c->x->head.runner_secret;
    *ret = NULL;
    if (!secret)
        return AS_OK;
    size_t len = strlen(secret);
    if (len < RUNNER_SECRET_MIN || len > RUNNER_SECRET_MAX || strspn(secret, allowed) != len)
        return as_fail(
            err, AS_E_INVAL,
            "the header Assay-Runner-Secret has %zu characters, expected %d to %d digits "
            "and letters",
            len, RUNNER_SECRET_MIN, RUNNER_SECRET_MAX);
    char *digest = arena_alloc(c->arena, SHA256_HEX_SIZE, 1);
    if (!digest)
        return as_fail_nomem(err);
    *ret = digest;
    return sha256_of(secret, len, digest, err);
}

as_status call_seat(const struct call *c, bool *ret_has, int64_t *ret_seat, int64_t *ret_epoch,
                    struct as_err *err)
{
    const char *seat = c->x->head.seat, *epoch = c->x->head.world_epoch;
    *ret_has = seat && epoch;
    if (!seat && !epoch)
        return AS_OK;
    if (!seat || !epoch)
        return as_fail(err, AS_E_INVAL,
                       "the header %s is missing: the writer of a gang says its seat and its epoch",
                       seat ? "Assay-World-Epoch" : "Assay-Seat");
    if (!call_read_i64(seat, 0, INT32_MAX, ret_seat))
        return as_fail(err, AS_E_INVAL, "the header Assay-Seat is '%.40s', expected a number",
                       seat);
    if (!call_read_i64(epoch, 1, INT32_MAX, ret_epoch))
        return as_fail(err, AS_E_INVAL,
                       "the header Assay-World-Epoch is '%.40s', expected a number from 1", epoch);
    return AS_OK;
}

static bool is_read(const struct call *c)
{
    return as_streq(c->x->head.method, "GET") || as_streq(c->x->head.method, "HEAD");
}

static void settle_call(struct call *c, int status)
{
    struct http_answer *a = &c->x->answer;
    /* a worker has the time for it; an I/O thread, which answers local routes, has not */
    bool in_worker = c->route && !(c->route->flags & ROUTE_LOCAL);
    bool has_version = in_worker && is_read(c) && !a->stream && a->bytes;
    a->status = status;
    if (has_version)
        answer_version(c->x);
    if (in_worker)
        answer_compress(c->x);
    c->settled_ns = clock_mono_ns();
    http_answer_header(c->x, "Cache-Control", has_version ? "private, no-cache" : "no-store");
    http_answer_header(c->x, "X-Request-Id", c->request_id);
}

static as_status answer_json(struct call *c, int status, json_t *body, struct as_err *err)
{
    char *text = body ? json_format_ordered(body) : NULL;
    char *kept = arena_strdup(c->arena, text);
    free(text);
    json_decref(body);
    if (!kept)
        return as_fail(err, AS_E_NOMEM, "out of memory for the answer");
    c->x->answer.content_type = "application/json";
    c->x->answer.bytes = kept;
    c->x->answer.len = strlen(kept);
    settle_call(c, status);
    return AS_OK;
}

as_status call_ok(struct call *c, json_t *body, struct as_err *err)
{
    return answer_json(c, 200, body, err);
}

as_status call_created(struct call *c, json_t *body, const char *location, struct as_err *err)
{
    as_status st = answer_json(c, 201, body, err);
    if (st < 0)
        return st;
    const char *kept = arena_strdup(c->arena, location);
    if (kept)
        http_answer_header(c->x, "Location", kept);
    return AS_OK;
}

as_status call_ok_empty(struct call *c)
{
    settle_call(c, 200);
    return AS_OK;
}

as_status call_created_empty(struct call *c)
{
    settle_call(c, 201);
    return AS_OK;
}

as_status call_done(struct call *c)
{
    settle_call(c, 204);
    return AS_OK;
}

as_status call_bytes(struct call *c, const char *type, const char *bytes, size_t len)
{
    c->x->answer.content_type = type;
    c->x->answer.bytes = bytes;
    c->x->answer.len = len;
    settle_call(c, 200);
    return AS_OK;
}

as_status call_content(struct call *c, const char *type, const char *bytes, size_t len,
                       bool is_packed, const char *etag)
{
    http_answer_header(c->x, "Vary", "Accept-Encoding");
    if (etag && call_has_version(c, etag))
        return AS_OK;
    if (is_packed)
        http_answer_header(c->x, "Content-Encoding", "gzip");
    return call_bytes(c, type, bytes, len);
}

as_status call_stream(struct call *c, const char *type, struct http_stream *stream, int64_t size)
{
    c->x->answer.content_type = type;
    c->x->answer.stream = stream;
    c->x->answer.stream_size = size;
    settle_call(c, 200);
    return AS_OK;
}

as_status call_part(struct call *c, const char *type, struct http_stream *stream, int64_t first,
                    int64_t last, int64_t size)
{
    const char *range = arena_printf(c->arena, "bytes %lld-%lld/%lld", (long long)first,
                                     (long long)last, (long long)size);
    c->x->answer.content_type = type;
    c->x->answer.stream = stream;
    c->x->answer.stream_size = last - first + 1;
    settle_call(c, 206);
    if (range)
        http_answer_header(c->x, "Content-Range", range);
    return AS_OK;
}

as_status call_no_part(struct call *c, int64_t size)
{
    const char *range = arena_printf(c->arena, "bytes */%lld", (long long)size);
    settle_call(c, 416);
    if (range)
        http_answer_header(c->x, "Content-Range", range);
    return AS_OK;
}

as_status call_size(struct call *c, const char *type, int64_t size)
{
    c->x->answer.content_type = type;
    c->x->answer.head_size = size;
    settle_call(c, 200);
    return AS_OK;
}

bool call_has_version(struct call *c, const char *etag)
{
    http_answer_header(c->x, "ETag", etag);
    if (!http_etag_listed(c->x->head.if_none_match, etag))
        return false;
    settle_call(c, 304);
    return true;
}

bool call_may_wait(struct call *c, int64_t wait_ms)
{
    c->waiting.until_ns = c->x->start_ns + wait_ms * NS_PER_MS;
    return !c->is_draining && clock_mono_ns() < c->waiting.until_ns;
}

void call_wake(struct call *c)
{
    c->wants_wake = true;
}

void call_wait(struct call *c, int64_t key)
{
    c->waiting.key = key;
    c->wants_wait = true;
}

void call_submit(struct call *c, struct commit_member *const *members, size_t n, route_fn *then)
{
    c->commit.members = members;
    c->commit.n = n;
    c->commit.beat = NULL;
    c->commit.then = then;
}

void call_submit_beat(struct call *c, struct beat_member *m, route_fn *then)
{
    c->commit.members = NULL;
    c->commit.n = 0;
    c->commit.beat = m;
    c->commit.then = then;
}

as_status call_submit_one(struct call *c, struct commit_member *m, route_fn *then,
                          struct as_err *err)
{
    struct commit_member **list = arena_alloc(c->arena, 1, sizeof(struct commit_member *));
    if (!list)
        return as_fail_nomem(err);
    *list = m;
    call_submit(c, list, 1, then);
    return AS_OK;
}

struct commit_member *call_member(struct call *c, commit_kind kind)
{
    struct commit_member *m = arena_alloc(c->arena, 1, sizeof *m);
    if (!m)
        return NULL;
    m->kind = kind;
    m->arena = c->arena;
    return m;
}

struct commit_member *call_members(struct call *c, size_t n)
{
    struct commit_member *members = arena_alloc(c->arena, n, sizeof *members);
    struct arena *arenas = arena_alloc(c->arena, n, sizeof *arenas);
    if (!members || !arenas)
        return NULL;
    for (size_t i = 0; i < n; i++)
        members[i].arena = &arenas[i];
    c->commit.arenas = arenas;
    c->commit.n_arenas = n;
    return members;
}

void call_free_members(struct call *c)
{
    for (size_t i = 0; i < c->commit.n_arenas; i++)
        arena_done(&c->commit.arenas[i]);
    c->commit.n_arenas = 0;
}
