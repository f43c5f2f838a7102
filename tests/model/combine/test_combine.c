/* The formulas of ensembles, held against numbers that were computed by hand. */
#include <math.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/combine/combine.h"
#include "tests/support/check_main.h"

static const float first[] = {0.25f, 0.75f, 0.5f, 0.5f, 1, 0};
static const float second[] = {0.5f, 0.5f, 1, 0, 0.125f, 0.875f};

static void combines(const struct combine_rule *rule, double wa, double wb, const size_t *rows,
                     size_t n, const double *expected)
{
    const struct combine_term terms[] = {{first, wa}, {second, wb}};
    double got[6];
    combine_predictions(rule, terms, 2, rows, n, got);
    for (size_t i = 0; i < n * rule->outputs; i++)
        ck_assert_double_eq_tol(got[i], expected[i], 1e-14);
}

START_TEST(a_mean)
{
    const struct combine_rule rule = {.outputs = 2};
    combines(&rule, 0.75, 0.25, NULL, 3,
             (double[]){0.3125, 0.6875, 0.625, 0.375, 0.78125, 0.21875});
    combines(&rule, 0.75, 0.25, (size_t[]){2, 0}, 2, (double[]){0.78125, 0.21875, 0.3125, 0.6875});
}
END_TEST

START_TEST(numbers_with_biases)
{
    const struct combine_rule rule = {.outputs = 2, .biases = (double[]){10, -1}};
    combines(&rule, 2, -1, NULL, 3, (double[]){10, 0, 10, 0, 11.875, -1.875});
}
END_TEST

/* softmax(w ln p + b) is p^w e^b, divided by its sum. */
START_TEST(classes_with_biases)
{
    const struct combine_rule rule = {
        .outputs = 2, .biases = (double[]){log(2), 0}, .of_logs = true};
    double a = 0.25 * 0.25 / 0.5 * 2, b = 0.75 * 0.75 / 0.5;
    double c = 0.5 * 0.5 / 1 * 2, d = 0.5 * 0.5 / 1e-7; /* 0 counts as 1e-7 … */
    double e = 1 / 0.125 * 2, f = 1e-7 * 1e-7 / 0.875;  /* … and 1 as 1 */
    combines(
        &rule, 2, -1, NULL, 3,
        (double[]){a / (a + b), b / (a + b), c / (c + d), d / (c + d), e / (e + f), f / (e + f)});
}
END_TEST

START_TEST(sums)
{
    const struct combine_rule numbers = {.outputs = 2, .is_sum = true};
    combines(&numbers, 1, 0.5, NULL, 2, (double[]){0.5, 1, 1, 0.5});
    const struct combine_rule classes = {.outputs = 2, .is_sum = true, .of_logs = true};
    double a = 0.25 * exp(1), b = 0.75 * exp(1), c = 0.5 * exp(2), d = 0.5;
    double e = exp(0.25), f = 1e-7 * exp(1.75); /* 0 counts as 1e-7 in the first term only */
    combines(
        &classes, 1, 2, NULL, 3,
        (double[]){a / (a + b), b / (a + b), c / (c + d), d / (c + d), e / (e + f), f / (e + f)});
}
END_TEST

/* Large logits are no trouble. */
START_TEST(large_weights)
{
    const struct combine_rule rule = {
        .outputs = 2, .biases = (double[]){1e30, -1e30}, .of_logs = true};
    combines(&rule, 1e30, 1e30, (size_t[]){2}, 1, (double[]){1, 0});
}
END_TEST

/* What is no prediction does not become one. */
START_TEST(nan_stays)
{
    const float odd[] = {NAN, 0.5f, 0.5f, 0.5f};
    const struct combine_term term = {odd, 1};
    for (int logs = 0; logs < 2; logs++) {
        const struct combine_rule rule = {
            .outputs = 2, .biases = (double[]){0, 0}, .of_logs = logs};
        double got[4];
        combine_predictions(&rule, &term, 1, NULL, 2, got);
        ck_assert(isnan(got[0]) && got[2] == 0.5);
    }
}
END_TEST

/* softmax(a ln p + b) is p^a e^b, divided by its sum; 0 counts as 1e-7, and probabilities are those
 * of float32. */
START_TEST(calibrations)
{
    const struct combine_calibration two = {2, log(3)}, three = {0.5, 0};
    double p[] = {0.25, 0.75, 0, 1}, q[] = {0.25, 0.5, 0.25}, f = (double)0.1f;
    double r[] = {0.1, 0.9};
    combine_calibrate(&two, 2, 2, p);
    ck_assert_double_eq_tol(p[0], 1 / 28.0, 1e-14);
    ck_assert_double_eq_tol(p[1], 27 / 28.0, 1e-14);
    ck_assert_double_eq_tol(p[2], 1e-14 / 3, 1e-20);
    combine_calibrate(&three, 3, 1, q);
    ck_assert_double_eq_tol(q[1], sqrt(2) / (2 + sqrt(2)), 1e-14);
    combine_calibrate(&(struct combine_calibration){1, 0}, 2, 1, r);
    ck_assert_double_eq_tol(r[0], f / (f + (double)0.9f), 1e-15);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("combine");
    TCase *t = tcase_create("combine");
    tcase_add_test(t, a_mean);
    tcase_add_test(t, numbers_with_biases);
    tcase_add_test(t, classes_with_biases);
    tcase_add_test(t, sums);
    tcase_add_test(t, large_weights);
    tcase_add_test(t, nan_stays);
    tcase_add_test(t, calibrations);
    suite_add_tcase(s, t);
    return s;
}
