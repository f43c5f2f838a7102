/* The ensemble at a sweep's end, from arrays that trials uploaded. */
#include <string.h>

#include "scheduler/lifecycle/ensembles.h"
#include "scheduler/lifecycle/reaper.h"
#include "tests/scheduler/lifecycle/predictions.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

#define ROWS PREDICTED_ROWS

static struct service s;
static struct as_err err;
static int64_t epoch;

static void begin(void)
{
    epoch = make_runner(&s, "r", 16);
}

static json_t *result(const char *sweep)
{
    const char *text = NULL;
    json_t *j = NULL;
    ck_ok(ensemble_get(s.db, &s.a, sweep, &text, &err), err);
    ck_ok(json_parse(text, strlen(text), &j, &err), err);
    return j;
}

static const char *word(const json_t *j, const char *name)
{
    return json_string_value(json_object_get(j, name));
}

START_TEST(classes_are_combined)
{
    make_sweep(&s, "a", "'max_trials': 4", "");
    struct claim_list list = claim(&s, "r", epoch, 4);
    json_t *j = result("a");
    ck_assert_str_eq(word(j, "state"), "pending");
    json_decref(j);
    for (int k = 0; k < 4; k++) {
        struct attempt_ref ref = ref_of(&list.rows[k]);
        leave_predictions(&s, ref, k, true,
                          k == 3 ? ROWS - 1 : ROWS); /* the last one's shape is wrong */
        finish(&s, ref, 1.0 / 3);
    }
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    j = result("a");
    ck_assert_str_eq(word(j, "state"), "ready");
    ck_assert_str_eq(word(j, "metric"), "error");
    ck_assert_str_eq(word(j, "goal"), "minimize");
    ck_assert_int_eq(json_integer_value(json_object_get(j, "candidates")), 3);
    ck_assert_int_eq(json_integer_value(json_object_get(j, "rows")), ROWS);
    /* 1/3 is the error of each trial, so the program's "loss" is the error rate */
    ck_assert(json_is_true(json_object_get(j, "is_sweep_metric")));
    ck_assert_ptr_nonnull(strstr(word(j, "metric_reason"), "are the error of their predictions"));
    /* they are wrong in different rows, so the mean of two is right everywhere */
    ck_assert(json_number_value(json_object_get(j, "value")) == 0);
    ck_assert_str_eq(word(j, "recommended"), "ensemble");
    json_t *gain = json_object_get(j, "gain");
    /* the best of one half is not quite the best of the other */
    ck_assert_double_eq_tol(json_number_value(json_object_get(gain, "value")), 1.0 / 3, 0.05);
    ck_assert(json_number_value(json_object_get(gain, "low")) > 0.25);
    ck_assert(json_is_false(json_object_get(gain, "within_noise")));
    ck_assert_uint_ge(json_array_size(json_object_get(j, "members")), 2);
    json_t *m = json_array_get(json_object_get(j, "members"), 0);
    ck_assert(json_object_get(m, "params") && json_object_get(m, "weight"));
    double weights = 0;
    size_t i;
    json_array_foreach(json_object_get(j, "members"), i, m) weights +=
        json_number_value(json_object_get(m, "weight"));
    ck_assert(weights > 0.999 && weights < 1.001);
    json_decref(j);
}
END_TEST

/* A sweep that runs on has no ensemble until its second end, which counts the new trials. */
START_TEST(it_is_made_again_at_the_second_end)
{
    struct sweep_changed changed;
    json_t *limits = json_of("{'max_trials': 4}");
    const struct sweep_patch patch = {.limits = limits};
    make_sweep(&s, "a", "'max_trials': 2", "");
    struct claim_list list = claim(&s, "r", epoch, 4);
    for (int k = 0; k < 2; k++) {
        leave_predictions(&s, ref_of(&list.rows[k]), k, true, ROWS);
        finish(&s, ref_of(&list.rows[k]), 1.0 / 3);
    }
    (void)reap(&s);
    ck_ok(sweep_change(s.db, &s.a, "a", &patch, NULL, &changed, &err), err);
    json_decref(limits);
    json_t *j = result("a");
    ck_assert_str_eq(word(j, "state"), "pending");
    json_decref(j);
    list = claim(&s, "r", epoch, 4);
    ck_assert_uint_eq(list.n, 2);
    for (int k = 0; k < 2; k++) {
        leave_predictions(&s, ref_of(&list.rows[k]), k + 2, true, ROWS);
        finish(&s, ref_of(&list.rows[k]), 1.0 / 3);
    }
    (void)reap(&s);
    j = result("a");
    ck_assert_str_eq(word(j, "state"), "ready");
    ck_assert_int_eq(json_integer_value(json_object_get(j, "candidates")), 4);
    json_decref(j);
}
END_TEST

