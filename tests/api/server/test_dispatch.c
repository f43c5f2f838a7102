/* Dispatching, with a small table of test handlers: which check refuses a request and with which
 * problem, the HTTP answer for each status of a handler, and the answers that an idempotency key
 * stores. test_server.c and test_auth.c test the routes of the service itself. */
#include <curl/curl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/server/auth.h"
#include "api/server/call.h"
#include "api/server/dispatch.h"
#include "api/server/dispatch_parts.h"
#include "api/server/http_metrics.h"
#include "api/http/listen.h"
#include "api/server/pool.h"
#include "api/server/token_rates.h"
#include "api/server/waiting_probe.h"
#include "api/server/web_files.h"
#include "scheduler/lifecycle/idempotency.h"
#include "tests/api/server/rest.h"
#include "tests/support/check_main.h"
#include "tests/support/pg_fixture.h"
#include "tests/support/raw_http.h"

#define IGNORED_BODY_MAX 1024 /* of a route that has no body */

static char db_url[PG_URL_SIZE];
static struct dispatch d;
static struct http_server *http;
static struct web_files *web;
static char url[128], tokens[TOKEN_ROLES][TOKEN_TEXT_SIZE]; /* by token_role */

/* The handlers' side. */
static atomic_int runs;    /* of all handlers */
static atomic_int outcome; /* what run_plain returns, an as_status */
static sem_t entered;      /* run_slow has begun */
static sem_t let_go;       /* run_slow waits for it */

static as_status answer_runs(struct call *c, struct as_err *err)
{
    return call_ok(c, json_pack("{s:i, s:b}", "runs", atomic_load(&runs), "drains", c->is_draining),
                   err);
}

static as_status run_plain(struct call *c, struct as_err *err)
{
    as_status st = (as_status)atomic_load(&outcome);
    atomic_fetch_add(&runs, 1);
    http_answer_header(c->x, "X-Handler", "ran");
    return st < 0 ? as_fail(err, st, "said by the handler") : answer_runs(c, err);
}

/* Another request with the same key ends first: it created the thing, and its answer is stored. */
static as_status run_second(struct call *c, struct as_err *err)
{
    atomic_fetch_add(&runs, 1);
    as_status st = idempotency_store(c->db, c->idem, 201, "{\"first\":true}", "/v1/t/1", err);
    return st < 0 ? st : as_fail(err, AS_E_CONFLICT, "it is there");
}

static as_status run_slow(struct call *c, struct as_err *err)
{
    (void)sem_post(&entered);
    while (sem_wait(&let_go) != 0)
        ;
    return answer_runs(c, err);
}

#define USERS (ROUTE_USER | ROUTE_ADMIN)
static const struct route table[] = {
    {"open", "GET", "/v1/t/open", 0, ROUTE_BODY_NONE, 0, "a b", run_plain},
    {"act", "POST", "/v1/t/act", 0, ROUTE_BODY_NONE, 0, "", run_plain},
    {"epoch", "POST", "/v1/t/epoch", 0, ROUTE_BODY_NONE, ROUTE_EPOCH, "", run_plain},
    {"refer", "POST", "/v1/t/refer", 0, ROUTE_BODY_NONE, ROUTE_REFERS, "", run_plain},
    {"local", "GET", "/v1/t/local", 0, ROUTE_BODY_NONE, ROUTE_LOCAL, "", run_plain},
    {"slow", "GET", "/v1/t/slow", 0, ROUTE_BODY_NONE, ROUTE_SLOW, "", run_slow},
    {"long", "GET", "/v1/t/long", 0, ROUTE_BODY_NONE, 0, "", run_slow},
    {"urgent", "GET", "/v1/t/urgent", 0, ROUTE_BODY_NONE, ROUTE_URGENT, "", run_slow},
    {"view", "GET", "/v1/t/view", 0, ROUTE_BODY_NONE, ROUTE_VIEW, "", run_slow},
    {"beat", "POST", "/v1/t/beat", USERS, ROUTE_BODY_NONE, ROUTE_BEAT, "", run_plain},
    {"make", "POST", "/v1/t/make", USERS, ROUTE_BODY_JSON, ROUTE_IDEMPOTENCY, "mode", run_plain},
    {"plain", "POST", "/v1/t/plain", USERS, ROUTE_BODY_JSON, 0, "", run_plain},
    {"second", "POST", "/v1/t/second", USERS, ROUTE_BODY_JSON, ROUTE_IDEMPOTENCY, "", run_second},
    {"change", "PATCH", "/v1/t/{thing}/x", USERS, ROUTE_BODY_MERGE_PATCH, 0, "", run_plain},
};

