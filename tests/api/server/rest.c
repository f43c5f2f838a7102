/* Every request of the tests goes through check_reply(): it finds the operation by method and path,
 * and fails the test if the document does not list the status or the body does not fit the schema.
 * So each test of a route also tests the document. Requests use a fresh libcurl handle, so that no
 * connection is shared between tests. */
#include "tests/api/server/rest.h"

#include <curl/curl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/server/route_find.h"
#include "api/server/routes.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"
#include "tests/support/schema_check.h"
#include "tests/support/check_main.h"

void reply_done(struct reply *r)
{
    str_done(&r->body);
    str_done(&r->headers);
    json_decref(r->json);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    str_add(ctx, bytes, size * n);
    return size * n;
}

/* An error about a field must begin with its pointer, because many programs show only the
 * sentence. */
static void check_detail(const struct reply *r)
{
    const json_t *first = json_array_get(json_object_get(r->json, "errors"), 0);
    const char *pointer = json_string_value(json_object_get(first, "pointer"));
    const char *detail = json_string_value(json_object_get(r->json, "detail"));
    ck_assert_msg(r->status < 400 || !pointer || (detail && as_starts_with(detail, pointer)),
                  "%s is not named: %s", pointer, str_cstr(&r->body));
}

/* The document must list the status of the answer, and the body must fit its schema. */
static void check_reply(const struct reply *r, const char *method, const char *path)
{
    struct arena a = {0};
    struct route_match m;
    struct as_err err;
    char bare[512], msg[SCHEMA_MSG_MAX];
    bool listed = false;
    (void)snprintf(bare, sizeof bare, "%.*s", (int)strcspn(path, "?"), path);
    ck_assert_int_eq(route_find(routes, n_routes, method, bare, &a, &m, &err), AS_OK);
    if (m.outcome == ROUTE_FOUND) {
        const char *type = r->status >= 400 ? "application/problem+json" : "application/json";
        const json_t *schema =
            openapi_answer(m.route->path, m.route->method, r->status, type, &listed);
        ck_assert_msg(listed, "%s %s: status %d is not in the document: %s", method, path,
                      r->status, str_cstr(&r->body));
        if (schema && strcmp(method, "HEAD") != 0)
            ck_assert_msg(r->json && schema_check(schema, r->json, msg), "%s %s: %s in %s", method,
                          path, r->json ? msg : "no JSON", str_cstr(&r->body));
        check_detail(r);
    }
    arena_done(&a);
}

static struct curl_slist *make_headers(const struct rest *to, const struct rest_options *opts)
{
    struct curl_slist *list = NULL;
    char line[400];
    if (to->token) {
        (void)snprintf(line, sizeof line, "Authorization: Bearer %s", to->token);
        list = curl_slist_append(list, line);
    }
    if (!to->secret || *to->secret) {
        (void)snprintf(line, sizeof line, "Assay-Runner-Secret: %s",
                       to->secret ? to->secret : REST_SECRET);
        list = curl_slist_append(list, line);
    }
    (void)snprintf(line, sizeof line, "Content-Type:%s%s", opts->type ? " " : "",
                   opts->type ? opts->type : "");
    list = curl_slist_append(list, line);
    for (const char *const *h = opts->headers; h && *h; h++)
        list = curl_slist_append(list, *h);
    return list;
}

