#include "cli/view/rung_view.h"

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

START_TEST(results_of_a_trial)
{
    struct pairs p = {.name_width = 20};
    json_t *rungs = json_of(
        "[{'step': 3, 'value': 0.25, 'decision': 'pause', 'reason': 'rank 2 of 6', 'promoted_seq': "
        "9, 'promoted_reason': 'rank 1 of 7'}, {'step': 9, 'value': null, 'decision': 'prune', "
        "'reason': 'rank 3 of 3', "
        "'promoted_seq': null}, {'step': 27, 'value': 1, 'decision': 'go_on', 'reason': 'rank 1 of "
        "1'}]");
    rung_view_rows(&p, rungs);
    ck_assert_str_eq(str_cstr(&p.text), "rung 3\t0.25, paused: rank 2 of 6; promoted: rank 1 of 7\n"
                                        "rung 9\tno number, pruned: rank 3 of 3\n"
                                        "rung 27\t1, goes on: rank 1 of 1\n");
    str_clear(&p.text);
    rung_view_rows(&p, NULL);
    rung_view_rows(&p, json_null());
    ck_assert_str_eq(str_cstr(&p.text), "");
    str_done(&p.text);
    json_decref(rungs);
}
END_TEST

START_TEST(what_it_did_in_a_sweep)
{
    AS_AUTO(str_done) struct str b = {0};
    json_t *report = json_of(
        "{'rungs': [{'step': 3, 'reached': 9, 'stopped': 2, 'paused': 4, 'obeyed': 5, 'disobeyed': "
        "1}, {'step': 9, 'reached': 0, 'stopped': 0, 'paused': 0, 'obeyed': 0, 'disobeyed': 0}], "
        "'steps_spent': 50, 'steps_saved': 48, 'warning': 'w'}");
    rung_view_report(report, &b);
    ck_assert_str_eq(
        str_cstr(&b),
        "Rung 3             9 reached it, 2 stopped, 4 wait; 1 did not end as they were told\n"
        "Steps              50 spent, 48 saved by early stopping\n"
        "Warning            w\n");
    str_clear(&b);
    rung_view_report(json_null(), &b);
    rung_view_report(NULL, &b);
    ck_assert_str_eq(str_cstr(&b), "");
    struct pairs p = {.name_width = 14};
    rung_view_pairs(&p, report);
    ck_assert_str_eq(str_cstr(&p.text),
                     "rung 3\t9 reached it, 2 stopped, 4 wait; 1 did not end as they were told\n"
                     "rung 9\t0 reached it, 0 stopped, 0 wait\n"
                     "steps\t50 spent, 48 saved by early stopping\n"
                     "warning\tw\n");
    str_clear(&p.text);
    rung_view_pairs(&p, json_null());
    rung_view_pairs(&p, NULL);
    ck_assert_str_eq(str_cstr(&p.text), "");
    str_done(&p.text);
    json_decref(report);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("cli/view/rung_view");
    TCase *t = tcase_create("rung_view");
    tcase_add_test(t, results_of_a_trial);
    tcase_add_test(t, what_it_did_in_a_sweep);
    suite_add_tcase(suite, t);
    return suite;
}