static void make_tokens(void)
{
    struct arena a = {0};
    struct as_err err;
    for (int r = 0; r < TOKEN_ROLES; r++) {
        struct token_row row;
        ck_ok(token_create(d.store, &a, (token_role)r, "test", 0, &row, tokens[r], &err), err);
    }
    arena_done(&a);
}

static void start_http(void)
{
    const struct http_app app = {.ctx = &d,
                                 .on_head = dispatch_head,
                                 .on_request = dispatch_request,
                                 .on_refusal = dispatch_refusal,
                                 .on_end = dispatch_end,
                                 .on_gone = dispatch_gone};
    struct http_options opts = http_options_default();
    struct listener_address address;
    struct as_err err;
    ck_ok(listen_open("127.0.0.1:0", false, &opts.listen_fd, &address, &err), err);
    (void)snprintf(url, sizeof url, "%s", address.url);
    ck_ok(http_start(&opts, &app, &http, &err), err);
}

static void start_http_server(void)
{
    const struct store_opts store = {.url = db_url};
    const struct waiting_hooks hooks = {.retry = dispatch_retry, .probe = waiting_probe, .ctx = &d};
    struct as_err err;
    (void)curl_global_init(CURL_GLOBAL_ALL);
    ck_assert_int_eq(sem_init(&entered, 0, 0), 0);
    ck_assert_int_eq(sem_init(&let_go, 0, 0), 0);
    atomic_store(&runs, 0);
    atomic_store(&outcome, (int)AS_OK);
    atomic_store(&d.is_draining, false);
    d.routes = table;
    d.n_routes = AS_ARRAY_LEN(table);
    ck_ok(store_open(&store, &d.store, &err), err);
    ck_ok(pool_create(1, &d.pool, &err), err);
    ck_ok(pool_create(1, &d.slow_pool, &err), err);
    ck_ok(pool_create(1, &d.view_pool, &err), err);
    ck_ok(pool_create(1, &d.urgent_pool, &err), err);
    ck_ok(pool_create(1, &d.beat_pool, &err), err);
    ck_ok(waiting_create(&hooks, &d.waiting, &err), err);
    ck_ok(web_files_load(NULL, &web, &err), err);
    d.web = web;
    ck_ok(attempt_key_create(d.store, &d.attempts, &err), err);
    ck_ok(auth_create(d.store, d.attempts, 0, &d.auth, &err), err);
    d.metrics = http_metrics_create(table, AS_ARRAY_LEN(table));
    ck_assert(d.metrics);
    make_tokens();
    start_http();
}

static void stop_http(void)
{
    ck_assert(http_stop(http, PATIENCE_MS));
    http = NULL;
}

static void stop_http_server(void)
{
    stop_http();
    pool_free(d.beat_pool);
    pool_free(d.urgent_pool);
    pool_free(d.view_pool);
    pool_free(d.slow_pool);
    pool_free(d.pool);
    waiting_free(d.waiting);
    web_files_free(web);
    http_metrics_free(d.metrics);
    auth_free(d.auth);
    attempt_key_free(d.attempts);
    store_close(d.store);
    (void)sem_destroy(&let_go);
    (void)sem_destroy(&entered);
}

/* A request with a body of `len` bytes and this line among its headers; NULL: without it. */
static struct reply send_bytes(int role, const char *method, const char *path, const char *line,
                               const char *type, const char *body, size_t len)
{
    const char *const headers[] = {line, NULL};
    struct rest to = {url, role < 0 ? NULL : tokens[role]};
    const struct rest_options opts = {.headers = headers, .body = body, .len = len, .type = type};
    return rest_call_with(&to, method, path, &opts);
}

#define NOBODY (-1)
static struct reply send_request(int role, const char *method, const char *path)
{
    return send_bytes(role, method, path, NULL, NULL, NULL, 0);
}