struct reply rest_call_with(const struct rest *to, const char *method, const char *path,
                            const struct rest_options *opts)
{
    struct reply r = {0};
    char url[1024], problem[CURL_ERROR_SIZE] = "";
    long status = 0;
    CURL *c = curl_easy_init();
    struct curl_slist *headers = make_headers(to, opts);
    (void)snprintf(url, sizeof url, "%s%s", to->url, path);
    (void)curl_easy_setopt(c, CURLOPT_URL, url);
    (void)curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
    (void)curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)PATIENCE_MS);
    (void)curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, problem);
    (void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(c, CURLOPT_WRITEDATA, &r.body);
    (void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_bytes);
    (void)curl_easy_setopt(c, CURLOPT_HEADERDATA, &r.headers);
    if (strcmp(method, "HEAD") == 0)
        (void)curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    if (opts->body) {
        (void)curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)opts->len);
        (void)curl_easy_setopt(c, CURLOPT_POSTFIELDS, opts->body);
    }
    CURLcode rc = curl_easy_perform(c);
    if (rc != CURLE_OK) {
        str_clear(&r.body);
        str_printf(&r.body, "%s %s: %s %s", method, path, curl_easy_strerror(rc), problem);
        ck_assert_msg(opts->may_fail, "%s", str_cstr(&r.body));
    }
    (void)curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(c);
    if (rc != CURLE_OK)
        return r;
    r.status = (int)status;
    if (r.body.len)
        r.is_json = json_parse(r.body.s, r.body.len, &r.json, NULL) == AS_OK;
    if (!opts->is_unchecked)
        check_reply(&r, method, path);
    return r;
}

struct reply rest_call(const struct rest *to, const char *method, const char *path,
                       const char *body)
{
    const char *type =
        strcmp(method, "PATCH") == 0 ? "application/merge-patch+json" : "application/json";
    const struct rest_options opts = {
        .body = body, .len = body ? strlen(body) : 0, .type = body ? type : NULL};
    return rest_call_with(to, method, path, &opts);
}

struct reply rest_get(const struct rest *to, const char *fmt, ...)
{
    char path[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    return rest_call(to, "GET", path, NULL);
}

static void *run_request(void *arg)
{
    struct rest_request *r = arg;
    int64_t begin = clock_mono_ns();
    r->reply = rest_call(&r->to, r->method, r->path, *r->body ? r->body : NULL);
    r->took_ms = (clock_mono_ns() - begin) / NS_PER_MS;
    return NULL;
}

void rest_start(struct rest_request *r, const struct rest *to, const char *method, const char *path,
                const char *body)
{
    *r = (struct rest_request){.to = *to};
    ck_assert_int_lt(snprintf(r->method, sizeof r->method, "%s", method), (int)sizeof r->method);
    ck_assert_int_lt(snprintf(r->path, sizeof r->path, "%s", path), (int)sizeof r->path);
    ck_assert_int_lt(snprintf(r->body, sizeof r->body, "%s", body ? body : ""),
                     (int)sizeof r->body);
    ck_assert_int_eq(pthread_create(&r->thread, NULL, run_request, r), 0);
}

void rest_join(struct rest_request *r)
{
    ck_assert_int_eq(pthread_join(r->thread, NULL), 0);
}

const char *reply_header(const struct reply *r, const char *name, char *buf, size_t size)
{
    size_t n = strlen(name);
    buf[0] = '\0';
    for (const char *s = str_cstr(&r->headers); *s;
         s += strcspn(s, "\n") + (s[strcspn(s, "\n")] == '\n')) {
        if (strncasecmp(s, name, n) != 0 || s[n] != ':')
            continue;
        const char *v = s + n + 1 + strspn(s + n + 1, " ");
        (void)snprintf(buf, size, "%.*s", (int)strcspn(v, "\r\n"), v);
        break;
    }
    return buf;
}

json_t *reply_get(const struct reply *r, const char *path)
{
    json_t *at = r->json;
    for (const char *s = path; at && *s;) {
        size_t n = strcspn(s, ".");
        at = json_is_array(at) ? json_array_get(at, (size_t)strtoul(s, NULL, 10))
                               : json_object_getn(at, s, n);
        s += n + (s[n] == '.');
    }
    return at;
}

const char *reply_str(const struct reply *r, const char *path)
{
    const char *s = json_string_value(reply_get(r, path));
    return s ? s : "";
}

long long reply_int(const struct reply *r, const char *path)
{
    const json_t *j = reply_get(r, path);
    return json_is_integer(j) ? (long long)json_integer_value(j) : -1;
}