START_TEST(numbers_are_combined)
{
    make_sweep(&s, "a", "'max_trials': 3",
               ", 'ensemble': {'method': 'stacking', 'size': 2, 'non_negative': true}");
    struct claim_list list = claim(&s, "r", epoch, 3);
    for (int k = 0; k < 3; k++) {
        leave_predictions(&s, ref_of(&list.rows[k]), k, false, ROWS);
        finish(&s, ref_of(&list.rows[k]), 2);
    }
    (void)reap(&s);
    json_t *j = result("a");
    ck_assert_str_eq(word(j, "metric"), "rmse");
    ck_assert(json_is_false(json_object_get(j, "is_sweep_metric"))); /* all reported 2 */
    ck_assert_ptr_nonnull(strstr(word(j, "metric_reason"), "cannot be computed"));
    double v = json_number_value(json_object_get(j, "value"));
    double best = json_number_value(json_object_get(json_object_get(j, "best_single"), "value"));
    ck_assert(v > 0 && v < best);
    ck_assert_str_eq(word(j, "method"), "stacking"); /* of the document */
    ck_assert(json_is_true(json_object_get(j, "non_negative")));
    ck_assert_uint_eq(json_array_size(json_object_get(j, "members")), 2);
    json_t *combine = json_object_get(j, "combine");
    ck_assert_str_eq(word(combine, "kind"), "linear");
    ck_assert_str_eq(word(combine, "inputs"), "outputs");
    ck_assert_uint_eq(json_array_size(json_object_get(combine, "biases")), 1);
    json_decref(j);
}
END_TEST

/* The sweep's document says so, and its row keeps it. */
START_TEST(classes_are_calibrated)
{
    make_sweep(&s, "a", "'max_trials': 2", ", 'ensemble': {'calibrate': true}");
    struct claim_list list = claim(&s, "r", epoch, 2);
    for (int k = 0; k < 2; k++) {
        leave_predictions(&s, ref_of(&list.rows[k]), k, true, ROWS);
        finish(&s, ref_of(&list.rows[k]), 1.0 / 3);
    }
    (void)reap(&s);
    JSON_AUTO j = result("a");
    const json_t *combine = json_object_get(j, "combine");
    ck_assert(json_is_true(json_object_get(j, "calibrate")));
    ck_assert_double_gt(
        json_number_value(json_object_get(json_object_get(combine, "calibration"), "slope")), 0);
    ck_assert_str_eq(word(combine, "kind"), "mean");
}
END_TEST

/* Rows of weight 4 are those in which trial 0 is wrong. A trial without weights is left out. */
START_TEST(rows_have_weights)
{
    const double errors[] = {4.0 / 6, 1.0 / 6, 1.0 / 6, 1.0 / 3};
    make_sweep(&s, "a", "'max_trials': 4", "");
    struct claim_list list = claim(&s, "r", epoch, 4);
    for (int k = 0; k < 4; k++) {
        const struct file_row weights = put_weights(&s, (float[]){4, 1, 1});
        leave_predictions_and(&s, ref_of(&list.rows[k]), k, true, ROWS, k < 3 ? &weights : NULL);
        finish(&s, ref_of(&list.rows[k]), errors[k]);
    }
    (void)reap(&s);
    json_t *j = result("a");
    ck_assert_str_eq(word(j, "state"), "ready");
    ck_assert(json_is_true(json_object_get(j, "weighted")));
    ck_assert_str_eq(word(j, "metric"), "error");
    ck_assert(json_is_true(json_object_get(j, "is_sweep_metric"))); /* weighted, it is reported */
    ck_assert_int_eq(json_integer_value(json_object_get(j, "candidates")), 3);
    const json_t *single = json_object_get(j, "best_single");
    ck_assert_int_eq(json_integer_value(json_object_get(single, "number")), 1);
    ck_assert_double_eq_tol(json_number_value(json_object_get(single, "value_select")), 1.0 / 6,
                            1e-9);
    json_decref(j);
}
END_TEST

#define BUCKETING ", 'ensemble': {'method': 'bucketing'}"