/* A request of a user, with a key. */
static struct reply post_with_key(const char *path, const char *key, const char *body)
{
    char line[80];
    (void)snprintf(line, sizeof line, "Idempotency-Key: %s", key);
    return send_bytes(ROLE_USER, "POST", path, line, "application/json", body, strlen(body));
}

/* A whole problem document with this code, which names the request and its path. */
static void check_problem(const struct reply *r, int status, const char *code, const char *path)
{
    char buf[100], bare[100];
    (void)snprintf(bare, sizeof bare, "%.*s", (int)strcspn(path, "?"), path);
    ck_assert_msg(r->status == status, "%s: got %d, wanted %d: %s", path, r->status, status,
                  str_cstr(&r->body));
    ck_assert_str_eq(reply_header(r, "Content-Type", buf, sizeof buf), "application/problem+json");
    ck_assert_str_eq(reply_header(r, "Cache-Control", buf, sizeof buf), "no-store");
    ck_assert_str_eq(reply_str(r, "code"), code);
    ck_assert_str_eq(reply_str(r, "type"), "about:blank");
    ck_assert_str_eq(reply_str(r, "instance"), bare);
    ck_assert_int_eq(reply_int(r, "status"), status);
    ck_assert_str_ne(reply_str(r, "title"), "");
    ck_assert_str_ne(reply_str(r, "detail"), "");
    ck_assert_str_ne(reply_str(r, "request_id"), "");
    ck_assert_str_eq(reply_header(r, "X-Request-Id", buf, sizeof buf), reply_str(r, "request_id"));
}

#define JSON "application/json"
/* If several checks would refuse a request, the first one of the chain refuses it, and no handler
 * runs. */
START_TEST(test_refusals)
{
    static const struct {
        int role;
        const char *method, *path, *type;
        int status;
        const char *code;
    } cases[] = {
        {NOBODY, "GET", "/v1/nothing", NULL, 404, "not_found"},
        {NOBODY, "POST", "/v1/nothing?c=1", "text/plain", 404, "not_found"},
        {NOBODY, "GET", "/elsewhere", NULL, 404, "not_found"},
        {NOBODY, "POST", "/", NULL, 404, "not_found"},
        {NOBODY, "GET", "/v1/t/make?c=1", NULL, 405, "method_not_allowed"},
        {NOBODY, "POST", "/v1/t/make?c=1", "text/plain", 401, "unauthorized"},
        {ROLE_VIEWER, "POST", "/v1/t/make?c=1", "text/plain", 403, "denied"},
        {ROLE_USER, "POST", "/v1/t/make?c=1", "text/plain", 400, "invalid"},
        {ROLE_USER, "POST", "/v1/t/make", "text/plain", 415, "unsupported_media"},
        {ROLE_USER, "PATCH", "/v1/t/a/x", JSON, 415, "unsupported_media"},
        {ROLE_USER, "POST", "/v1/t/make", JSON, 400, "invalid"}, /* the body is no JSON */
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        REPLY_AUTO r = send_bytes(cases[i].role, cases[i].method, cases[i].path, NULL,
                                  cases[i].type, cases[i].type ? "<" : NULL, 1);
        check_problem(&r, cases[i].status, cases[i].code, cases[i].path);
    }
    ck_assert_int_eq(atomic_load(&runs), 0);
}
END_TEST

START_TEST(test_allow)
{
    char buf[100];
    REPLY_AUTO r = send_request(NOBODY, "DELETE", "/v1/t/open");
    check_problem(&r, 405, "method_not_allowed", "/v1/t/open");
    ck_assert_str_eq(reply_header(&r, "Allow", buf, sizeof buf), "GET, HEAD, OPTIONS");
}
END_TEST

START_TEST(test_unknown_parameter)
{
    REPLY_AUTO some = send_request(NOBODY, "GET", "/v1/t/open?a=1&c=2");
    check_problem(&some, 400, "invalid", "/v1/t/open");
    ck_assert_str_eq(reply_str(&some, "detail"), "there is no parameter 'c' here; known: a b");
    REPLY_AUTO none = send_request(NOBODY, "GET", "/v1/t/local?a=1");
    check_problem(&none, 400, "invalid", "/v1/t/local");
    ck_assert_str_eq(reply_str(&none, "detail"), "there is no parameter 'a' here");
    char buf[20];
    REPLY_AUTO known = send_request(NOBODY, "GET", "/v1/t/open?b=1&a=2");
    ck_status(known, 200);
    ck_assert_str_eq(reply_header(&known, "X-Handler", buf, sizeof buf), "ran");
}
END_TEST

