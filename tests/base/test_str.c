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
    ck_ok(as_parse_duration_ms("30m", &i, &err), err);
    ck_assert_int_eq(i, 1800000);
    ck_fails(as_parse_duration_ms("-3s", &i, &err), AS_E_INVAL, err, "duration");
    ck_fails(as_parse_duration_ms("3 weeks", &i, &err), AS_E_INVAL, err, "duration");
    ck_fails(as_parse_duration_ms("1.2.3s", &i, &err), AS_E_INVAL, err, "1.2.3s");
    static const struct {
        const char *text;
        int64_t bytes;
    } sizes[] = {{"0", 0},
                 {"1048576", 1048576},
                 {"4GiB", INT64_C(4) << 30},
                 {"500M", 500000000},
                 {"1.5 kB", 1500},
                 {"2Ti", INT64_C(2) << 40},
                 {"7B", 7},
                 {"3K", 3000}};
    static const char *const no_sizes[] = {"",    "GiB",   "-1",  "4 ",       "4gb",  "4GiBs",
                                           "1e3", "4 G B", "4Bi", "9999999T", "0x10", " 4"};
    for (size_t k = 0; k < AS_ARRAY_LEN(sizes); k++) {
        ck_ok(as_parse_size(sizes[k].text, &i, &err), err);
        ck_assert_int_eq(i, sizes[k].bytes);
    }
    for (size_t k = 0; k < AS_ARRAY_LEN(no_sizes); k++)
        ck_fails(as_parse_size(no_sizes[k], &i, &err), AS_E_INVAL, err, "size");
    ck_assert_double_eq(d, 0);
}
END_TEST

/* What strtod() reads and people do not write. */
START_TEST(only_decimal_numbers)
{
    static const char *const durations[] = {"0x10s",
                                            "0x10",
                                            "1e5s",
                                            "1e5",
                                            " 5s",
                                            "5 s",
                                            "5s ",
                                            "nan",
                                            "nans",
                                            "inf",
                                            "infinitys",
                                            "+5s",
                                            "-5s",
                                            ".5s",
                                            "5.s",
                                            "5.",
                                            "",
                                            "s",
                                            "\t5s",
                                            "0x1p3m",
                                            "1E2ms",
                                            "1e999s",
                                            "99999999999999999999d"};
    static const char *const numbers[] = {
        "0x10", "0x1p3", "nan", "nan(1)", "inf", "-inf",  "Infinity", " 5",    "5 ", "",
        ".",    "-",     "e5",  "1e",     "1e+", "1e999", "--5",      "1_000", "1,5"};
    static const struct {
        const char *text;
        double v;
    } good[] = {{"5", 5}, {"-5.25", -5.25}, {"+.5", 0.5}, {"5.", 5}, {"1e5", 1e5}, {"1E-3", 1e-3}};
    struct as_err err;
    int64_t ms = -1;
    double d = -1;
    for (size_t i = 0; i < AS_ARRAY_LEN(durations); i++)
        ck_fails(as_parse_duration_ms(durations[i], &ms, &err), AS_E_INVAL, err, durations[i]);
    for (size_t i = 0; i < AS_ARRAY_LEN(numbers); i++)
        ck_fails(as_parse_double(numbers[i], &d, &err), AS_E_INVAL, err, numbers[i]);
    ck_assert(ms == -1 && d == -1);
    for (size_t i = 0; i < AS_ARRAY_LEN(good); i++) {
        ck_ok(as_parse_double(good[i].text, &d, &err), err);
        ck_assert_double_eq(d, good[i].v);
    }
    ck_ok(as_parse_duration_ms("1.5h", &ms, &err), err);
    ck_assert_int_eq(ms, 5400000);
    ck_ok(as_parse_duration_ms("250ms", &ms, &err), err);
    ck_assert_int_eq(ms, 250);
    ck_ok(as_parse_duration_ms("0", &ms, &err), err);
    ck_assert_int_eq(ms, 0);
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

/* Eight bytes at a time, and each byte in each place. */
START_TEST(utf8_words)
{
    char text[24];
    for (size_t at = 0; at < sizeof text; at++)
        for (int c = 0; c < 256; c++) {
            memset(text, 'a', sizeof text);
            text[at] = (char)c;
            ck_assert_msg(as_utf8_valid(text, sizeof text) == (c > 0 && c < 0x80),
                          "byte %02x at %zu", (unsigned)c, at);
        }
    memset(text, 'a', sizeof text);
    memcpy(text + 6, "\xf0\x9f\x98\x80", 4);
    ck_assert(as_utf8_valid(text, sizeof text));
    text[9] = 'a';
    ck_assert(!as_utf8_valid(text, sizeof text));
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
}
END_TEST

START_TEST(distances)
{
    static const struct {
        const char *a, *b;
        size_t expected;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"best", "best", 0},
        {"bset", "best", 1},
        {"bset", "set", 1},
        {"best", "beta", 2},
        {"ab", "ba", 1},
        {"ca", "abc", 3}, /* not 2: nothing twice */
        {"kitten", "sitting", 3},
        {"max_trails", "max_trials", 1},
    };
    char long_one[80];
    memset(long_one, 'a', sizeof long_one - 1);
    long_one[sizeof long_one - 1] = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        ck_assert_uint_eq(as_edit_distance(cases[i].a, cases[i].b), cases[i].expected);
        ck_assert_uint_eq(as_edit_distance(cases[i].b, cases[i].a), cases[i].expected);
    }
    ck_assert_uint_eq(as_edit_distance(long_one, "a"), 64);
}
END_TEST

static const char *nearest(const char *given, const char *const *names, size_t n)
{
    struct as_nearest near = {.given = given};
    for (size_t i = 0; i < n; i++)
        as_nearest_offer(&near, names[i]);
    return near.name;
}

START_TEST(nearest_names)
{
    static const char *const names[] = {"set", "best", "trials", "trial", "show", "files"};
    size_t n = AS_ARRAY_LEN(names);
    ck_assert_str_eq(nearest("bset", names, n), "best"); /* and not `set`, as near */
    ck_assert_str_eq(nearest("ste", names, n), "set");
    ck_assert_str_eq(nearest("trails", names, n), "trials");
    ck_assert_str_eq(nearest("trail", names, n), "trial");
    ck_assert_str_eq(nearest("fiels", names, n), "files");
    ck_assert_ptr_null(nearest("shw1", names, n));
    ck_assert_ptr_null(nearest("", names, n));
    static const char *const columns[] = {"a", "b", " Price", "PRICES", "y"};
    n = AS_ARRAY_LEN(columns);
    ck_assert_str_eq(nearest("price", columns, n), " Price"); /* case and blanks, before an edit */
    ck_assert_str_eq(nearest("Y", columns, n), "y");
    ck_assert_ptr_null(nearest("x", columns, n)); /* every letter would be near */
    ck_assert_ptr_null(nearest("quite-another", names, n));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("str");
    TCase *t = tcase_create("str");
    tcase_add_test(t, building);
    tcase_add_test(t, parsing);
    tcase_add_test(t, only_decimal_numbers);
    tcase_add_test(t, shortest_numbers);
    tcase_add_test(t, utf8);
    tcase_add_test(t, utf8_words);
    tcase_add_test(t, words);
    tcase_add_test(t, distances);
    tcase_add_test(t, nearest_names);
    suite_add_tcase(s, t);
    return s;
}
