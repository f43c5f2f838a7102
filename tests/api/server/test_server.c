/* For every route, the successful request and every refusal, with a real server and database. The
 * routes of runners are in test_runner_protocol.c. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "tests/api/server/fixture.h"
#include "tests/support/raw_http.h"
#include "tests/support/check_main.h"

START_TEST(test_service)
{
    struct rest nobody = as_nobody(), viewer = as_viewer();
    char buf[80];
    REPLY_AUTO health = rest_get(&nobody, "/healthz");
    ck_status(health, 200);
    ck_assert_str_ne(reply_str(&health, "version"), "");
    ck_assert_uint_eq(strlen(reply_header(&health, "X-Request-Id", buf, sizeof buf)), 16);
    REPLY_AUTO ready = rest_get(&nobody, "/readyz");
    ck_status(ready, 200);
    REPLY_AUTO doc = rest_get(&nobody, "/openapi.json");
    ck_status(doc, 200);
    ck_assert_str_eq(reply_str(&doc, "openapi"), "3.1.0");
    (void)make_sweep("figures", 1);
    REPLY_AUTO claimed = claim("figures", make_runner("figures", 1), 1, 60000);
    ck_status(claimed, 200);
    REPLY_AUTO metrics = rest_get(&viewer, "/metrics");
    ck_status(metrics, 200);
    static const char *const names[] = {
        "assay_build_info{version=",
        "assay_trials{state=",
        "assay_sweeps{state=",
        "assay_runners{state=",
        "assay_http_requests_total{route=\"/healthz\",method=\"GET\",code=\"200\"} ",
        "assay_http_request_duration_seconds_bucket{",
        "assay_lease_expirations_total",
        "assay_waiting_requests{for=\"any_trial\"} 0\n",
        "assay_waiting_requests{for=\"one_sweep\"} 0\n",
        "assay_waiting_requests{for=\"one_world\"} 0\n",
        "assay_gangs{state=\"waiting\"} 0\n",
        "assay_gathering_seats 0\n",
        "assay_demand_slots 0\n",
        "assay_demand_seconds 0.000\n",
        "assay_ranks_lost_total 0\n",
        "assay_stale_writes_rejected_total"};
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        ck_assert_msg(strstr(str_cstr(&metrics.body), names[i]) != NULL, "%s is missing", names[i]);
    drop_sweep("figures");
}
END_TEST

START_TEST(test_sweep_life)
{
    struct rest user = as_user(), viewer = as_viewer();
    char buf[200], path[200];
    REPLY_AUTO made = rest_call(&user, "POST", "/v1/sweeps", sweep_json("life", 3));
    ck_status(made, 201);
    ck_assert_str_eq(reply_str(&made, "id"), "life");
    ck_assert_str_eq(reply_header(&made, "Location", buf, sizeof buf), "/v1/sweeps/life");
    ck_assert_str_eq(reply_str(&made, "seed"), "7");
    ck_assert_int_eq(reply_int(&made, "planned_trials"), 3);
    REPLY_AUTO second = rest_call(&user, "POST", "/v1/sweeps", sweep_json("life", 3));
    ck_assert_str_eq(reply_str(&second, "id"), "life-2");
    REPLY_AUTO one = rest_get(&viewer, "/v1/sweeps/life");
    ck_status(one, 200);
    /* the parameters keep the order in which they were written */
    ck_assert_ptr_nonnull(strstr(str_cstr(&one.body), "\"parameters\":{\"lr\":"));
    REPLY_AUTO page = rest_get(&viewer, "/v1/sweeps?page_size=1");
    ck_status(page, 200);
    ck_assert_str_eq(reply_str(&page, "items.0.id"), "life-2");
    REPLY_AUTO next =
        rest_get(&viewer, "/v1/sweeps?page_size=1&cursor=%s", reply_str(&page, "next_cursor"));
    ck_status(next, 200);
    ck_assert_str_eq(reply_str(&next, "items.0.id"), "life");
    REPLY_AUTO paused = rest_call(&user, "PATCH", "/v1/sweeps/life", "{\"state\":\"paused\"}");
    ck_status(paused, 200);
    ck_assert_str_eq(reply_str(&paused, "state"), "paused");
    REPLY_AUTO only = rest_get(&viewer, "/v1/sweeps?state=paused");
    ck_status(only, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&only, "items")), 1);
    REPLY_AUTO more = rest_call(&user, "PATCH", "/v1/sweeps/life",
                                "{\"state\":\"running\",\"limits\":{\"max_trials\":5}}");
    ck_status(more, 200);
    ck_assert_int_eq(reply_int(&more, "planned_trials"), 5);
    REPLY_AUTO busy = rest_call(&user, "DELETE", "/v1/sweeps/life", NULL);
    ck_status(busy, 409);
    REPLY_AUTO cancelled =
        rest_call(&user, "PATCH", "/v1/sweeps/life", "{\"state\":\"cancelled\"}");
    ck_status(cancelled, 200);
    REPLY_AUTO deleted = rest_call(&user, "DELETE", "/v1/sweeps/life", NULL);
    ck_status(deleted, 204);
    REPLY_AUTO gone = rest_get(&viewer, "/v1/sweeps/life");
    ck_status(gone, 404);
    ck_assert_str_eq(reply_str(&gone, "code"), "not_found");
    (void)snprintf(path, sizeof path, "life-2");
    drop_sweep(path);
}
END_TEST

