/* Deny by default: the whole route table without a token, with a bad one, with each role. */
#include <stdio.h>
#include <string.h>

#include "api/server/routes.h"
#include "tests/api/server/fixture.h"
#include "tests/support/raw_http.h"
#include "tests/support/check_main.h"

/* What the parameters of a path name. */
struct names {
    const char *sweep, *number, *attempt;
};
static const struct names nothing = {"no-such-thing", "0", "1"}; /* it does not exist */

static void fill_path(const struct route *r, const struct names *names, char *path, size_t size)
{
    size_t n = 0;
    for (const char *s = r->path; *s && n + 70 < size;) {
        if (*s != '{') {
            path[n++] = *s++;
            continue;
        }
        const char *value = strncmp(s, "{number}", 8) == 0    ? names->number
                            : strncmp(s, "{attempt}", 9) == 0 ? names->attempt
                            : strncmp(s, "{sweep}", 7) == 0   ? names->sweep
                            : strncmp(s, "{sha256}", 8) == 0
                                ? "0000000000000000000000000000000000000000000000000000000000000000"
                                : "no-such-thing";
        n += (size_t)snprintf(path + n, size - n, "%s", value);
        s += strcspn(s, "}") + 1;
    }
    path[n] = '\0';
}

static struct reply request_named(const struct route *r, const struct names *names,
                                  const char *token)
{
    static const char *const types[] = {NULL, "application/json", "application/merge-patch+json",
                                        "application/octet-stream"};
    char path[400];
    struct rest to = {fix.url, token, ""};
    const struct rest_options opts = {
        .body = r->body ? "{}" : NULL, .len = r->body ? 2 : 0, .type = types[r->body]};
    fill_path(r, names, path, sizeof path);
    return rest_call_with(&to, r->method, path, &opts);
}

static struct reply request_route(const struct route *r, const char *token)
{
    return request_named(r, &nothing, token);
}

START_TEST(test_without_token)
{
    for (size_t i = 0; i < n_routes; i++) {
        REPLY_AUTO r = request_route(&routes[i], NULL);
        if (routes[i].roles)
            ck_assert_msg(r.status == 401, "%s: %d", routes[i].operation, r.status);
        else
            ck_assert_msg(r.status == 200, "%s: %d", routes[i].operation, r.status);
    }
}
END_TEST

START_TEST(test_with_bad_tokens)
{
    static const char *const bad[] = {
        "x", "assay_admin_0000000000000000_0000000000000000000000000000000000000000000",
        "assay_admin__", "\"'; --"};
    for (size_t k = 0; k < AS_ARRAY_LEN(bad); k++)
        for (size_t i = 0; i < n_routes; i++) {
            REPLY_AUTO r = request_route(&routes[i], bad[k]);
            ck_assert_msg(!routes[i].roles || r.status == 401, "%s with %s: %d",
                          routes[i].operation, bad[k], r.status);
        }
}
END_TEST

START_TEST(test_each_role)
{
    for (size_t i = 0; i < n_routes; i++)
        for (int role = 0; role < TOKEN_ROLES; role++) {
            bool allowed = !routes[i].roles || routes[i].roles & (1u << role);
            if (strstr(routes[i].path, "/v1/events") && allowed)
                continue; /* a stream does not end: see test_live.c */
            REPLY_AUTO r = request_route(&routes[i], fix.tokens[role]);
            ck_assert_msg((r.status == 403) == !allowed, "%s as role %d: %d", routes[i].operation,
                          role, r.status);
            ck_assert_msg(r.status != 401 && r.status < 500, "%s as role %d: %d %s",
                          routes[i].operation, role, r.status, str_cstr(&r.body));
        }
}
END_TEST

