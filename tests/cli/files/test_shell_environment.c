#include "cli/files/shell_environment.h"

#include <string.h>

#include "base/host_id.h"
#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static const char *const shell[] = {
    "PATH=/v/bin:/bin",   "AWS_SECRET=x",  "PATHS=no", "VIRTUAL_ENV=/v",
    "LD_LIBRARY_PATH=/l", "CONDA_PREFIX=", NULL};

START_TEST(variables)
{
    struct as_err err = {0};
    char host[HOST_ID_SIZE];
    JSON_AUTO doc = json_of("{'trial': {'command': ['python', 'x.py']}}");
    ck_ok(host_id_read(host, &err), err);
    ck_ok(shell_environment_set(doc, (char *const *)shell, &err), err);
    json_t *environment = json_object_get(json_object_get(doc, "trial"), "environment");
    JSON_AUTO want = json_of("{'PATH': '/v/bin:/bin', 'VIRTUAL_ENV': '/v'}");
    ck_assert_str_eq(json_string_value(json_object_get(environment, "host")), host);
    ck_assert(json_equal(json_object_get(environment, "variables"), want));
}
END_TEST

START_TEST(left_alone)
{
    static const char *const trials[] = {
        "{'train': {}}", "{'command': ['x'], 'environment': {'host': 'h', 'variables': {}}}",
        "{'command': ['x'], 'container': 'image'}", "[]", "3"};
    for (size_t i = 0; i < AS_ARRAY_LEN(trials); i++) {
        struct as_err err = {0};
        char text[200];
        (void)snprintf(text, sizeof text, "{'trial': %s}", trials[i]);
        JSON_AUTO doc = json_of(text);
        JSON_AUTO before = json_of(text);
        ck_ok(shell_environment_set(doc, (char *const *)shell, &err), err);
        ck_assert(json_equal(doc, before));
    }
}
END_TEST

START_TEST(not_utf8)
{
    const char *const odd[] = {"PATH=/a\xff", NULL};
    struct as_err err = {0};
    JSON_AUTO doc = json_of("{'trial': {'command': ['x']}}");
    ck_assert_int_eq(shell_environment_set(doc, (char *const *)odd, &err), AS_E_INVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "PATH"));
    ck_assert_ptr_null(json_object_get(json_object_get(doc, "trial"), "environment"));
}
END_TEST

START_TEST(urls)
{
    static const char *const local[] = {"http://127.0.0.1:7117",  "http://127.0.0.2",
                                        "http://[::1]:1",         "http://localhost",
                                        "https://localhost:80/x", "localhost:1"};
    static const char *const far[] = {"http://example.org", "http://localhost.example.org",
                                      "http://10.0.0.1",    "http://127.0.0.1.example.org",
                                      "http://[::2]:1",     "https://example.org/127.0.0.1"};
    for (size_t i = 0; i < AS_ARRAY_LEN(local); i++)
        ck_assert_msg(shell_environment_is_local(local[i]), "%s", local[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(far); i++)
        ck_assert_msg(!shell_environment_is_local(far[i]), "%s", far[i]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("shell_environment");
    TCase *t = tcase_create("shell_environment");
    tcase_add_test(t, variables);
    tcase_add_test(t, left_alone);
    tcase_add_test(t, not_utf8);
    tcase_add_test(t, urls);
    suite_add_tcase(s, t);
    return s;
}