START_TEST(test_bad_bodies)
{
    static const struct {
        const char *body, *type;
        int status;
        const char *part;
    } cases[] = {
        {"{", "application/json", 400, "line 1"},
        {"", "application/json", 400, "no body"},
        {"[]", "application/json", 400, "object"},
        {"{\"a\":1,\"a\":2}", "application/json", 400, "uplicate"},
        {"{\"name\":\"\xff\"}", "application/json", 400, "UTF-8"},
        {"{\"name\":\"\\u0000\"}", "application/json", 400, "\"pointer\":\"/name\""},
        {"{} x", "application/json", 400, ""},
        {"{}", "text/plain", 415, "application/json"},
        {"{}", "application/jsonx", 415, "application/json"},
        {"{}", NULL, 415, "application/json"},
        {"{}", "application/json; charset=utf-8", 400, "name"},
        {"{\"name\":\"x\",\"nmae\":1}", "application/json", 400, "\"pointer\":"},
    };
    struct rest user = as_user();
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        const struct rest_options opts = {
            .body = cases[i].body, .len = strlen(cases[i].body), .type = cases[i].type};
        REPLY_AUTO r = rest_call_with(&user, "POST", "/v1/sweeps", &opts);
        ck_assert_msg(r.status == cases[i].status && strstr(str_cstr(&r.body), cases[i].part),
                      "%s: %d %s", cases[i].body, r.status, str_cstr(&r.body));
    }
    struct str bomb = {0};
    for (int i = 0; i < 100000; i++)
        str_putc(&bomb, '[');
    REPLY_AUTO deep = rest_call(&user, "POST", "/v1/sweeps", str_cstr(&bomb));
    ck_status(deep, 413);
    str_clear(&bomb);
    str_puts(&bomb, "{\"name\":\"");
    for (int i = 0; i < 1100000; i++)
        str_putc(&bomb, 'a');
    str_puts(&bomb, "\"}");
    REPLY_AUTO large = rest_call(&user, "POST", "/v1/sweeps", str_cstr(&bomb));
    ck_status(large, 413);
    ck_assert_str_eq(reply_str(&large, "code"), "too_large");
    str_done(&bomb);
}
END_TEST