/* Announce a large body (Expect: 100-continue). Returns the status of the answer. */
static int announce_body(const char *target, const char *token, const char *type)
{
    char head[600];
    struct str out = {0};
    int port = (int)strtol(strrchr(url, ':') + 1, NULL, 10);
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                     "Content-Type: %s\r\nExpect: 100-continue\r\nContent-Length: 500000\r\n\r\n",
                     target, token, type);
    int status = raw_request(port, head, (size_t)n, PATIENCE_MS, &out);
    str_done(&out);
    return status;
}

/* A client that may not send a body gets no 100. The first check queries the database, the second
 * one finds the token in the cache. */
START_TEST(test_refused_before_the_body)
{
    char other[TOKEN_TEXT_SIZE];
    token_make(ROLE_USER, other);
    ck_assert_int_eq(announce_body("/v1/t/make", other, JSON), 401);
    ck_assert_int_eq(announce_body("/v1/t/make", other, JSON), 401);
    ck_assert_int_eq(announce_body("/v1/t/make", tokens[ROLE_VIEWER], JSON), 403);
    ck_assert_int_eq(announce_body("/v1/t/make", tokens[ROLE_VIEWER], JSON), 403);
    ck_assert_int_eq(announce_body("/v1/t/make?c=1", tokens[ROLE_USER], JSON), 400);
    ck_assert_int_eq(announce_body("/v1/t/make", tokens[ROLE_USER], "text/plain"), 415);
    ck_assert_int_eq(announce_body("/v1/t/act", tokens[ROLE_USER], JSON), 413);
    ck_assert_int_eq(atomic_load(&runs), 0);
}
END_TEST

/* A route without a body ignores any small body. */
START_TEST(test_body_sizes)
{
    size_t max = 1 << 20; /* JSON_BODY_MAX of request_head.c, as api/README.md gives it */
    AS_AUTO(as_freep) char *bytes = as_calloc(max + 1, 1);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, ' ', max + 1);
    memcpy(bytes, "{}", 2);
    REPLY_AUTO ignored =
        send_bytes(NOBODY, "POST", "/v1/t/act", NULL, "text/x", bytes, IGNORED_BODY_MAX);
    ck_status(ignored, 200);
    REPLY_AUTO refused =
        send_bytes(NOBODY, "POST", "/v1/t/act", NULL, "text/x", bytes, IGNORED_BODY_MAX + 1);
    check_problem(&refused, 413, "too_large", "/v1/t/act");
    REPLY_AUTO fits = send_bytes(ROLE_USER, "POST", "/v1/t/plain", NULL, JSON, bytes, max);
    ck_status(fits, 200);
    REPLY_AUTO over = send_bytes(ROLE_USER, "POST", "/v1/t/plain", NULL, JSON, bytes, max + 1);
    check_problem(&over, 413, "too_large", "/v1/t/plain");
    ck_assert_int_eq(atomic_load(&runs), 2);
}
END_TEST

START_TEST(test_media_types)
{
    static const struct {
        const char *method, *path, *type;
        int status;
    } cases[] = {
        {"POST", "/v1/t/plain", "APPLICATION/Json", 200},
        {"POST", "/v1/t/plain", "application/json;charset=utf-8", 200},
        {"POST", "/v1/t/plain", "application/merge-patch+json", 415},
        {"PATCH", "/v1/t/a/x", "application/merge-patch+json", 200},
        {"PATCH", "/v1/t/a/x", "application/json-patch+json", 415},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        REPLY_AUTO r =
            send_bytes(ROLE_USER, cases[i].method, cases[i].path, NULL, cases[i].type, "{}", 2);
        ck_assert_msg(r.status == cases[i].status, "%s: %d", cases[i].type, r.status);
    }
}
END_TEST