START_TEST(test_header_forms)
{
    static const char *const lines[] = {"Authorization: Basic YTpi", "Authorization: Bearer",
                                        "Authorization: Bearer ", "Authorization: bearer a b",
                                        "Authorization: Token abc"};
    for (size_t i = 0; i < AS_ARRAY_LEN(lines); i++) {
        const char *const headers[] = {lines[i], NULL};
        const struct rest_options opts = {.headers = headers};
        struct rest to = as_nobody();
        REPLY_AUTO r = rest_call_with(&to, "GET", "/v1/sweeps", &opts);
        char buf[80];
        ck_status(r, 401);
        ck_assert_str_eq(reply_header(&r, "WWW-Authenticate", buf, sizeof buf), "Bearer");
    }
    /* the scheme's name is not case-sensitive */
    char line[200];
    (void)snprintf(line, sizeof line, "Authorization: bEARER %s", fix.tokens[ROLE_VIEWER]);
    const char *const headers[] = {line, NULL};
    const struct rest_options opts = {.headers = headers};
    struct rest to = as_nobody();
    REPLY_AUTO r = rest_call_with(&to, "GET", "/v1/sweeps", &opts);
    ck_status(r, 200);
}
END_TEST

/* A token in the query is no token. */
START_TEST(test_token_in_query)
{
    char path[200];
    struct rest to = as_nobody();
    (void)snprintf(path, sizeof path, "/v1/sweeps?token=%s", fix.tokens[ROLE_ADMIN]);
    REPLY_AUTO r = rest_call(&to, "GET", path, NULL);
    ck_status(r, 401);
}
END_TEST

START_TEST(test_foreign_host_and_origin)
{
    static const struct {
        const char *line, *method;
        int status;
    } cases[] = {
        {"Host: evil.example", "GET", 403},
        {"Host: evil.example:7117", "GET", 403},
        {"Host: 127.0.0.1.evil.example", "GET", 403},
        {"Host: localhost:1", "GET", 200},
        {"Host: [::1]:7117", "GET", 200},
        {"Host: [::1", "GET", 403},
        {"Host: 127.0.0.1:80x", "GET", 403},
        {"Origin: http://evil.example", "POST", 403},
        {"Origin: null", "POST", 403},
        {"Sec-Fetch-Site: cross-site", "POST", 403},
        {"Sec-Fetch-Site: same-origin", "POST", 400},
        {"Origin: http://evil.example", "GET", 200},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        bool is_post = strcmp(cases[i].method, "POST") == 0;
        const char *const headers[] = {cases[i].line, NULL};
        const struct rest_options opts = {.headers = headers,
                                          .body = is_post ? "{}" : NULL,
                                          .len = is_post ? 2 : 0,
                                          .type = is_post ? "application/json" : NULL};
        struct rest to = as_user();
        REPLY_AUTO r = rest_call_with(&to, cases[i].method, "/v1/sweeps", &opts);
        ck_assert_msg(r.status == cases[i].status, "%s: %d", cases[i].line, r.status);
    }
    char origin[200];
    (void)snprintf(origin, sizeof origin, "Origin: %s", fix.url);
    const char *const headers[] = {origin, NULL};
    const struct rest_options opts = {
        .headers = headers, .body = "{}", .len = 2, .type = "application/json"};
    struct rest to = as_user();
    REPLY_AUTO r = rest_call_with(&to, "POST", "/v1/sweeps", &opts);
    ck_status(r, 400); /* because of the body, not of the Origin */
}
END_TEST

/* ---- the token of an attempt ---- */

/* All that the process of a trial may do, with what the path must name. */
static const char *const trials_own[] = {"getSweep", "getTrial", "listMeasurements",
                                         "addMeasurements"};

static bool is_trials_own(const struct route *r)
{
    bool is_own = !r->roles; /* open to everybody */
    for (size_t i = 0; i < AS_ARRAY_LEN(trials_own); i++)
        is_own |= strcmp(r->operation, trials_own[i]) == 0;
    return is_own;
}

/* Claim a trial of a new sweep; returns the token of its attempt, a view until the next call. */
static const char *claim_token(const char *sweep)
{
    static char token[TOKEN_TEXT_SIZE];
    make_sweep(sweep, 2);
    REPLY_AUTO got = claim(sweep, make_runner(sweep, 1), 1, 20000);
    ck_assert_str_eq(reply_str(&got, "trials.0.sweep"), sweep);
    (void)snprintf(token, sizeof token, "%s", reply_str(&got, "trials.0.token"));
    return token;
}