START_TEST(test_bad_documents)
{
    struct rest user = as_user(), viewer = as_viewer();
    REPLY_AUTO later =
        rest_call(&user, "POST", "/v1/sweeps",
                  "{\"name\":\"g\",\"metric\":{\"name\":\"val_loss\",\"goal\":\"minimize\"},"
                  "\"parameters\":{\"x\":"
                  "{\"type\":\"float\",\"min\":0,\"max\":1}},\"resources\":{\"gpus\":2},"
                  "\"limits\":{\"max_trials\":3},"
                  "\"trial\":{\"train\":{\"dataset\":\"digits\",\"epochs\":1}}}");
    ck_status(later, 400);
    ck_assert_str_eq(reply_str(&later, "code"), "unsupported");
    ck_assert_str_eq(reply_str(&later, "errors.0.pointer"), "/resources/gpus");
    REPLY_AUTO bounds = rest_call(
        &user, "POST", "/v1/sweeps",
        "{\"name\":\"g\",\"metric\":{\"name\":\"l\",\"goal\":\"minimize\"},\"parameters\":{\"x\":"
        "{\"type\":\"float\",\"min\":2,\"max\":1}},\"trial\":{\"command\":[\"true\"]}}");
    ck_status(bounds, 400);
    ck_assert(as_starts_with(reply_str(&bounds, "errors.0.pointer"), "/parameters/x"));
    ck_assert_str_eq(reply_str(&bounds, "errors.1.pointer"), "/limits/max_trials");
    ck_assert_str_eq(reply_str(&bounds, "detail"), reply_str(&bounds, "errors.0.detail"));
    REPLY_AUTO data = rest_call(
        &user, "POST", "/v1/sweeps",
        "{\"name\":\"g\",\"metric\":{\"name\":\"val_error\",\"goal\":\"minimize\"},"
        "\"parameters\":{\"lr\":{\"type\":\"float\",\"min\":0.1,\"max\":1}},\"trial\":{\"train\":"
        "{\"dataset\":\"nowhere\",\"model\":{\"kind\":\"linear\"},\"optimizer\":{\"kind\":\"sgd\","
        "\"lr\":\"${lr}\"},\"epochs\":1}}}");
    ck_status(data, 400);
    REPLY_AUTO none = rest_call(&viewer, "GET", "/v1/sweeps/g", NULL);
    ck_status(none, 404); /* and nothing was created */
}
END_TEST

START_TEST(test_bad_requests)
{
    static const struct {
        const char *method, *path;
        int status;
    } cases[] = {
        {"GET", "/v1/sweeps?page_size=0", 400},
        {"GET", "/v1/sweeps?page_size=1001", 400},
        {"GET", "/v1/sweeps?page_size=x", 400},
        {"GET", "/v1/sweeps?cursor=x", 400},
        {"GET", "/v1/sweeps?state=sleeping", 400},
        {"GET", "/v1/sweeps?colour=red", 400},
        {"GET", "/v1/sweeps/none/trials", 404},
        {"GET", "/v1/sweeps/none/trials?sort=age", 400},
        {"GET", "/v1/sweeps/none/trials?order=up", 400},
        {"GET", "/v1/sweeps/none/trials/-1", 400},
        {"GET", "/v1/sweeps/none/trials/1e3", 400},
        {"GET", "/v1/sweeps/none/trials/00", 400},
        {"GET", "/v1/sweeps/none/trials/+1", 400},
        {"GET", "/v1/sweeps?page_size=010", 400},
        {"GET", "/v1/sweeps?page_size=+1", 400},
        {"GET", "/v1/sweeps/none/trials/1/measurements?metric=a+b", 400},
        {"GET", "/v1/sweeps/none/trials/99999999999999999999", 400},
        {"GET", "/v1/sweeps/none/trials/1", 404},
        {"GET", "/v1/sweeps/none/best?top=0", 400},
        {"GET", "/v1/sweeps/none/ensemble", 404},
        {"GET", "/v1/sweeps/none/events", 404},
        {"GET", "/v1/sweeps/none/trials/1/log?attempt=0", 400},
        {"GET", "/v1/datasets/none", 404},
        {"GET", "/v1/blobs/xyz", 400},
        {"GET", "/v1/blobs/0000000000000000000000000000000000000000000000000000000000000000", 404},
        {"DELETE", "/v1/datasets/none", 404},
        {"DELETE", "/v1/tokens/none", 404},
        {"GET", "/v1/nothing", 404},
        {"GET", "/v1", 404},
        {"GET", "/v1/sweeps/%e2%98%83", 404},
    };
    struct rest admin = as_admin();
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        REPLY_AUTO r = rest_call(&admin, cases[i].method, cases[i].path, NULL);
        ck_assert_msg(r.status == cases[i].status, "%s %s: %d %s", cases[i].method, cases[i].path,
                      r.status, str_cstr(&r.body));
        ck_assert_int_eq(reply_int(&r, "status"), r.status);
        ck_assert_str_ne(reply_str(&r, "request_id"), "");
    }
}
END_TEST

