#include "cli/view/feature_view.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

START_TEST(a_row_for_each_column)
{
    struct pairs p = {0};
    JSON_AUTO j = json_of("{'columns':[{'column':'age','share':0.75,'gain':3.0},"
                          "{'column':'a\\nb','share':0.25,'gain':1.0}]}");
    ck_assert(feature_view_knows(j));
    feature_view_rows(&p, j);
    ck_assert_str_eq(str_cstr(&p.text), "importance.age\t0.75\nimportance.a\\nb\t0.25\n");
    str_done(&p.text);
    feature_view_rows(&p, NULL);
    ck_assert_str_eq(str_cstr(&p.text), "");
    str_done(&p.text);
}
END_TEST

/* A pipe gets all columns, a terminal the first ones. */
START_TEST(a_terminal_gets_the_first_ones)
{
    struct pairs p = {.terminal = {.tty = true}, .name_width = 20};
    JSON_AUTO columns = json_array();
    for (int i = 0; i < FEATURE_VIEW_ROWS + 3; i++)
        (void)json_array_append_new(columns, json_pack("{s:s, s:f}", "column", "c", "share", 0.1));
    JSON_AUTO j = json_pack("{s:O}", "columns", columns);
    for (int tty = 1; tty >= 0; tty--) {
        size_t lines = 0;
        p.terminal.tty = tty;
        feature_view_rows(&p, j);
        for (const char *at = str_cstr(&p.text); (at = strchr(at, '\n')); at++)
            lines++;
        ck_assert_uint_eq(lines, tty ? FEATURE_VIEW_ROWS + 1 : FEATURE_VIEW_ROWS + 3);
        ck_assert(!!strstr(str_cstr(&p.text), "3 more columns in importance.json") == (tty == 1));
        str_done(&p.text);
    }
}
END_TEST

/* A program's own file of this name is not shown. */
START_TEST(other_files_are_not_known)
{
    static const char *const others[] = {"[]",
                                         "{'columns':{}}",
                                         "{'columns':['age']}",
                                         "{'columns':[{'column':1,'share':0.5}]}",
                                         "{'columns':[{'column':'age','share':'big'}]}",
                                         "{'age':0.5}"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        JSON_AUTO j = json_of(others[i]);
        ck_assert_msg(!feature_view_knows(j), "%s", others[i]);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("cli_feature_view");
    TCase *t = tcase_create("cli_feature_view");
    tcase_add_test(t, a_row_for_each_column);
    tcase_add_test(t, a_terminal_gets_the_first_ones);
    tcase_add_test(t, other_files_are_not_known);
    suite_add_tcase(s, t);
    return s;
}
