/* The summary of an ensemble says what was measured, and derives nothing from the metric's name. */
#include "cli/view/ensemble_view.h"

#include <string.h>

#include "base/json.h"
#include "tests/support/check_main.h"
#include "tests/support/json_text.h"

static void summary_is(const char *ensemble, const char *expected)
{
    const struct terminal terminal = {0};
    struct str b = {0};
    JSON_AUTO e = json_plain(ensemble);
    ensemble_view_summary(e, &terminal, &b);
    ck_assert_str_eq(str_cstr(&b), expected);
    str_done(&b);
}

START_TEST(within_the_noise)
{
    summary_is("{\"state\":\"ready\",\"metric\":\"error\",\"goal\":\"minimize\",\"rows\":449,"
               "\"value\":0.03,\"best_single\":{\"number\":7,\"value\":0.035,\"picked\":[7,12]},"
               "\"gain\":{\"value\":0.005,\"low\":-0.001,\"high\":0.011,\"probability\":0.9,"
               "\"within_noise\":true},\"recommended\":\"ensemble\",\"members\":[{},{}],"
               "\"candidates\":40}",
               "Best single model  error 0.035, trials 7 and 12, each the best on one half\n"
               "Ensemble           error 0.03, 2 models of 40\n"
               "Gain               0.005 (90 % interval -0.001 to 0.011): within the noise\n"
               "Recommended        the ensemble\n"
               "Both are measured on all 449 held-out rows; what was chosen on one half of them "
               "predicts the other half.\n"
               "Members are shown with the values that chose them, which are too good.\n");
}
END_TEST

START_TEST(the_single_model_and_a_reason)
{
    summary_is("{\"state\":\"ready\",\"metric\":\"accuracy\",\"goal\":\"maximize\",\"rows\":20,"
               "\"metric_reason\":\"'score' is\\nused\","
               "\"value\":0.5,\"best_single\":{\"number\":7,\"value\":0.75,\"picked\":[7,7]},"
               "\"gain\":{\"value\":-0.25,\"within_noise\":true},\"recommended\":\"single\","
               "\"members\":[{}],\"candidates\":4}",
               "Best single model  accuracy 0.75, trial 7\n"
               "Ensemble           accuracy 0.5, 1 model of 4\n"
               "Gain               -0.25: within the noise\n"
               "Recommended        trial 7 alone\n"
               "Metric             'score' is\\nused\n"
               "Both are measured on all 20 held-out rows; what was chosen on one half of them "
               "predicts the other half.\n"
               "Members are shown with the values that chose them, which are too good.\n");
}
END_TEST

START_TEST(folds_methods_and_several_sweeps)
{
    summary_is("{\"state\":\"ready\",\"method\":\"stacking\",\"non_negative\":true,\"metric\":"
               "\"error\",\"goal\":\"minimize\",\"rows\":449,\"folds\":5,\"value\":0.03,"
               "\"best_single\":{\"sweep\":\"b\",\"number\":7,\"value\":0.025,\"picked\":[\"b/7\","
               "\"a/2\",\"b/1\"]},\"gain\":{\"value\":-0.005,\"low\":-0.011,\"high\":-0.001,"
               "\"probability\":0.9,\"within_noise\":false},\"recommended\":\"single\",\"members\":"
               "[{},{}],\"candidates\":40}",
               "Best single model  error 0.025, trials b/7, a/2 and b/1, each the best without a "
               "fold\n"
               "Ensemble           error 0.03, stacking without negative coefficients, 2 models of "
               "40\n"
               "Gain               -0.005 (90 % interval -0.011 to -0.001)\n"
               "Recommended        trial b/7 alone\n"
               "Both are measured on all 449 held-out rows, cut into 5 folds; what was chosen "
               "without a fold predicts it.\n"
               "Members are shown with the values that chose them, which are too good.\n");
}
END_TEST

START_TEST(a_calibrated_one)
{
    summary_is(
        "{\"state\":\"ready\",\"method\":\"greedy\",\"calibrate\":true,\"metric\":\"f1\","
        "\"goal\":\"maximize\",\"value\":0.5,\"best_single\":{\"number\":7,\"value\":0.25,"
        "\"picked\":[7]},\"gain\":{\"value\":0.25,\"within_noise\":true},\"recommended\":"
        "\"ensemble\",\"combine\":{\"kind\":\"mean\",\"calibration\":{\"slope\":0.5,\"bias\":"
        "0},\"threshold\":0.125},\"members\":[{}],\"candidates\":4}",
        "Best single model  f1 0.25, trial 7\n"
        "Ensemble           f1 0.5, greedy, calibrated, threshold 0.125, 1 model of 4\n"
        "Gain               0.25: within the noise\n"
        "Recommended        the ensemble\n");
}
END_TEST

START_TEST(a_list)
{
    JSON_AUTO items = json_plain(
        "[{\"number\":2,\"request\":{\"method\":\"average\",\"size\":4},\"ensemble\":{\"state\":"
        "\"ready\",\"metric\":\"auc\",\"value\":0.75,\"best_single\":{\"value\":0.5},\"gain\":"
        "{\"value\":0.25,\"low\":-1,\"high\":1,\"within_noise\":true},\"recommended\":"
        "\"ensemble\"}},{\"number\":1,\"request\":{\"method\":\"greedy\",\"size\":16},\"ensemble\":"
        "{\"state\":\"pending\"}}]");
    const struct terminal terminal = {0};
    AS_AUTO(table_freep) struct table *t = NULL;
    struct as_err err = {0};
    AS_AUTO(str_done) struct str b = {0};
    ck_ok(ensemble_view_list(items, &terminal, &t, &err), err);
    ck_ok(table_format(t, &terminal, &b, NULL, &err), err);
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "average"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "within"));
    ck_assert_ptr_nonnull(strstr(str_cstr(&b), "pending"));
}
END_TEST

/* What servers before 2026-11-22 stored. */
START_TEST(older_results)
{
    summary_is("{\"state\":\"ready\",\"metric\":\"error\",\"goal\":\"minimize\",\"rows_select\":"
               "225,\"rows_report\":224,\"value\":0.03,\"value_select\":0.02,\"best_single\":"
               "{\"number\":7,\"value\":0.035},\"members\":[{}],\"candidates\":4}",
               "Best single model  error 0.035, trial 7\n"
               "Ensemble           error 0.03, 1 model of 4\n");
    summary_is("{\"state\":\"none\",\"reason\":\"the sweep asks for none\"}",
               "There is no ensemble: the sweep asks for none\n");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("ensemble_view");
    TCase *t = tcase_create("ensemble_view");
    tcase_add_test(t, within_the_noise);
    tcase_add_test(t, the_single_model_and_a_reason);
    tcase_add_test(t, folds_methods_and_several_sweeps);
    tcase_add_test(t, a_calibrated_one);
    tcase_add_test(t, a_list);
    tcase_add_test(t, older_results);
    suite_add_tcase(s, t);
    return s;
}
