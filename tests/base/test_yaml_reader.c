#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "tests/support/check_main.h"

static as_status parse(const char *s, json_t **ret, struct as_err *err)
{
    return yaml_parse(s, strlen(s), ret, err);
}

START_TEST(core_schema)
{
    struct as_err err = {0};
    JSON_AUTO j = NULL;
    ck_ok(parse("{a: 1, b: 1e-4, c: text, d: '1', e: yes, f: ~, g: [true, 0.5], h: 1.2.3, i: 1-2}",
                &j, &err),
          err);
    AS_AUTO(as_freep) char *text = json_format(j);
    ck_assert_str_eq(text, "{\"a\":1,\"b\":0.0001,\"c\":\"text\",\"d\":\"1\",\"e\":\"yes\","
                           "\"f\":null,\"g\":[true,0.5],\"h\":\"1.2.3\",\"i\":\"1-2\"}");
}
END_TEST

START_TEST(refusals)
{
    struct as_err err = {0};
    json_t *j = NULL;
    ck_fails(parse("a: 1\na: 2\n", &j, &err), AS_E_INVAL, err, "twice");
    ck_fails(parse("a: [1, 2\n", &j, &err), AS_E_INVAL, err, "line");
    ck_fails(parse("a: .nan", &j, &err), AS_E_INVAL, err, "not finite");
    ck_fails(parse("a: 1\n---\nb: 2\n", &j, &err), AS_E_INVAL, err, "more than one");
    ck_fails(parse("", &j, &err), AS_E_INVAL, err, "empty");
    ck_fails(parse("a: !!python/object x", &j, &err), AS_E_INVAL, err, "tag");
    ck_fails(parse("a: &x [*x]", &j, &err), AS_E_TOO_LARGE, err, "deeper");
    ck_assert_ptr_null(j);
}
END_TEST

static void check_place(const char *text, const char *pointer, size_t line, size_t column)
{
    struct as_err err = {0};
    size_t l = 0, c = 0;
    ck_ok(yaml_locate(text, strlen(text), pointer, &l, &c, &err), err);
    ck_assert_msg(l == line && c == column, "%s: %zu:%zu", pointer, l, c);
}

START_TEST(places)
{
    const char *yaml = "name: a\n# note\nlimits:\n  max_trails: 3\nlist: [1,\n  {x/y: 2}]\n";
    check_place(yaml, "/limits/max_trails", 4, 3);
    check_place(yaml, "/limits/absent/deep", 3, 1);
    check_place(yaml, "/list/1", 6, 3);
    check_place(yaml, "/list/1/x~1y", 6, 4);
    check_place(yaml, "/list/7", 5, 1);
    check_place("{\"a\": {\n\"b\": [true]}}", "/a/b/0", 2, 7);
    struct as_err err = {0};
    size_t l, c;
    ck_fails(yaml_locate(yaml, strlen(yaml), "/absent", &l, &c, &err), AS_E_NOT_FOUND, err,
             "absent");
    ck_fails(yaml_locate(yaml, strlen(yaml), "", &l, &c, &err), AS_E_NOT_FOUND, err, "nothing");
    ck_fails(yaml_locate("a: [", 4, "/a", &l, &c, &err), AS_E_INVAL, err, "not YAML");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("yaml");
    TCase *t = tcase_create("yaml");
    tcase_add_test(t, core_schema);
    tcase_add_test(t, refusals);
    tcase_add_test(t, places);
    suite_add_tcase(s, t);
    return s;
}
