#include "cli/files/document.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "tests/support/check_main.h"

static char path[64];

static void write_file(const char *text)
{
    struct as_err err = {0};
    ck_ok(file_replace(path, text, strlen(text), 0600, &err), err);
}

static void setup(void)
{
    (void)snprintf(path, sizeof path, "/tmp/assay-test-%d.yaml", (int)getpid());
}

static void teardown(void)
{
    (void)unlink(path);
}

START_TEST(places)
{
    struct as_err err = {0};
    AS_AUTO(document_done) struct document d = {0};
    char want[128];
    write_file("name: a\nlimits:\n  max_trails: 3\n");
    ck_ok(document_read(path, &d, &err), err);
    as_fail_at(&err, AS_E_INVAL, "/limits/max_trails", "unknown field");
    ck_assert_int_eq(document_explain(&d, AS_E_INVAL, &err), AS_E_INVAL);
    (void)snprintf(want, sizeof want, "%s:3:3: /limits/max_trails: unknown field", path);
    ck_assert_str_eq(err.msg, want);
    ck_assert_str_eq(err.pointer, "");
    as_fail_at(&err, AS_E_INVAL, "/metric", "is missing");
    (void)document_explain(&d, AS_E_INVAL, &err);
    (void)snprintf(want, sizeof want, "%s: /metric: is missing", path);
    ck_assert_str_eq(err.msg, want);
    as_fail(&err, AS_E_INVAL, "no pointer");
    (void)document_explain(&d, AS_E_INVAL, &err);
    ck_assert_str_eq(err.msg, "no pointer");
}
END_TEST

START_TEST(overrides)
{
    struct as_err err = {0};
    AS_AUTO(document_done) struct document d = {0};
    write_file("name: a\nlimits: {max_trials: 3}\nlist: [1]\n");
    ck_ok(document_read(path, &d, &err), err);
    ck_ok(document_set(&d, "limits.max_trials=10", &err), err);
    ck_ok(document_set(&d, "search.seed=7", &err), err);
    ck_ok(document_set(&d, "search.method=random", &err), err);
    ck_ok(document_set(&d, "ensemble=false", &err), err);
    AS_AUTO(as_freep) char *text = json_format(d.tree);
    ck_assert_str_eq(text, "{\"ensemble\":false,\"limits\":{\"max_trials\":10},\"list\":[1],"
                           "\"name\":\"a\",\"search\":{\"method\":\"random\",\"seed\":7}}");
    ck_fails(document_set(&d, "novalue", &err), AS_E_USAGE, err, "FIELD=VALUE");
    ck_fails(document_set(&d, "=3", &err), AS_E_USAGE, err, "FIELD=VALUE");
    ck_fails(document_set(&d, "name.x=3", &err), AS_E_USAGE, err, "name");
    ck_fails(document_set(&d, "limits.=3", &err), AS_E_USAGE, err, "empty");
    ck_fails(document_set(&d, "x=[1", &err), AS_E_USAGE, err, "--set x");
}
END_TEST

START_TEST(refusals)
{
    struct as_err err = {0};
    AS_AUTO(document_done) struct document d = {0};
    ck_fails(document_read("/nowhere/x.yaml", &d, &err), AS_E_NOT_FOUND, err, "/nowhere/x.yaml");
    write_file("a: [1\n");
    ck_fails(document_read(path, &d, &err), AS_E_INVAL, err, "line");
    write_file("- 1\n");
    ck_fails(document_read(path, &d, &err), AS_E_INVAL, err, "a list");
    ck_assert_ptr_null(d.tree);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("document");
    TCase *t = tcase_create("document");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, places);
    tcase_add_test(t, overrides);
    tcase_add_test(t, refusals);
    suite_add_tcase(s, t);
    return s;
}
