#include "cli/view/importance_view.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"

static void check_bar(double low, double value, double high, bool unicode, const char *want)
{
    struct str b = {0};
    importance_view_bar(low, value, high, 10, unicode, &b);
    ck_assert_str_eq(str_cstr(&b), want);
    str_done(&b);
}

START_TEST(bars)
{
    check_bar(0.4, 0.6, 0.8, false, "####==--  ");
    check_bar(0.4, 0.6, 0.8, true, "████▓▓░░  ");
    check_bar(0, 0, 0, false, "          ");
    check_bar(1, 1, 1, false, "##########");
    check_bar(-3, 0.2, 7, false, "==--------");
    check_bar(NAN, NAN, NAN, false, "          ");
    check_bar(0.9, 0.5, 0.1, false, "#####     "); /* not an interval: only the value is drawn */
}
END_TEST

static void format(bool tty, struct str *b)
{
    static const char text[] =
        "{\"metric\":\"loss\",\"trials\":60,\"r2\":0.93,\"parameters\":[{\"name\":\"lr\","
        "\"first\":0.71,\"first_low\":0.66,\"first_high\":0.76,\"total\":0.84,\"total_low\":0.79,"
        "\"total_high\":0.88,\"top\":0.77,\"conditional\":false},{\"name\":\"a\\u001b[31m\","
        "\"first\":0.125,\"first_low\":0.1,"
        "\"first_high\":0.19,\"total\":0.25,\"total_low\":0.2,\"total_high\":0.3,\"top\":0.125,"
        "\"conditional\":true},{\"name\":\"c\","
        "\"first\":null,\"first_low\":null,\"first_high\":null,\"total\":null,\"total_low\":null,"
        "\"total_high\":null}]}";
    struct as_err err = {0};
    JSON_AUTO j = NULL;
    AS_AUTO(table_freep) struct table *t = NULL;
    const struct terminal terminal = {.tty = tty, .width = tty ? 100 : SIZE_MAX};
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    ck_ok(importance_view_table(j, &terminal, &t, &err), err);
    ck_ok(table_format(t, &terminal, b, NULL, &err), err);
}

START_TEST(in_a_pipe)
{
    struct str b = {0};
    format(false, &b);
    ck_assert_str_eq(str_cstr(&b),
                     "parameter\tfirst\tfirst_low\tfirst_high\ttotal\ttotal_low\ttotal_high"
                     "\ttop\tconditional\n"
                     "lr\t0.71\t0.66\t0.76\t0.84\t0.79\t0.88\t0.77\tfalse\n"
                     "a\\x1b[31m\t0.125\t0.1\t0.19\t0.25\t0.2\t0.3\t0.125\ttrue\n"
                     "c\t\t\t\t\t\t\t\t\n");
    str_done(&b);
}
END_TEST

START_TEST(on_a_terminal)
{
    struct str b = {0};
    format(true, &b);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "0.84  0.79-0.88"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "########################=-"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "a\\x1b[31m"));
    ck_assert_ptr_null(strstr(str_cstr(&b), "nan"));
    str_done(&b);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("importance_view");
    TCase *t = tcase_create("importance_view");
    tcase_add_test(t, bars);
    tcase_add_test(t, in_a_pipe);
    tcase_add_test(t, on_a_terminal);
    suite_add_tcase(s, t);
    return s;
}