/* HEAD gets the headers of GET without a body, also for a refusal. */
START_TEST(test_head)
{
    char got[40], said[40], allow[40];
    REPLY_AUTO get = send_request(NOBODY, "GET", "/v1/t/open");
    REPLY_AUTO head = send_request(NOBODY, "HEAD", "/v1/t/open");
    ck_status(head, 200);
    ck_assert_int_eq(atomic_load(&runs), 2);
    ck_assert_uint_eq(head.body.len, 0);
    ck_assert_str_eq(reply_header(&head, "Content-Length", said, sizeof said),
                     reply_header(&get, "Content-Length", got, sizeof got));
    ck_assert_str_ne(got, "");
    REPLY_AUTO wrong = send_request(NOBODY, "HEAD", "/v1/t/act");
    ck_status(wrong, 405);
    ck_assert_uint_eq(wrong.body.len, 0);
    ck_assert_str_eq(reply_header(&wrong, "Allow", allow, sizeof allow), "POST, OPTIONS");
    REPLY_AUTO nothing = send_request(NOBODY, "HEAD", "/v1/nothing");
    ck_status(nothing, 404);
    ck_assert_uint_eq(nothing.body.len, 0);
    REPLY_AUTO query = send_request(NOBODY, "HEAD", "/v1/t/open?c=1");
    ck_status(query, 400);
}
END_TEST

