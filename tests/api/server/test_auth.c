/* Deny by default: the whole route table without a token, with a bad one, with each role. */
#include <stdio.h>
#include <string.h>

#include "api/server/routes.h"
#include "tests/api/server/fixture.h"
#include "tests/support/raw_http.h"
#include "tests/support/check_main.h"

/* A path of this route whose parameters name things that do not exist. */
static void fill_path(const struct route *r, char *path, size_t size)
{
    size_t n = 0;
    for (const char *s = r->path; *s && n + 70 < size;) {
        if (*s != '{') {
            path[n++] = *s++;
            continue;
        }
        const char *value = strncmp(s, "{number}", 8) == 0    ? "0"
                            : strncmp(s, "{attempt}", 9) == 0 ? "1"
                            : strncmp(s, "{sha256}", 8) == 0
                                ? "0000000000000000000000000000000000000000000000000000000000000000"
                                : "no-such-thing";
        n += (size_t)snprintf(path + n, size - n, "%s", value);
        s += strcspn(s, "}") + 1;
    }
    path[n] = '\0';
}

static struct reply request_route(const struct route *r, const char *token)
{
    static const char *const types[] = {NULL, "application/json", "application/merge-patch+json",
                                        "application/octet-stream"};
    char path[400];
    struct rest to = {fix.url, token};
    const struct rest_options opts = {
        .body = r->body ? "{}" : NULL, .len = r->body ? 2 : 0, .type = types[r->body]};
    fill_path(r, path, sizeof path);
    return rest_call_with(&to, r->method, path, &opts);
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

Suite *test_suite(void)
{
    Suite *s = suite_create("api_auth");
    TCase *tc = tcase_create("auth");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, test_without_token);
    tcase_add_test(tc, test_with_bad_tokens);
    tcase_add_test(tc, test_each_role);
    tcase_add_test(tc, test_header_forms);
    tcase_add_test(tc, test_token_in_query);
    tcase_add_test(tc, test_foreign_host_and_origin);
    tcase_add_test(tc, test_upload_without_token);
    tcase_add_test(tc, test_revoked);
    suite_add_tcase(s, tc);
    return s;
}