START_TEST(test_an_attempt_reaches_itself_alone)
{
    static const struct names own = {"walls", "0", "1"};
    static const struct names others[] = {{"walls-b", "0", "1"}, {"walls", "1", "1"},
                                          {"walls", "0", "2"},   {"walls", "00", "1"},
                                          {"Walls", "0", "1"},   {"walls", "0", "9999999999"}};
    const char *token = claim_token("walls");
    make_sweep("walls-b", 1);
    for (size_t i = 0; i < n_routes; i++) {
        REPLY_AUTO r = request_named(&routes[i], &own, token);
        bool allowed = is_trials_own(&routes[i]);
        ck_assert_msg((r.status == 403) == !allowed && r.status != 401 && r.status < 500,
                      "%s as a trial: %d %s", routes[i].operation, r.status, str_cstr(&r.body));
        for (size_t k = 0; k < AS_ARRAY_LEN(others) && routes[i].roles; k++) {
            const struct names *n = &others[k];
            bool is_same =
                strcmp(n->sweep, own.sweep) == 0 &&
                (strcmp(n->number, own.number) == 0 || !strstr(routes[i].path, "{number}")) &&
                (strcmp(n->attempt, own.attempt) == 0 || !strstr(routes[i].path, "{attempt}"));
            REPLY_AUTO other = request_named(&routes[i], n, token);
            ck_assert_msg((other.status == 403) == !(allowed && is_same),
                          "%s of %s/%s/%s as a trial: %d", routes[i].operation, n->sweep, n->number,
                          n->attempt, other.status);
        }
    }
    drop_sweep("walls");
    drop_sweep("walls-b");
}
END_TEST

#define ONE_POINT "{\"items\":[{\"step\":3,\"metrics\":{\"loss\":0.25}}]}"
#define ATTEMPT_1 "/v1/sweeps/reports/trials/0/attempts/1"

/* Its reports need no secret of a runner, and its end ends the token on every server at once. */
START_TEST(test_an_attempt_reports_until_its_end)
{
    struct rest runner = as_runner();
    struct rest trial = {fix.url, claim_token("reports"), ""};
    REPLY_AUTO said = rest_call(&trial, "POST", ATTEMPT_1 "/measurements", ONE_POINT);
    ck_status(said, 200);
    ck_assert_int_eq(reply_int(&said, "recorded"), 1);
    REPLY_AUTO points = rest_get(&trial, "/v1/sweeps/reports/trials/0/measurements");
    ck_status(points, 200);
    ck_assert_ptr_nonnull(strstr(str_cstr(&points.body), "0.25"));
    REPLY_AUTO end =
        rest_call(&runner, "POST", ATTEMPT_1 "/complete", "{\"outcome\":\"completed\"}");
    ck_status(end, 200);
    REPLY_AUTO late = rest_get(&trial, "/v1/sweeps/reports");
    ck_status(late, 401);
    drop_sweep("reports");
}
END_TEST