/* The HTTP answer for each status of a handler. */
START_TEST(test_statuses)
{
    static const struct {
        as_status st;
        const char *method, *path;
        int status;
        const char *code;
    } cases[] = {
        {AS_E_INVAL, "GET", "/v1/t/open", 400, "invalid"},
        {AS_E_INVAL, "GET", "/v1/t/local", 400, "invalid"},
        {AS_E_UNSUPPORTED, "GET", "/v1/t/open", 400, "unsupported"},
        {AS_E_UNSUPPORTED, "POST", "/v1/t/refer", 422, "unprocessable"},
        {AS_E_STALE, "POST", "/v1/t/act", 409, "stale_attempt"},
        {AS_E_STALE, "POST", "/v1/t/epoch", 409, "stale_epoch"},
        {AS_E_CONFLICT, "POST", "/v1/t/epoch", 409, "conflict"},
        {AS_E_NOT_FOUND, "POST", "/v1/t/refer", 404, "not_found"},
        {AS_E_DENIED, "GET", "/v1/t/open", 403, "not_holder"},
        {AS_E_TOO_LARGE, "GET", "/v1/t/open", 413, "too_large"},
        {AS_E_UNAVAILABLE, "GET", "/v1/t/open", 503, "unavailable"},
        {AS_E_NOMEM, "GET", "/v1/t/open", 503, "out_of_memory"},
        {AS_E_INTERNAL, "GET", "/v1/t/open", 500, "internal"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char buf[20];
        atomic_store(&outcome, (int)cases[i].st);
        REPLY_AUTO r = send_request(NOBODY, cases[i].method, cases[i].path);
        check_problem(&r, cases[i].status, cases[i].code, cases[i].path);
        ck_assert_str_eq(reply_header(&r, "Retry-After", buf, sizeof buf),
                         cases[i].status == 503 ? "2" : "");
        ck_assert_str_eq(reply_header(&r, "X-Handler", buf, sizeof buf), ""); /* of an answer */
        /* details of internal errors are only in the log */
        bool is_told = strstr(str_cstr(&r.body), "said by the handler") != NULL;
        ck_assert_msg(is_told == (cases[i].status != 500), "%s", str_cstr(&r.body));
    }
}
END_TEST

START_TEST(test_key_replays)
{
    char buf[20];
    REPLY_AUTO first = post_with_key("/v1/t/make", "replays", "{\"a\":1}");
    ck_status(first, 200);
    ck_assert_int_eq(reply_int(&first, "runs"), 1);
    ck_assert_str_eq(reply_header(&first, "Idempotent-Replayed", buf, sizeof buf), "");
    REPLY_AUTO again = post_with_key("/v1/t/make", "replays", "{\"a\":1}");
    ck_status(again, 200);
    ck_assert_str_eq(str_cstr(&again.body), str_cstr(&first.body));
    ck_assert_str_eq(reply_header(&again, "Idempotent-Replayed", buf, sizeof buf), "true");
    REPLY_AUTO body = post_with_key("/v1/t/make", "replays", "{\"a\":2}");
    check_problem(&body, 422, "unprocessable", "/v1/t/make");
    REPLY_AUTO query = post_with_key("/v1/t/make?mode=x", "replays", "{\"a\":1}");
    check_problem(&query, 422, "unprocessable", "/v1/t/make");
    ck_assert_int_eq(atomic_load(&runs), 1);
    for (int i = 2; i <= 3; i++) { /* a route that takes no key */
        REPLY_AUTO plain = post_with_key("/v1/t/plain", "replays", "{\"a\":1}");
        ck_assert_int_eq(reply_int(&plain, "runs"), i);
    }
}
END_TEST

START_TEST(test_key_keeps_no_refusal)
{
    char buf[20];
    atomic_store(&outcome, (int)AS_E_CONFLICT);
    REPLY_AUTO refused = post_with_key("/v1/t/make", "refused", "{}");
    check_problem(&refused, 409, "conflict", "/v1/t/make");
    atomic_store(&outcome, (int)AS_OK);
    REPLY_AUTO done = post_with_key("/v1/t/make", "refused", "{\"other\":1}");
    ck_status(done, 200);
    ck_assert_int_eq(reply_int(&done, "runs"), 2);
    ck_assert_str_eq(reply_header(&done, "Idempotent-Replayed", buf, sizeof buf), "");
}
END_TEST

/* Two requests with one key race: the second one to end returns the answer of the first. */
START_TEST(test_key_of_a_race)
{
    char buf[40];
    REPLY_AUTO lost = post_with_key("/v1/t/second", "race", "{}");
    ck_status(lost, 201);
    ck_assert_str_eq(str_cstr(&lost.body), "{\"first\":true}");
    ck_assert_str_eq(reply_header(&lost, "Location", buf, sizeof buf), "/v1/t/1");
    ck_assert_int_eq(atomic_load(&runs), 1);
}
END_TEST

START_TEST(test_draining)
{
    char buf[40];
    REPLY_AUTO before = send_request(NOBODY, "GET", "/v1/t/open");
    ck_assert(json_is_false(reply_get(&before, "drains")));
    ck_assert_str_ne(reply_header(&before, "Connection", buf, sizeof buf), "close");
    atomic_store(&d.is_draining, true);
    REPLY_AUTO after = send_request(NOBODY, "GET", "/v1/t/open");
    ck_assert(json_is_true(reply_get(&after, "drains")));
    ck_assert_str_eq(reply_header(&after, "Connection", buf, sizeof buf), "close");
}
END_TEST

/* A slow request does not delay others: each pool has one thread here. */
START_TEST(test_slow_route)
{
    struct rest_request slow;
    struct rest to = {url, NULL};
    rest_start(&slow, &to, "GET", "/v1/t/slow", NULL);
    ck_assert_int_eq(sem_wait(&entered), 0);
    REPLY_AUTO fast = send_request(NOBODY, "GET", "/v1/t/open");
    ck_status(fast, 200);
    ck_assert_int_eq(sem_post(&let_go), 0);
    rest_join(&slow);
    ck_status(slow.reply, 200);
    reply_done(&slow.reply);
}
END_TEST

/* A heartbeat waits for none of the others, and neither does the look at its token, which is not
 * known yet. */
START_TEST(test_heartbeat_beside_all_others)
{
    static const char *const paths[] = {"/v1/t/slow", "/v1/t/long", "/v1/t/urgent", "/v1/t/view"};
    struct rest_request others[AS_ARRAY_LEN(paths)];
    struct rest to = {url, NULL};
    for (size_t i = 0; i < AS_ARRAY_LEN(paths); i++)
        rest_start(&others[i], &to, "GET", paths[i], NULL);
    for (size_t i = 0; i < AS_ARRAY_LEN(paths); i++)
        ck_assert_int_eq(sem_wait(&entered), 0);
    REPLY_AUTO beat = send_request(ROLE_USER, "POST", "/v1/t/beat");
    ck_status(beat, 200);
    for (size_t i = 0; i < AS_ARRAY_LEN(paths); i++)
        ck_assert_int_eq(sem_post(&let_go), 0);
    for (size_t i = 0; i < AS_ARRAY_LEN(paths); i++) {
        rest_join(&others[i]);
        ck_status(others[i].reply, 200);
        reply_done(&others[i].reply);
    }
}
END_TEST

/* Requests are counted under the rows of the table. */
/* Past its rate a token is refused before its handler runs, and told how long to wait. Others are
 * not, nor are its heartbeats. */
START_TEST(test_rate_of_a_token)
{
    char buf[40];
    AS_AUTO(token_rates_freep) struct token_rates *rates = token_rates_create(1);
    d.rates = rates;
    for (int i = 0; i < RATE_BURST_S; i++) {
        REPLY_AUTO r = send_bytes(ROLE_USER, "POST", "/v1/t/plain", NULL, JSON, "{}", 2);
        ck_assert_int_lt(r.status, 400);
        bool has_figures = *reply_header(&r, "RateLimit-Remaining", buf, sizeof buf) != '\0';
        ck_assert_msg(has_figures == (i >= RATE_BURST_S / 2), "%d: %s", i, buf);
    }
    int ran = atomic_load(&runs);
    REPLY_AUTO over = send_bytes(ROLE_USER, "POST", "/v1/t/plain", NULL, JSON, "{}", 2);
    check_problem(&over, 429, "over_rate", "/v1/t/plain");
    ck_assert_int_eq(atomic_load(&runs), ran);
    ck_assert_str_eq(reply_header(&over, "Retry-After", buf, sizeof buf), "1");
    ck_assert_str_eq(reply_header(&over, "RateLimit-Limit", buf, sizeof buf), "10");
    ck_assert_str_eq(reply_header(&over, "RateLimit-Remaining", buf, sizeof buf), "0");
    REPLY_AUTO beat = send_request(ROLE_USER, "POST", "/v1/t/beat");
    ck_assert_int_lt(beat.status, 400);
    REPLY_AUTO other = send_bytes(ROLE_ADMIN, "POST", "/v1/t/plain", NULL, JSON, "{}", 2);
    ck_assert_int_ne(other.status, 429);
    REPLY_AUTO open = send_request(NOBODY, "GET", "/v1/t/open");
    ck_assert_int_lt(open.status, 400);
    stop_http(); /* nobody looks at the rates any more */
    d.rates = NULL;
    start_http();
}
END_TEST

START_TEST(test_counts)
{
    static const char *const lines[] = {
        "{route=\"/v1/t/open\",method=\"GET\",code=\"200\"} 2\n",
        "{route=\"/v1/t/{thing}/x\",method=\"PATCH\",code=\"401\"} 1\n",
        "{route=\"none\",method=\"DELETE\",code=\"404\"} 1\n"};
    REPLY_AUTO one = send_request(NOBODY, "GET", "/v1/t/open");
    REPLY_AUTO two = send_request(NOBODY, "GET", "/v1/t/open");
    REPLY_AUTO denied = send_request(NOBODY, "PATCH", "/v1/t/a/x");
    REPLY_AUTO unknown = send_request(NOBODY, "DELETE", "/v1/nothing");
    stop_http(); /* each exchange has ended then */
    AS_AUTO(str_done) struct str out = {0};
    http_metrics_write(d.metrics, &out);
    for (size_t i = 0; i < AS_ARRAY_LEN(lines); i++)
        ck_assert_msg(strstr(str_cstr(&out), lines[i]) != NULL, "%s is not in %s", lines[i],
                      str_cstr(&out));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_dispatch");
    TCase *tc = tcase_create("dispatch");
    pg_fixture_start();
    pg_fixture_database(db_url);
    tcase_add_checked_fixture(tc, start_http_server, stop_http_server);
    tcase_add_test(tc, test_refusals);
    tcase_add_test(tc, test_allow);
    tcase_add_test(tc, test_unknown_parameter);
    tcase_add_test(tc, test_refused_before_the_body);
    tcase_add_test(tc, test_body_sizes);
    tcase_add_test(tc, test_media_types);
    tcase_add_test(tc, test_head);
    tcase_add_test(tc, test_statuses);
    tcase_add_test(tc, test_key_replays);
    tcase_add_test(tc, test_key_keeps_no_refusal);
    tcase_add_test(tc, test_key_of_a_race);
    tcase_add_test(tc, test_draining);
    tcase_add_test(tc, test_slow_route);
    tcase_add_test(tc, test_heartbeat_beside_all_others);
    tcase_add_test(tc, test_rate_of_a_token);
    tcase_add_test(tc, test_counts);
    suite_add_tcase(s, tc);
    return s;
}
