#include "tests/support/check_main.h"

#include "base/mem.h"
#include "trial-runner/process/time_limit.h"

#define NOW INT64_C(1795820400000) /* 2026-11-27T23:00:00Z */

START_TEST(times_and_durations)
{
    static const struct {
        const char *text;
        int64_t left_ms;
    } cases[] = {{"90s", 90000},
                 {"230m", 13800000},
                 {"@1795820460", 60000},
                 {"@1795820399", 0}, /* it has passed */
                 {"2026-11-27T23:00:01.500Z", 1500},
                 {"2026-11-27T22:00:00Z", 0}};
    struct as_err err = {0};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        int64_t left = -1;
        ck_ok(time_limit_parse(cases[i].text, NOW, &left, &err), err);
        ck_assert_msg(left == cases[i].left_ms, "%s: %lld", cases[i].text, (long long)left);
    }
}
END_TEST

START_TEST(what_is_no_time)
{
    static const char *const wrong[] = {
        "", "soon", "@", "@x", "@-5", "12:00", "@99999999999999999", "2026-11-27T23:00:00+02:00"};
    struct as_err err = {0};
    int64_t left = -7;
    for (size_t i = 0; i < AS_ARRAY_LEN(wrong); i++)
        ck_fails(time_limit_parse(wrong[i], NOW, &left, &err), AS_E_INVAL, err, "no time");
    ck_assert_int_eq(left, -7);
}
END_TEST

START_TEST(the_notice_is_the_grace_period_and_some_time_to_deliver)
{
    ck_assert_int_eq(time_limit_notice_ms(3600000, 60000), 75000);
    ck_assert_int_eq(time_limit_notice_ms(3600000, 0), TIME_LIMIT_DELIVERY_MS);
    ck_assert_int_eq(time_limit_notice_ms(60000, 60000), 30000); /* half of a short job */
    ck_assert_int_eq(time_limit_notice_ms(60000, INT64_MAX), 30000);
    ck_assert_int_eq(time_limit_notice_ms(0, 1000), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("time_limit");
    TCase *t = tcase_create("time_limit");
    tcase_add_test(t, times_and_durations);
    tcase_add_test(t, what_is_no_time);
    tcase_add_test(t, the_notice_is_the_grace_period_and_some_time_to_deliver);
    suite_add_tcase(s, t);
    return s;
}
