/* The JSON of requests and documents: refused texts, numbers that return with the same bits, limits
 * of size, and field errors, which name the field, what was found and what was expected. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"

static as_status parse(const char *s, json_t **ret, struct as_err *err)
{
    return json_parse(s, strlen(s), ret, err);
}

START_TEST(refuses_bad_text)
{
    struct as_err err = {0};
    json_t *j = NULL;
    ck_fails(parse("{\"a\":1,\"a\":2}", &j, &err), AS_E_INVAL, err, "duplicate");
    ck_fails(parse("{\"a\":", &j, &err), AS_E_INVAL, err, "line 1");
    ck_fails(parse("{\"a\":\"\xff\"}", &j, &err), AS_E_INVAL, err, "UTF-8");
    ck_fails(parse("\"\\u0000\"", &j, &err), AS_E_INVAL, err,
             "the document: found a text with a NUL");
    ck_fails(parse("{\"a\":[1,{\"b/c\":\"x\\u0000y\"}]}", &j, &err), AS_E_INVAL, err,
             "/a/1/b~1c: found a text with a NUL (\\u0000), expected none");
    ck_assert_str_eq(err.pointer, "/a/1/b~1c");
    ck_fails(parse("{\"a\\u0000\":1}", &j, &err), AS_E_INVAL, err, "the name of a field has a NUL");
    ck_fails(parse("[99999999999999999999,\"\\u0000\"]", &j, &err), AS_E_INVAL, err, "/1: found");
    ck_fails(parse("[1e400]", &j, &err), AS_E_INVAL, err, "column 6: a number is too large");
    ck_fails(parse("[99999999999999999999,-1E999]", &j, &err), AS_E_INVAL, err, "too large");
    char deep[200];
    memset(deep, '[', sizeof deep);
    ck_fails(json_parse(deep, sizeof deep, &j, &err), AS_E_TOO_LARGE, err, "deeper");
    ck_assert_ptr_null(j);
}
END_TEST

START_TEST(numbers_round_trip)
{
    const double values[] = {0.1, 1.0, -0.0, 1e-5, 123456789012345678.0, DBL_MIN, DBL_MAX, 1.0 / 3};
    for (size_t i = 0; i < AS_ARRAY_LEN(values); i++) {
        JSON_AUTO a = json_real(values[i]);
        AS_AUTO(as_freep) char *text = json_format(a);
        JSON_AUTO b = NULL;
        struct as_err err = {0};
        ck_ok(parse(text, &b, &err), err);
        ck_assert(json_is_real(b));
        ck_assert_double_eq(json_real_value(b), values[i]);
    }
    JSON_AUTO tenth = json_real(0.1);
    AS_AUTO(as_freep) char *text = json_format(tenth);
    ck_assert_str_eq(text, "0.1");
    const double odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < AS_ARRAY_LEN(odd); i++) {
        JSON_AUTO j = json_number_new(odd[i]);
        double v = 0;
        ck_assert(json_number_get(j, &v));
        ck_assert(isnan(odd[i]) ? isnan(v) : v == odd[i]);
    }
}
END_TEST

/* Integers past 64 bits are numbers like others, and no integers. */
START_TEST(large_integers_are_read_as_reals)
{
    struct as_err err;
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"9223372036854775807", 0},
                 {"-9223372036854775808", 0},
                 {"9223372036854775808", 9223372036854775808.0},
                 {"-9223372036854775809", -9223372036854775809.0},
                 {"18446744073709551616", 18446744073709551616.0},
                 {"123456789012345678901234567890", 123456789012345678901234567890.0}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO j = NULL;
        AS_AUTO(str_done) struct str text = {0};
        int64_t n = 0;
        double v = 0;
        struct json_fields f;
        str_printf(&text,
                   "{\"s\":\"\\\"1e999 99999999999999999999\",\"n\":%s,\"a\":[1,-0.5e-3,0,%s ]}",
                   cases[i].text, cases[i].text);
        ck_ok(json_parse(text.s, text.len, &j, &err), err);
        ck_assert_str_eq(json_string_value(json_object_get(j, "s")),
                         "\"1e999 99999999999999999999");
        ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(j, "a"), 0)), 1);
        ck_assert(json_real_value(json_array_get(json_object_get(j, "a"), 1)) == -0.0005);
        ck_ok(json_fields_init(&f, j, "/x", &err), err);
        if (cases[i].value == 0) {
            ck_ok(json_fields_i64(&f, "n", JSON_REQUIRED, INT64_MIN, INT64_MAX, &n, &err), err);
            continue;
        }
        ck_ok(json_fields_double(&f, "n", JSON_REQUIRED, -INFINITY, INFINITY, &v, &err), err);
        ck_assert(v == cases[i].value);
        ck_fails(json_fields_i64(&f, "n", JSON_REQUIRED, INT64_MIN, INT64_MAX, &n, &err),
                 AS_E_INVAL, err, "expected a whole number");
        ck_assert_str_eq(err.pointer, "/x/n");
    }
    static const char *const wrong[] = {"[99999999999999999999,01]", "[099999999999999999999]",
                                        "[99999999999999999999,+1]", "[99999999999999999999.]",
                                        "[99999999999999999999",     "99999999999999999999 1",
                                        "[99999999999999999999e]",   "[--99999999999999999999]"};
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++) {
        JSON_AUTO j = NULL;
        ck_fails(json_parse(wrong[i], strlen(wrong[i]), &j, &err), AS_E_INVAL, err, "not JSON");
    }
    static const char *const bare[] = {"[NaN]", "{\"a\":Infinity}", "[-Infinity]"};
    for (size_t i = 0; i < AS_ARRAY_LEN(bare); i++) {
        JSON_AUTO j = NULL;
        ck_fails(json_parse(bare[i], strlen(bare[i]), &j, &err), AS_E_INVAL, err,
                 "send it as text");
    }
}
END_TEST