/* Trial k is wrong in the rows of one region, and is not the one for it. */
START_TEST(regions_have_their_own_trials)
{
    static const char *const names[] = {"north", "west", "south"};
    make_sweep(&s, "a", "'max_trials': 3", BUCKETING);
    struct claim_list list = claim(&s, "r", epoch, 3);
    for (int k = 0; k < 3; k++) {
        const struct file_row buckets = put_buckets(&s, names);
        leave_predictions_and(&s, ref_of(&list.rows[k]), k, true, ROWS, k ? &buckets : NULL);
        finish(&s, ref_of(&list.rows[k]), 1.0 / 3);
    }
    (void)reap(&s);
    json_t *j = result("a");
    json_t *combine = json_object_get(j, "combine"), *of = json_object_get(combine, "buckets");
    ck_assert_str_eq(word(combine, "kind"), "by");
    ck_assert_str_eq(word(combine, "column"), "region");
    ck_assert_uint_eq(json_array_size(of), 3);
    for (int b = 0; b < 3; b++) {
        int64_t number = json_integer_value(json_object_get(json_array_get(of, b), "number"));
        ck_assert_str_eq(word(json_array_get(of, b), "value"), names[b]);
        ck_assert_int_ne((b + number) % 3, 0);
    }
    ck_assert(json_is_integer(json_object_get(json_object_get(combine, "other"), "number")));
    ck_assert(json_number_value(json_object_get(j, "value")) == 0);
    ck_assert_str_eq(word(j, "recommended"), "ensemble");
    json_decref(j);
}
END_TEST

START_TEST(buckets_that_make_none)
{
    static const struct {
        const char *text, *message;
    } bad[] = {{"{", "buckets.json"},
               {"{\"values\":[]}", "/column is no text"},
               {"{\"column\":\"a\",\"values\":[\"b\"]}", "has 1 values, the targets ask for 600"}};
    for (size_t b = 0; b < AS_ARRAY_LEN(bad); b++) {
        const char name[2] = {(char)('b' + b), 0};
        make_sweep(&s, name, "'max_trials': 2", BUCKETING);
        struct claim_list list = claim(&s, "r", epoch, 2);
        for (int k = 0; k < 2; k++) {
            const struct file_row buckets = put_text(&s, "buckets.json", bad[b].text);
            leave_predictions_and(&s, ref_of(&list.rows[k]), k, true, ROWS, &buckets);
            finish(&s, ref_of(&list.rows[k]), 0.5);
        }
        (void)reap(&s);
        json_t *j = result(name);
        ck_assert_str_eq(word(j, "state"), "none");
        ck_assert_msg(strstr(word(j, "reason"), bad[b].message), "%s", word(j, "reason"));
        json_decref(j);
    }
}
END_TEST

START_TEST(weights_that_make_none)
{
    static const float bad[][3] = {{1, -1, 1}, {0, 0, 0}};
    static const char *const messages[] = {"weights.npy has -1 in row 1",
                                           "all rows have the weight"};
    for (size_t b = 0; b < 2; b++) {
        const char *name = b ? "c" : "b";
        make_sweep(&s, name, "'max_trials': 2", "");
        struct claim_list list = claim(&s, "r", epoch, 2);
        for (int k = 0; k < 2; k++) {
            const struct file_row weights = put_weights(&s, bad[b]);
            leave_predictions_and(&s, ref_of(&list.rows[k]), k, true, ROWS, &weights);
            finish(&s, ref_of(&list.rows[k]), 0.5);
        }
        (void)reap(&s);
        json_t *j = result(name);
        ck_assert_str_eq(word(j, "state"), "none");
        ck_assert_msg(strstr(word(j, "reason"), messages[b]), "%s", word(j, "reason"));
        json_decref(j);
    }
}
END_TEST

START_TEST(too_few_make_none)
{
    make_sweep(&s, "a", "'max_trials': 2", "");
    make_sweep(&s, "b", "'max_trials': 1", ", 'ensemble': false");
    struct claim_list list = claim(&s, "r", epoch, 3);
    for (size_t k = 0; k < list.n; k++) {
        if (k == 0)
            leave_predictions(&s, ref_of(&list.rows[k]), 0, true, ROWS);
        finish(&s, ref_of(&list.rows[k]), 2);
    }
    (void)reap(&s);
    json_t *j = result("a");
    ck_assert_str_eq(word(j, "state"), "none");
    ck_assert_ptr_nonnull(strstr(word(j, "reason"), "fewer than two"));
    json_decref(j);
    j = result("b");
    ck_assert_str_eq(word(j, "reason"), "the sweep asks for none");
    json_decref(j);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    ck_assert_int_eq(sweep_of_id(&s, "b").state, SWEEP_COMPLETED);
}
END_TEST

