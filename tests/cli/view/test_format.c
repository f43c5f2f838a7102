#include "cli/view/format.h"

#include "base/clock.h"
#include "base/json.h"
#include "cli/view/csv_writer.h"
#include "tests/support/check_main.h"

static void check_value(json_t *v, format_kind kind, const char *want)
{
    struct str b = {0};
    format_value(&b, v, kind);
    ck_assert_str_eq(str_cstr(&b), want);
    str_done(&b);
    json_decref(v);
}

START_TEST(values)
{
    check_value(json_real(0.1), FORMAT_EXACT, "0.1");
    check_value(json_real(1.0 / 3), FORMAT_SHORT, "0.333333");
    check_value(json_integer(-7), FORMAT_EXACT, "-7");
    check_value(json_string("NaN"), FORMAT_EXACT, "NaN");
    check_value(json_true(), FORMAT_EXACT, "true");
    check_value(json_null(), FORMAT_EXACT, "");
    check_value(NULL, FORMAT_EXACT, "");
    check_value(json_pack("{s:[i,i]}", "a", 1, 2), FORMAT_SHORT, "{\"a\":[1,2]}");
    JSON_AUTO params = json_pack("{s:f, s:i, s:s, s:b}", "lr", 0.012345678, "width", 64, "opt",
                                 "adamw", "flag", 1);
    struct str b = {0};
    format_params(&b, params, FORMAT_SHORT);
    ck_assert_str_eq(str_cstr(&b), "lr=0.01235 width=64 opt=adamw flag=true");
    str_done(&b);
}
END_TEST

START_TEST(times)
{
    struct as_err err = {0};
    int64_t ms;
    char buf[32];
    ck_ok(clock_parse_utc("2026-11-20T18:47:03.123Z", &ms, &err), err);
    ck_assert_int_eq(ms, 1795200423123);
    ck_ok(clock_parse_utc("1970-01-01T00:00:01Z", &ms, &err), err);
    ck_assert_int_eq(ms, 1000);
    ck_fails(clock_parse_utc("yesterday", &ms, &err), AS_E_INVAL, err, "yesterday");
    ck_fails(clock_parse_utc("2026-11-20T18:47:03+02:00", &ms, &err), AS_E_INVAL, err, "UTC");
    JSON_AUTO at = json_string("1970-01-01T00:00:01Z");
    ck_assert_int_eq(format_elapsed_ms(at, NULL, 5500), 4500);
    ck_assert_int_eq(format_elapsed_ms(at, NULL, 500), 0); /* the clocks of two machines differ */
    ck_assert_int_eq(format_elapsed_ms(NULL, NULL, 500), -1);
    JSON_AUTO trial = json_pack("{s:I, s:n}", "ran_ms", (json_int_t)7000, "running_since");
    ck_assert_int_eq(format_ran_ms(trial, 5500), 7000);
    ck_assert_int_eq(json_object_set(trial, "running_since", at), 0);
    ck_assert_int_eq(format_ran_ms(trial, 5500), 11500);
    ck_assert_int_eq(json_object_set_new(trial, "ran_ms", json_null()), 0);
    ck_assert_int_eq(format_ran_ms(trial, 5500), -1);
    ck_assert_str_eq(format_ago(at, 62000, buf), "1 min ago");
    ck_assert_str_eq(format_ago(NULL, 62000, buf), "-");
    ck_assert_str_eq(format_size(512, buf), "512 B");
    ck_assert_str_eq(format_size(1536000, buf), "1.5 MB");
}
END_TEST

static void check_cell(bool first, csv_kind kind, const char *text, const char *want)
{
    struct str b = {0};
    csv_cell(&b, first, kind, text);
    ck_assert_str_eq(str_cstr(&b), want);
    str_done(&b);
}

START_TEST(csv)
{
    check_cell(true, CSV_TEXT, "plain", "plain");
    check_cell(false, CSV_TEXT, "", ",");
    check_cell(true, CSV_TEXT, "a,b", "\"a,b\"");
    check_cell(true, CSV_TEXT, "say \"hi\"", "\"say \"\"hi\"\"\"");
    check_cell(true, CSV_TEXT, "two\nlines", "\"two\nlines\"");
    check_cell(true, CSV_TEXT, "=1+1", "'=1+1");
    check_cell(true, CSV_TEXT, "+a", "'+a");
    check_cell(true, CSV_TEXT, "@a,b", "\"'@a,b\"");
    check_cell(true, CSV_TEXT, "-x", "'-x");
    check_cell(true, CSV_TEXT, "\t=x", "'\t=x");
    check_cell(true, CSV_NUMBER, "-1.5", "-1.5");
}
END_TEST

START_TEST(limits_and_tags)
{
    struct str b = {0};
    json_t *six = json_integer(21600), *none = json_null(), *state = json_string("paused");
    json_t *tags = json_pack("[s, s]", "team=vision", "quick"), *empty = json_array();
    format_limit(&b, "max_trials", six);
    str_putc(&b, ' ');
    format_limit(&b, "wall_time", six);
    str_putc(&b, ' ');
    format_limit(&b, "wall_time", none);
    str_putc(&b, ' ');
    format_limit(&b, "state", state);
    ck_assert_str_eq(b.s, "21600 21600 s none paused");
    str_clear(&b);
    json_t *regret = json_pack("{s:f, s:i}", "regret", 0.01, "min_trials", 20);
    json_t *share = json_pack("{s:f, s:i}", "relative", 0.005, "min_trials", 50);
    format_limit(&b, "stop_when", regret);
    str_putc(&b, ' ');
    format_limit(&b, "stop_when", share);
    ck_assert_str_eq(b.s, "0.01 after 20 trials 0.5% after 50 trials");
    json_decref(regret);
    json_decref(share);
    str_clear(&b);
    format_tags(&b, empty);
    format_tags(&b, NULL);
    ck_assert_uint_eq(b.len, 0);
    format_tags(&b, tags);
    ck_assert_str_eq(b.s, "team=vision, quick");
    str_done(&b);
    json_decref(six);
    json_decref(none);
    json_decref(state);
    json_decref(tags);
    json_decref(empty);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("format");
    TCase *t = tcase_create("format");
    tcase_add_test(t, values);
    tcase_add_test(t, limits_and_tags);
    tcase_add_test(t, times);
    tcase_add_test(t, csv);
    suite_add_tcase(s, t);
    return s;
}