START_TEST(fields_name_what_is_wrong)
{
    struct as_err err = {0};
    JSON_AUTO j = NULL;
    ck_ok(parse("{\"n\": 3, \"x\": \"text\", \"kind\": \"b\", \"d\": \"5m\", \"max_trails\": 1}",
                &j, &err),
          err);
    struct json_fields f;
    ck_ok(json_fields_init(&f, j, "/limits", &err), err);
    int64_t n = 0, ms = 0;
    double x = 0;
    int kind = -1;
    const char *const words[] = {"a", "b", NULL};
    ck_fails(json_fields_i64(&f, "n", JSON_REQUIRED, 4, 9, &n, &err), AS_E_INVAL, err,
             "/limits/n: found 3, expected a whole number from 4 to 9");
    ck_assert_str_eq(err.pointer, "/limits/n");
    ck_ok(json_fields_i64(&f, "n", JSON_REQUIRED, 1, 9, &n, &err), err);
    ck_fails(json_fields_double(&f, "x", JSON_OPTIONAL, 0, 1, &x, &err), AS_E_INVAL, err,
             "\"text\"");
    ck_fails(json_fields_double(&f, "y", JSON_REQUIRED, 0, 1, &x, &err), AS_E_INVAL, err,
             "missing");
    ck_ok(json_fields_word(&f, "kind", JSON_REQUIRED, words, &kind, &err), err);
    ck_ok(json_fields_duration(&f, "d", JSON_REQUIRED, &ms, &err), err);
    int64_t trials = 0;
    ck_ok(json_fields_i64(&f, "max_trials", JSON_OPTIONAL, 1, 9, &trials, &err), err);
    ck_fails(json_fields_end(&f, &err), AS_E_INVAL, err, "did you mean 'max_trials'");
    ck_assert_int_eq(n, 3);
    ck_assert_int_eq(kind, 1);
    ck_assert_int_eq(ms, 300000);
}
END_TEST

/* Lengths are counted in characters, as JSON Schema's maxLength is. */
START_TEST(text_is_counted_in_characters)
{
    struct as_err err = {0};
    JSON_AUTO j = NULL;
    ck_ok(parse("{\"a\": \"h\u00e9\\ud83d\\ude00\", \"b\": \"\"}", &j, &err), err);
    struct json_fields f;
    const char *s = NULL;
    ck_ok(json_fields_init(&f, j, "", &err), err);
    ck_ok(json_fields_text(&f, "a", JSON_REQUIRED, 1, 3, &s, &err), err);
    ck_assert_uint_eq(strlen(s), 7);
    ck_fails(json_fields_text(&f, "a", JSON_REQUIRED, 1, 2, &s, &err), AS_E_INVAL, err,
             "/a: found 3 characters, expected 1 to 2");
    ck_fails(json_fields_text(&f, "b", JSON_REQUIRED, 1, 2, &s, &err), AS_E_INVAL, err,
             "/b: found 0 characters");
    ck_ok(json_fields_text(&f, "c", JSON_OPTIONAL, 1, 2, &s, &err), err);
}
END_TEST

/* Memory failure at every allocation of our own: no crash, an error, no leak (ASan sees leaks). */
START_TEST(files_may_be_larger)
{
    struct as_err err = {0};
    struct str b = {0};
    json_t *j = NULL;
    str_putc(&b, '[');
    for (int i = 0; i < JSON_MAX_NODES; i++)
        str_puts(&b, "0,");
    str_puts(&b, "0]");
    ck_ok(str_check(&b, &err), err);
    ck_fails(json_parse(b.s, b.len, &j, &err), AS_E_TOO_LARGE, err, "more than 200000 values");
    ck_ok(json_parse_file(b.s, b.len, &j, &err), err);
    ck_assert_uint_eq(json_array_size(j), JSON_MAX_NODES + 1);
    json_decref(j);
    str_done(&b);
}
END_TEST

START_TEST(out_of_memory)
{
    JSON_AUTO j = json_pack("{s:[i,i],s:s}", "list", 1, 2, "text", "value");
    for (size_t nth = 1; nth < 20; nth++) {
        as_mem_fail_nth(nth);
        char *text = json_format(j);
        as_mem_fail_nth(0);
        if (text)
            ck_assert_str_eq(text, "{\"list\":[1,2],\"text\":\"value\"}");
        free(text);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("json");
    TCase *t = tcase_create("json");
    tcase_add_test(t, refuses_bad_text);
    tcase_add_test(t, numbers_round_trip);
    tcase_add_test(t, large_integers_are_read_as_reals);
    tcase_add_test(t, fields_name_what_is_wrong);
    tcase_add_test(t, text_is_counted_in_characters);
    tcase_add_test(t, files_may_be_larger);
    tcase_add_test(t, out_of_memory);
    suite_add_tcase(s, t);
    return s;
}