/* Files that are no arrays, and arrays that are no predictions, never stop the end of a sweep. */
START_TEST(rubbish_makes_none)
{
    char one[SHA256_HEX_SIZE];
    make_sweep(&s, "a", "'max_trials': 3", "");
    struct claim_list list = claim(&s, "r", epoch, 3);
    put_blob(&s, "not an array", one);
    for (int k = 0; k < 3; k++) {
        struct attempt_ref ref = ref_of(&list.rows[k]);
        struct file_row f[] = {{"predictions.npy", 12, one}, {"targets.npy", 12, one}};
        ck_ok(attempt_files(s.db, &ref, NULL, FILE_ARTIFACT, f, 2, &err), err);
        finish(&s, ref, 1);
    }
    (void)reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
    json_t *j = result("a");
    ck_assert_str_eq(word(j, "state"), "none");
    ck_assert(strncmp(word(j, "reason"), "targets.npy: not an NPY file", 28) == 0);
    json_decref(j);
}
END_TEST

START_TEST(one_server_at_a_time)
{
    bool worked = true;
    make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    finish(&s, ref_of(&c), 1);
    pg_fixture_exec(s.url, "update ensemble set lease_until = now() + interval '1 h'");
    ck_ok(ensembles_tick(s.db, &worked, &err), err);
    ck_assert(!worked); /* another server computes it */
    pg_fixture_exec(s.url, "update ensemble set lease_until = now() - interval '1 s'");
    ck_ok(ensembles_tick(s.db, &worked, &err), err);
    ck_assert(worked); /* that server died */
    const char *text;
    ck_fails(ensemble_get(s.db, &s.a, "x", &text, &err), AS_E_NOT_FOUND, err, "'x'");
}
END_TEST

static double figure(const json_t *test, const char *which, const char *name)
{
    return json_number_value(json_object_get(json_object_get(test, which), name));
}

/* Each trial is wrong in a quarter of the test rows, in other ones: the mean of two is right. */
START_TEST(test_rows_measure_what_was_chosen)
{
    make_sweep(&s, "a", "'max_trials': 3", "");
    make_sweep(&s, "b", "'max_trials': 3", "");
    struct claim_list list = claim(&s, "r", epoch, 6);
    int of_sweep[2] = {0};
    for (size_t i = 0; i < list.n; i++) {
        bool is_b = list.rows[i].sweep[0] == 'b';
        int k = of_sweep[is_b]++;
        leave_test_predictions(&s, ref_of(&list.rows[i]), k, is_b && k < 2);
        finish(&s, ref_of(&list.rows[i]), 1.0 / 3);
    }
    (void)reap(&s);
    (void)reap(&s);
    json_t *j = result("a"), *test = json_object_get(j, "test");
    ck_assert_int_eq(json_integer_value(json_object_get(test, "rows")), 80);
    ck_assert_double_eq_tol(figure(test, "best_single", "value"), 0.25, 1e-9);
    ck_assert_double_eq_tol(figure(test, "ensemble", "value"), 0, 1e-9);
    ck_assert_double_eq_tol(figure(test, "gain", "value"), 0.25, 1e-9);
    /* Wilson's intervals of 20 and of 0 of 80 rows */
    ck_assert_double_eq_tol(figure(test, "best_single", "low"), 0.17943, 1e-4);
    ck_assert_double_eq_tol(figure(test, "best_single", "high"), 0.33692, 1e-4);
    ck_assert_double_eq(figure(test, "ensemble", "low"), 0);
    ck_assert_double_eq_tol(figure(test, "ensemble", "high"), 0.03271, 1e-4);
    ck_assert(figure(test, "gain", "low") > 0);
    ck_assert(json_is_false(json_object_get(json_object_get(test, "gain"), "within_noise")));
    json_decref(j);
    j = result("b");
    ck_assert_str_eq(word(j, "state"), "ready"); /* only its test figures are missing */
    ck_assert_ptr_nonnull(strstr(word(json_object_get(j, "test"), "reason"), "left no test"));
    json_decref(j);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("ensembles");
    TCase *c = service_case(su, "ensembles", &s, 0);
    tcase_add_checked_fixture(c, begin, NULL);
    tcase_add_test(c, classes_are_combined);
    tcase_add_test(c, it_is_made_again_at_the_second_end);
    tcase_add_test(c, numbers_are_combined);
    tcase_add_test(c, classes_are_calibrated);
    tcase_add_test(c, rows_have_weights);
    tcase_add_test(c, regions_have_their_own_trials);
    tcase_add_test(c, buckets_that_make_none);
    tcase_add_test(c, weights_that_make_none);
    tcase_add_test(c, too_few_make_none);
    tcase_add_test(c, test_rows_measure_what_was_chosen);
    tcase_add_test(c, rubbish_makes_none);
    tcase_add_test(c, one_server_at_a_time);
    return su;
}
