/* Compares the route table with api/openapi.yaml in both directions. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/server/route_find.h"
#include "api/server/routes.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/services/tokens.h"
#include "tests/support/schema_check.h"
#include "tests/support/check_main.h"

static const char *const methods[] = {"get", "head", "post", "put", "patch", "delete"};

static const json_t *operation_of(const struct route *r)
{
    char lower[16];
    size_t n = 0;
    for (; r->method[n] && n < sizeof lower - 1; n++)
        lower[n] = (char)tolower((unsigned char)r->method[n]);
    lower[n] = '\0';
    const json_t *paths = json_object_get(openapi_document(), "paths");
    return json_object_get(json_object_get(paths, r->path), lower);
}

START_TEST(test_routes_are_documented)
{
    for (size_t i = 0; i < n_routes; i++) {
        const json_t *op = operation_of(&routes[i]);
        ck_assert_msg(op != NULL, "%s %s is not in the document", routes[i].method, routes[i].path);
        ck_assert_str_eq(json_string_value(json_object_get(op, "operationId")),
                         routes[i].operation);
    }
}
END_TEST

START_TEST(test_document_is_routed)
{
    const json_t *paths = json_object_get(openapi_document(), "paths");
    size_t n = 0;
    for (void *it = json_object_iter((json_t *)paths); it;
         it = json_object_iter_next((json_t *)paths, it)) {
        for (size_t m = 0; m < AS_ARRAY_LEN(methods); m++) {
            const json_t *op = json_object_get(json_object_iter_value(it), methods[m]);
            const char *id = json_string_value(json_object_get(op, "operationId"));
            size_t found = 0;
            for (size_t i = 0; op && i < n_routes; i++)
                found += as_streq(routes[i].operation, id);
            n += op != NULL;
            ck_assert_msg(!op || found == 1, "%s is in the table %zu times", id, found);
        }
    }
    ck_assert_uint_eq(n, n_routes);
}
END_TEST

START_TEST(test_roles)
{
    for (size_t i = 0; i < n_routes; i++) {
        const json_t *op = operation_of(&routes[i]);
        const json_t *roles = json_object_get(op, "x-roles");
        const json_t *security = json_object_get(op, "security");
        unsigned bits = 0;
        for (size_t k = 0; k < json_array_size(roles); k++) {
            const char *word = json_string_value(json_array_get(roles, k));
            token_role role = ROLE_TRIAL; /* which no stored token has */
            struct as_err err;
            if (strcmp(word, "trial") != 0)
                ck_ok(token_role_parse(word, &role, &err), err);
            bits |= 1u << role;
        }
        ck_assert_msg(bits == routes[i].roles, "%s: roles %x in the document, %x in the table",
                      routes[i].operation, bits, routes[i].roles);
        /* open to everybody if and only if the document says `security: []` */
        bool is_open = security && json_array_size(security) == 0;
        ck_assert_msg(is_open == (routes[i].roles == 0), "%s: security", routes[i].operation);
    }
}
END_TEST

START_TEST(test_bodies)
{
    static const char *const types[] = {NULL, "application/json", "application/merge-patch+json",
                                        "application/octet-stream"};
    for (size_t i = 0; i < n_routes; i++) {
        const json_t *content =
            json_object_get(json_object_get(operation_of(&routes[i]), "requestBody"), "content");
        const char *want = types[routes[i].body];
        ck_assert_msg((want == NULL) == (content == NULL), "%s: body", routes[i].operation);
        ck_assert_msg(!want || json_object_get(content, want), "%s: %s", routes[i].operation, want);
    }
}
END_TEST

/* Every example of the document must fit its schema, because people copy examples. */
static size_t check_examples(const char *operation, const json_t *content)
{
    char msg[SCHEMA_MSG_MAX] = "";
    const json_t *media = json_object_get(content, "application/json");
    const json_t *schema = json_object_get(media, "schema");
    json_t *examples = json_object_get(media, "examples");
    const json_t *one = json_object_get(media, "example");
    size_t n = one != NULL;
    ck_assert_msg(!one || schema_check(schema, one, msg), "%s: example: %s", operation, msg);
    for (void *it = json_object_iter(examples); it; it = json_object_iter_next(examples, it), n++) {
        const json_t *value = json_object_get(json_object_iter_value(it), "value");
        ck_assert_msg(value && schema_check(schema, value, msg), "%s: example %s: %s", operation,
                      json_object_iter_key(it), msg);
    }
    return n;
}

