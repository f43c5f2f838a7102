#include "base/proc_stat.h"

#include "tests/support/check_main.h"

#define REST " 4 0 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25\n"

START_TEST(fields_are_counted_behind_the_name)
{
    struct proc_stat s;
    ck_assert(proc_stat_parse("12 (a) S) (b) R 3" REST, &s));
    ck_assert_int_eq(s.state, 'R');
    ck_assert_int_eq(s.parent, 3);
    ck_assert_int_eq(s.session, 0);
    ck_assert(s.user == 13 && s.system == 14 && s.user_waited == 15 && s.system_waited == 16);
    ck_assert(s.start == 21 && s.pages == 23);
}
END_TEST

START_TEST(what_is_no_such_line)
{
    static const char *const lines[] = {
        "",
        "12 (a",
        "12 (a)",
        "12 (a) ",
        "12 (a) R",
        "12 (a) R 3 4",
        "12 (a) R 3 4 0 x 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21"};
    struct proc_stat s = {.pages = 7};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ck_assert_msg(!proc_stat_parse(lines[i], &s), "%s", lines[i]);
    ck_assert_int_eq(s.pages, 7);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("base/proc_stat");
    TCase *t = tcase_create("proc_stat");
    tcase_add_test(t, fields_are_counted_behind_the_name);
    tcase_add_test(t, what_is_no_such_line);
    suite_add_tcase(suite, t);
    return suite;
}