START_TEST(test_methods)
{
    char buf[100];
    struct rest admin = as_admin(), nobody = as_nobody();
    const struct rest_options unchecked = {.is_unchecked = true};
    REPLY_AUTO wrong = rest_call_with(&admin, "PUT", "/v1/sweeps", &unchecked);
    ck_status(wrong, 405);
    ck_assert_str_eq(reply_header(&wrong, "Allow", buf, sizeof buf), "POST, GET, HEAD, OPTIONS");
    REPLY_AUTO options = rest_call_with(&nobody, "OPTIONS", "/v1/sweeps/x", &unchecked);
    ck_status(options, 204);
    ck_assert_str_eq(reply_header(&options, "Allow", buf, sizeof buf),
                     "GET, HEAD, PATCH, DELETE, OPTIONS");
    REPLY_AUTO head = rest_call(&admin, "HEAD", "/v1/sweeps", NULL);
    ck_status(head, 200);
    ck_assert_uint_eq(head.body.len, 0);
    REPLY_AUTO strange = rest_call_with(&admin, "BREW", "/v1/sweeps", &unchecked);
    ck_status(strange, 405);
}
END_TEST

START_TEST(test_request_id)
{
    char buf[100];
    const char *const good[] = {"X-Request-Id: trace-1.a_B", NULL};
    const char *const bad[] = {"X-Request-Id: a\"b<c", NULL};
    struct rest nobody = as_nobody();
    REPLY_AUTO echoed =
        rest_call_with(&nobody, "GET", "/healthz", &(struct rest_options){.headers = good});
    ck_assert_str_eq(reply_header(&echoed, "X-Request-Id", buf, sizeof buf), "trace-1.a_B");
    REPLY_AUTO fresh =
        rest_call_with(&nobody, "GET", "/healthz", &(struct rest_options){.headers = bad});
    ck_assert_uint_eq(strlen(reply_header(&fresh, "X-Request-Id", buf, sizeof buf)), 16);
}
END_TEST

START_TEST(test_idempotency)
{
    char buf[100];
    const char *const key[] = {"Idempotency-Key: key-1", NULL};
    const char *const empty[] = {"Idempotency-Key;", NULL};
    struct rest user = as_user(), admin = as_admin();
    const char *body = sweep_json("idem", 2);
    const struct rest_options opts = {
        .headers = key, .body = body, .len = strlen(body), .type = "application/json"};
    REPLY_AUTO first = rest_call_with(&user, "POST", "/v1/sweeps", &opts);
    ck_status(first, 201);
    ck_assert_str_eq(reply_str(&first, "id"), "idem");
    REPLY_AUTO second = rest_call_with(&user, "POST", "/v1/sweeps", &opts);
    ck_status(second, 201);
    ck_assert_str_eq(reply_str(&second, "id"), "idem");
    ck_assert_str_eq(reply_header(&second, "Idempotent-Replayed", buf, sizeof buf), "true");
    ck_assert_str_eq(reply_header(&second, "Location", buf, sizeof buf), "/v1/sweeps/idem");
    const char *changed = sweep_json("idem", 3);
    const struct rest_options other = {
        .headers = key, .body = changed, .len = strlen(changed), .type = "application/json"};
    REPLY_AUTO third = rest_call_with(&user, "POST", "/v1/sweeps", &other);
    ck_status(third, 422);
    /* keys belong to a client: the same key of another client is another key */
    REPLY_AUTO foreign = rest_call_with(&admin, "POST", "/v1/sweeps", &other);
    ck_status(foreign, 201);
    ck_assert_str_eq(reply_str(&foreign, "id"), "idem-2");
    const struct rest_options none = {
        .headers = empty, .body = changed, .len = strlen(changed), .type = "application/json"};
    REPLY_AUTO refused = rest_call_with(&user, "POST", "/v1/sweeps", &none);
    ck_status(refused, 400);
    drop_sweep("idem");
    drop_sweep("idem-2");
}
END_TEST

