#include "cli/view/meter.h"

#include "base/clock.h"
#include "cli/view/say.h"
#include "tests/support/check_main.h"

START_TEST(lines)
{
    AS_AUTO(str_done) struct str b = {0};
    struct meter m;
    meter_start(&m, "a.csv", "sending", 3000000);
    meter_format(&m, 1500000, &b);
    ck_assert_str_eq(str_cstr(&b), "a.csv: sending, 1.5 MB of 3.0 MB (50 %)");
    str_clear(&b);
    meter_start(&m, "standard input", "reading", -1);
    meter_format(&m, 20, &b);
    ck_assert_str_eq(str_cstr(&b), "standard input: reading, 20 B");
}
END_TEST

/* Nothing within the first second, then a line, then none for a while. */
START_TEST(first_second)
{
    struct meter m;
    say_set_quiet(true);
    meter_start(&m, "a", "reading", -1);
    meter_show(&m, 1);
    ck_assert(!m.shown);
    m.start_ns -= 2 * NS_PER_S;
    meter_show(&m, 2);
    ck_assert(m.shown);
    int64_t shown_ns = m.shown_ns;
    meter_show(&m, 3);
    ck_assert_int_eq(m.shown_ns, shown_ns);
    meter_end(&m);
    ck_assert(!m.shown);
    say_set_quiet(false);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("meter");
    TCase *t = tcase_create("meter");
    tcase_add_test(t, lines);
    tcase_add_test(t, first_second);
    suite_add_tcase(s, t);
    return s;
}