/* One who knows how a token looks, and has another attempt's, makes none. */
START_TEST(test_forged_attempts)
{
    static const char *const names[] = {
        "",      "1.0",    "1.0.1.", "1.0.1x",          "-1.0.1",
        "1.0.0", "1.-1.1", "01.0.1", "1.0.99999999999", "99999999999999999999.0.1"};
    char own[TOKEN_TEXT_SIZE], text[TOKEN_TEXT_SIZE * 2];
    (void)snprintf(own, sizeof own, "%s", claim_token("forged"));
    const char *mac = strrchr(own, '_');
    long long key = strtoll(own + strlen("assay_trial_"), NULL, 10);
    struct rest to = {fix.url, text, ""};
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
        (void)snprintf(text, sizeof text, "assay_trial_%s%s", names[i], mac);
        REPLY_AUTO r = rest_get(&to, "/v1/sweeps/forged");
        ck_assert_msg(r.status == 401, "%s: %d", text, r.status);
    }
    const long long near[][3] = {{key, 1, 1}, {key, 0, 2}, {key - 1, 0, 1}, {key + 1, 0, 1}};
    for (size_t i = 0; i < AS_ARRAY_LEN(near); i++) {
        (void)snprintf(text, sizeof text, "assay_trial_%lld.%lld.%lld%s", near[i][0], near[i][1],
                       near[i][2], mac);
        REPLY_AUTO r = rest_get(&to, "/v1/sweeps/forged");
        ck_assert_msg(r.status == 401, "%s: %d", text, r.status);
    }
    (void)snprintf(text, sizeof text, "%.*s", (int)strlen(own) - 1, own);
    REPLY_AUTO shorter = rest_get(&to, "/v1/sweeps/forged");
    ck_status(shorter, 401);
    (void)snprintf(text, sizeof text, "%s", own);
    REPLY_AUTO genuine = rest_get(&to, "/v1/sweeps/forged");
    ck_status(genuine, 200);
    drop_sweep("forged");
}
END_TEST

/* A large body is not read from a client that may not send it. */
START_TEST(test_upload_without_token)
{
    struct str out = {0};
    const char *head =
        "PUT /v1/blobs/"
        "0000000000000000000000000000000000000000000000000000000000000000 HTTP/1.1\r\n"
        "Host: localhost\r\nExpect: 100-continue\r\nContent-Length: 5000000\r\n\r\n";
    int status = raw_request(fix.port, head, strlen(head), PATIENCE_MS, &out);
    ck_assert_msg(status == 401, "%s", str_cstr(&out)); /* and not 100 */
    str_done(&out);
}
END_TEST

START_TEST(test_revoked)
{
    char path[200], text[TOKEN_TEXT_SIZE];
    struct rest admin = as_admin();
    REPLY_AUTO made =
        rest_call(&admin, "POST", "/v1/tokens", "{\"role\":\"viewer\",\"ttl\":\"1h\"}");
    ck_status(made, 201);
    ck_assert_str_ne(reply_str(&made, "expires_at"), "");
    (void)snprintf(text, sizeof text, "%s", reply_str(&made, "token"));
    struct rest to = {fix.url, text};
    REPLY_AUTO before = rest_call(&to, "GET", "/v1/sweeps", NULL);
    ck_status(before, 200);
    (void)snprintf(path, sizeof path, "/v1/tokens/%s", reply_str(&made, "id"));
    REPLY_AUTO gone = rest_call(&admin, "DELETE", path, NULL);
    ck_status(gone, 204);
    REPLY_AUTO after = rest_call(&to, "GET", "/v1/sweeps", NULL);
    ck_status(after, 401);
    REPLY_AUTO again = rest_call(&admin, "DELETE", path, NULL);
    ck_status(again, 404);
    REPLY_AUTO list = rest_call(&admin, "GET", "/v1/tokens?page_size=1000", NULL);
    ck_status(list, 200);
    ck_assert_ptr_null(strstr(str_cstr(&list.body), reply_str(&made, "id")));
    ck_assert_ptr_null(strstr(str_cstr(&list.body), "\"token\""));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_auth");
    TCase *tc = tcase_create("auth");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, test_without_token);
    tcase_add_test(tc, test_with_bad_tokens);
    tcase_add_test(tc, test_each_role);
    tcase_add_test(tc, test_an_attempt_reaches_itself_alone);
    tcase_add_test(tc, test_an_attempt_reports_until_its_end);
    tcase_add_test(tc, test_forged_attempts);
    tcase_add_test(tc, test_header_forms);
    tcase_add_test(tc, test_token_in_query);
    tcase_add_test(tc, test_foreign_host_and_origin);
    tcase_add_test(tc, test_upload_without_token);
    tcase_add_test(tc, test_revoked);
    suite_add_tcase(s, tc);
    return s;
}