START_TEST(test_examples)
{
    size_t n = 0;
    for (size_t i = 0; i < n_routes; i++) {
        const json_t *op = operation_of(&routes[i]);
        json_t *answers = json_object_get(op, "responses");
        n += check_examples(routes[i].operation,
                            json_object_get(json_object_get(op, "requestBody"), "content"));
        for (void *it = json_object_iter(answers); it; it = json_object_iter_next(answers, it))
            n += check_examples(routes[i].operation,
                                json_object_get(json_object_iter_value(it), "content"));
    }
    ck_assert_uint_ge(n, 15);
}
END_TEST

static void count_parameters(const struct route *r, const json_t *list, size_t *n_query,
                             bool *has_key, bool *has_secret)
{
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *p = json_array_get(list, k);
        const char *ref = json_string_value(json_object_get(p, "$ref"));
        p = ref ? openapi_ref(ref) : p;
        const char *name = json_string_value(json_object_get(p, "name"));
        const char *in = json_string_value(json_object_get(p, "in"));
        char braced[80];
        (void)snprintf(braced, sizeof braced, "{%s}", name);
        if (as_streq(in, "query")) {
            ck_assert_msg(route_has_query(r, name), "%s lacks ?%s", r->operation, name);
            ++*n_query;
        }
        if (as_streq(in, "path"))
            ck_assert_msg(strstr(r->path, braced) != NULL, "%s lacks %s", r->operation, braced);
        *has_key |= as_streq(name, "Idempotency-Key");
        *has_secret |= as_streq(name, "Assay-Runner-Secret");
    }
}

START_TEST(test_parameters)
{
    const json_t *paths = json_object_get(openapi_document(), "paths");
    for (size_t i = 0; i < n_routes; i++) {
        const struct route *r = &routes[i];
        size_t n_query = 0, n_words = 0;
        bool has_key = false, has_secret = false;
        bool is_protocol =
            as_streq(json_string_value(json_array_get(json_object_get(operation_of(r), "tags"), 0)),
                     "runner-protocol");
        count_parameters(r, json_object_get(json_object_get(paths, r->path), "parameters"),
                         &n_query, &has_key, &has_secret);
        count_parameters(r, json_object_get(operation_of(r), "parameters"), &n_query, &has_key,
                         &has_secret);
        for (const char *s = r->query; *s; s += strcspn(s, " "), s += strspn(s, " "))
            n_words++;
        ck_assert_msg(n_words == n_query, "%s: query parameters", r->operation);
        ck_assert_msg(has_secret == is_protocol, "%s: Assay-Runner-Secret", r->operation);
        ck_assert_msg(has_key == ((r->flags & ROUTE_IDEMPOTENCY) != 0), "%s: Idempotency-Key",
                      r->operation);
    }
}
END_TEST

START_TEST(test_find)
{
    struct arena a = {0};
    struct route_match m;
    struct as_err err;
    ck_ok(route_find(routes, n_routes, "GET", "/v1/sweeps/s1/trials/7", &a, &m, &err), err);
    ck_assert_int_eq(m.outcome, ROUTE_FOUND);
    ck_assert_str_eq(m.route->operation, "getTrial");
    ck_assert_str_eq(m.params[0], "s1");
    ck_assert_str_eq(m.params[1], "7");
    ck_ok(route_find(routes, n_routes, "HEAD", "/v1/sweeps", &a, &m, &err), err);
    ck_assert_str_eq(m.route->operation, "listSweeps");
    ck_ok(route_find(routes, n_routes, "HEAD", "/v1/blobs/x", &a, &m, &err), err);
    ck_assert_str_eq(m.route->operation, "hasBlob");
    ck_ok(route_find(routes, n_routes, "DELETE", "/v1/sweeps", &a, &m, &err), err);
    ck_assert_int_eq(m.outcome, ROUTE_WRONG_METHOD);
    ck_assert_str_eq(m.allow, "POST, GET, HEAD, OPTIONS");
    static const char *const unknown[] = {"/v1/sweeps/", "/v1/sweeps//trials",      "/v1",
                                          "/",           "/v1/sweeps/s/trials/1/x", "v1/sweeps"};
    for (size_t i = 0; i < AS_ARRAY_LEN(unknown); i++) {
        ck_ok(route_find(routes, n_routes, "GET", unknown[i], &a, &m, &err), err);
        ck_assert_msg(m.outcome == ROUTE_UNKNOWN, "%s", unknown[i]);
    }
    arena_done(&a);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_openapi");
    TCase *tc = tcase_create("table");
    tcase_add_test(tc, test_examples);
    tcase_add_test(tc, test_routes_are_documented);
    tcase_add_test(tc, test_document_is_routed);
    tcase_add_test(tc, test_roles);
    tcase_add_test(tc, test_bodies);
    tcase_add_test(tc, test_parameters);
    tcase_add_test(tc, test_find);
    suite_add_tcase(s, tc);
    return s;
}