START_TEST(test_blobs)
{
    char hex[SHA256_HEX_SIZE], path[128];
    struct rest runner = as_runner(), viewer = as_viewer();
    size_t len = (5 << 20) + 12345; /* several whole pieces and a shorter one */
    AS_AUTO(as_freep) char *bytes = as_calloc(len, 1);
    random_bytes(bytes, len);
    REPLY_AUTO put = put_blob(bytes, len, hex);
    ck_status(put, 201);
    REPLY_AUTO again = put_blob(bytes, len, hex);
    ck_status(again, 200);
    (void)snprintf(path, sizeof path, "/v1/blobs/%s", hex);
    REPLY_AUTO head = rest_call(&viewer, "HEAD", path, NULL);
    ck_status(head, 200);
    REPLY_AUTO back = rest_call(&viewer, "GET", path, NULL);
    ck_status(back, 200);
    ck_assert_uint_eq(back.body.len, len);
    ck_assert(memcmp(back.body.s, bytes, len) == 0);
    REPLY_AUTO empty = put_blob("", 0, hex);
    ck_assert_msg(empty.status == 201 || empty.status == 200, "%d", empty.status);
    const struct rest_options wrong = {
        .body = "other", .len = 5, .type = "application/octet-stream"};
    (void)snprintf(path, sizeof path, "/v1/blobs/%064d", 1);
    REPLY_AUTO lie = rest_call_with(&runner, "PUT", path, &wrong);
    ck_status(lie, 400);
    REPLY_AUTO none = rest_call(&viewer, "HEAD", path, NULL);
    ck_status(none, 404);
    REPLY_AUTO name = rest_call_with(&runner, "PUT", "/v1/blobs/ABC", &wrong);
    ck_status(name, 400);
    const struct rest_options large = {.body = bytes, .len = len, .type = NULL};
    AS_AUTO(as_freep) char *more = as_calloc((8 << 20) + 1, 1);
    const struct rest_options over = {.body = more, .len = (8 << 20) + 1};
    REPLY_AUTO refused = rest_call_with(&runner, "PUT", path, &over);
    ck_status(refused, 413);
    REPLY_AUTO mismatch = rest_call_with(&runner, "PUT", path, &large);
    ck_status(mismatch, 400);
}
END_TEST

START_TEST(test_datasets)
{
    static const char csv[] = "a,b,class\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n";
    char hex[SHA256_HEX_SIZE], body[400];
    struct rest user = as_user(), runner = as_runner();
    REPLY_AUTO put = put_blob(csv, sizeof csv - 1, hex);
    ck_assert_msg(put.status == 201 || put.status == 200, "%d", put.status);
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"toy\",\"format\":\"csv\",\"files\":{\"table\":\"%s\"},"
                   "\"target\":\"class\"}",
                   hex);
    REPLY_AUTO made = rest_call(&user, "POST", "/v1/datasets", body);
    ck_status(made, 201);
    ck_assert_int_eq(reply_int(&made, "rows"), 4);
    ck_assert_str_eq(reply_str(&made, "task"), "classification");
    REPLY_AUTO again = rest_call(&user, "POST", "/v1/datasets", body);
    ck_status(again, 200);
    REPLY_AUTO one = rest_get(&runner, "/v1/datasets/toy");
    ck_status(one, 200);
    REPLY_AUTO list = rest_get(&runner, "/v1/datasets");
    ck_assert_str_eq(reply_str(&list, "items.0.name"), "toy");
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"toy\",\"format\":\"csv\",\"files\":{\"table\":\"%s\"},"
                   "\"target\":\"a\"}",
                   hex);
    REPLY_AUTO other = rest_call(&user, "POST", "/v1/datasets", body);
    ck_status(other, 409);
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"toy2\",\"format\":\"csv\",\"files\":{\"table\":\"%s\"},"
                   "\"target\":\"nothing\"}",
                   hex);
    REPLY_AUTO target = rest_call(&user, "POST", "/v1/datasets", body);
    ck_status(target, 400);
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"toy2\",\"format\":\"csv\",\"files\":{\"table\":\"%064d\"},"
                   "\"target\":\"class\"}",
                   3);
    REPLY_AUTO missing = rest_call(&user, "POST", "/v1/datasets", body);
    ck_status(missing, 422);
    REPLY_AUTO deleted = rest_call(&user, "DELETE", "/v1/datasets/toy", NULL);
    ck_status(deleted, 204);
}
END_TEST

