#include <math.h>
#include <string.h>

#include "base/str.h"
#include "tests/support/check_main.h"

START_TEST(building)
{
    AS_AUTO(str_done) struct str b = {0};
    str_puts(&b, "a");
    str_printf(&b, "-%d-%s", 42, "x");
    ck_assert_str_eq(str_cstr(&b), "a-42-x");
    as_mem_fail_nth(1);
    for (int i = 0; i < 200; i++)
        str_putc(&b, 'y');
    as_mem_fail_nth(0);
    struct as_err err;
    ck_assert_int_eq(str_check(&b, &err), AS_E_NOMEM);
}
END_TEST

START_TEST(parsing)
{
    struct as_err err;
    int64_t i = 0;
    double d = 0;
    ck_ok(as_parse_i64("-12", &i, &err), err);
    ck_assert_int_eq(i, -12);
    ck_fails(as_parse_i64("12x", &i, &err), AS_E_INVAL, err, "12x");
    ck_fails(as_parse_i64("", &i, &err), AS_E_INVAL, err, "whole number");
    ck_fails(as_parse_i64("99999999999999999999", &i, &err), AS_E_INVAL, err, "whole number");
    ck_fails(as_parse_double("nan", &d, &err), AS_E_INVAL, err, "finite");
    ck_ok(as_parse_duration_ms("30m", &i, &err), err);
    ck_assert_int_eq(i, 1800000);
    ck_fails(as_parse_duration_ms("-3s", &i, &err), AS_E_INVAL, err, "duration");
    ck_fails(as_parse_duration_ms("3 weeks", &i, &err), AS_E_INVAL, err, "duration");
}
END_TEST

START_TEST(shortest_numbers)
{
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0.1, "0.1"},           {1e-5, "1e-05"},
                 {-0.0, "-0"},           {1.0 / 3, "0.3333333333333333"},
                 {1e22, "1e+22"},        {0.1 + 0.2, "0.30000000000000004"},
                 {5e-324, "5e-324"},     {1.5e-310, "1.5e-310"},
                 {INFINITY, "Infinity"}, {NAN, "NaN"}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char buf[32];
        ck_assert_str_eq(as_format_double(cases[i].v, buf, sizeof buf), cases[i].text);
    }
}
END_TEST

START_TEST(utf8)
{
    ck_assert(as_utf8_valid("h\xc3\xa9\xf0\x9f\x98\x80", 7));
    ck_assert(!as_utf8_valid("\xc0\x80", 2));         /* overlong */
    ck_assert(!as_utf8_valid("\xed\xa0\x80", 3));     /* surrogate */
    ck_assert(!as_utf8_valid("\xf4\x90\x80\x80", 4)); /* past U+10FFFF */
    ck_assert(!as_utf8_valid("a\0b", 3));
    ck_assert(!as_utf8_valid("\xe2\x82", 2)); /* cut short */
    char cut[] = "h\xc3\xa9\xe2\x82";
    as_utf8_repair(cut);
    ck_assert_str_eq(cut, "h\xc3\xa9??");
}
END_TEST

START_TEST(words)
{
    ck_assert(as_slug_valid("digits-mlp.2"));
    ck_assert(!as_slug_valid("-x"));
    ck_assert(!as_slug_valid("A"));
    ck_assert(!as_slug_valid("a/b"));
    ck_assert_uint_eq(as_edit_distance("max_trails", "max_trials"), 2);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("str");
    TCase *t = tcase_create("str");
    tcase_add_test(t, building);
    tcase_add_test(t, parsing);
    tcase_add_test(t, shortest_numbers);
    tcase_add_test(t, utf8);
    tcase_add_test(t, words);
    suite_add_tcase(s, t);
    return s;
}