START_TEST(test_tokens)
{
    static const char *const bad[] = {"{}",
                                      "{\"role\":\"root\"}",
                                      "{\"role\":\"user\",\"x\":1}",
                                      "{\"role\":\"user\",\"ttl\":\"0s\"}",
                                      "{\"role\":\"user\",\"ttl\":\"soon\"}",
                                      "{\"role\":7}"};
    struct rest admin = as_admin();
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        REPLY_AUTO r = rest_call(&admin, "POST", "/v1/tokens", bad[i]);
        ck_status(r, 400);
    }
    REPLY_AUTO page = rest_get(&admin, "/v1/tokens?page_size=2");
    ck_status(page, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&page, "items")), 2);
}
END_TEST

static struct reply get_page(const char *path, const char *header)
{
    const char *const headers[] = {header, NULL};
    struct rest nobody = as_nobody();
    return rest_call_with(&nobody, "GET", path,
                          &(struct rest_options){.headers = headers, .is_unchecked = true});
}

START_TEST(test_web)
{
    char buf[300], etag[100];
    REPLY_AUTO index = get_page("/", "Accept: */*");
    ck_status(index, 200);
    ck_assert_ptr_nonnull(strstr(str_cstr(&index.body), "dashboard"));
    ck_assert(as_starts_with(reply_header(&index, "Content-Type", buf, sizeof buf), "text/html"));
    ck_assert_ptr_nonnull(strstr(reply_header(&index, "Content-Security-Policy", buf, sizeof buf),
                                 "default-src 'self'"));
    ck_assert_ptr_null(strstr(buf, "unsafe"));
    ck_assert_ptr_null(strstr(buf, "data:"));
    (void)snprintf(etag, sizeof etag, "If-None-Match: %s",
                   reply_header(&index, "ETag", buf, sizeof buf));
    REPLY_AUTO known = get_page("/index.html", etag);
    ck_status(known, 304);
    REPLY_AUTO script = get_page("/assets/index-0a1b.js", "Accept: */*");
    ck_status(script, 200);
    ck_assert_ptr_nonnull(
        strstr(reply_header(&script, "Cache-Control", buf, sizeof buf), "immutable"));
    REPLY_AUTO page = get_page("/sweeps/abc", "Accept: text/html,application/xhtml+xml");
    ck_status(page, 200);
    ck_assert_ptr_nonnull(strstr(str_cstr(&page.body), "dashboard"));
    static const char *const absent[] = {"/sweeps/abc", "/secret",      "/assets",
                                         "/assets/",    "//etc/passwd", "/etc/passwd"};
    for (size_t i = 0; i < AS_ARRAY_LEN(absent); i++) {
        REPLY_AUTO r = get_page(absent[i], "Accept: */*");
        ck_assert_msg(r.status == 404, "%s: %d", absent[i], r.status);
    }
    REPLY_AUTO api = get_page("/v1/nothing", "Accept: text/html");
    ck_status(api, 404);
    REPLY_AUTO up = get_page("/assets/../secret", "Accept: text/html");
    ck_status(up, 400);
    REPLY_AUTO hidden = get_page("/assets/..%2fsecret", "Accept: text/html");
    ck_status(hidden, 400);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_server");
    TCase *tc = tcase_create("routes");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, test_service);
    tcase_add_test(tc, test_sweep_life);
    tcase_add_test(tc, test_bad_bodies);
    tcase_add_test(tc, test_bad_documents);
    tcase_add_test(tc, test_bad_requests);
    tcase_add_test(tc, test_methods);
    tcase_add_test(tc, test_request_id);
    tcase_add_test(tc, test_idempotency);
    tcase_add_test(tc, test_blobs);
    tcase_add_test(tc, test_datasets);
    tcase_add_test(tc, test_tokens);
    tcase_add_test(tc, test_web);
    suite_add_tcase(s, tc);
    return s;
}
