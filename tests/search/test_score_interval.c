/* Intervals of metrics against Wilson's formula, and how often they cover what is true of all rows,
 * in drawn samples of known errors and AUCs. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/score_interval.h"
#include "tests/support/check_main.h"

#define ROWS_MOST 600
#define SAMPLES 1500

static struct as_err err;

START_TEST(ends_where_the_metric_does)
{
    static const struct {
        score_metric m;
        double value, half, low, high;
    } cases[] = {{SCORE_LOG_LOSS, 0.5, 0.75, 0, 1.25},
                 {SCORE_RMSE, 3, 4, 0, 7},
                 {SCORE_R2, 0.5, 2, -1.5, 1},
                 {SCORE_BRIER, 0.25, 0.5, 0, 0.75},
                 {SCORE_PINBALL(90), 0.5, 0.75, 0, 1.25}};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        double low = 7, high = 7;
        score_interval(cases[i].m, cases[i].value, cases[i].half, 0, &low, &high);
        ck_assert_double_eq(low, cases[i].low);
        ck_assert_double_eq(high, cases[i].high);
        score_interval(cases[i].m, cases[i].value, NAN, 0, &low, &high);
        ck_assert(isnan(low) && isnan(high));
    }
}
END_TEST

/* The formula of Wilson's paper for k of n rows, in which the influences of rows have no part. */
START_TEST(of_error_is_wilsons)
{
    const double z = SCORE_INTERVAL_QUANTILE;
    for (int n = 30; n <= 300; n *= 10)
        for (int k = 0; k <= n; k += k < 3 || k > n - 4 ? 1 : 5) {
            double p = (double)k / n, low, high, centre = (p + z * z / (2 * n)) / (1 + z * z / n);
            double reach = z * sqrt(p * (1 - p) / n + z * z / (4.0 * n * n)) / (1 + z * z / n);
            score_interval(SCORE_ERROR, p, z * sqrt(p * (1 - p) / n), n, &low, &high);
            ck_assert_double_eq_tol(low, centre - reach, 1e-12);
            ck_assert_double_eq_tol(high, centre + reach, 1e-12);
            ck_assert(low <= p && p <= high && low < high);
            ck_assert(low >= 0 && high <= 1);
        }
    double low, high;
    score_interval(SCORE_ERROR, NAN, NAN, 100, &low, &high);
    ck_assert(isnan(low) && isnan(high));
}
END_TEST

START_TEST(evidence_is_the_rows_that_count)
{
    int64_t two[] = {0, 0, 0, 1, 0, 0, 1, 0}, three[] = {0, 1, 2, 0, 1, 2, 0, 1};
    float weights[] = {1, 1, 1, 3, 0, 0, 1, 0}, targets[8] = {0};
    struct score_truth t = {.rows = 8, .outputs = 2, .classes = two};
    ck_assert_double_eq(score_evidence(SCORE_ERROR, &t), 8);
    ck_assert_double_eq(score_evidence(SCORE_AUC, &t), 16);
    ck_assert_double_eq(score_evidence(SCORE_F1, &t), 4);
    ck_assert_double_eq(score_evidence(SCORE_BALANCED_ACCURACY, &t), 6);
    ck_assert_double_eq(score_evidence(SCORE_LOG_LOSS, &t), 0);
    ck_assert_double_eq(score_evidence(SCORE_BRIER, &t), 0);
    t.weights = weights;
    ck_assert_double_eq(score_evidence(SCORE_ACCURACY, &t), 49.0 / 13);
    ck_assert_double_eq(score_evidence(SCORE_F1, &t), 2 * 1.6);
    t = (struct score_truth){.rows = 8, .outputs = 3, .classes = three};
    ck_assert_double_eq(score_evidence(SCORE_AUC, &t), 8);
    t = (struct score_truth){.rows = 8, .outputs = 1, .targets = targets};
    ck_assert_double_eq(score_evidence(SCORE_RMSE, &t), 0);
    ck_assert_double_eq(score_evidence(SCORE_R2, &t), 0);
}
END_TEST

/* Each sample: `rows` rows, of which `rare` are of class 1. Scores are normal, those of class 1
 * higher by `shift`, so that the AUC is Phi(shift / sqrt 2); a row is labelled wrongly with
 * probability `wrong`. Returns the share of samples whose interval has `truth`. */
static double coverage(score_metric m, size_t rows, size_t rare, double shift, double wrong,
                       double truth)
{
    struct rng rng;
    int64_t classes[ROWS_MOST];
    double p[2 * ROWS_MOST], influence[ROWS_MOST], value, low, high;
    int covered = 0;
    rng_init(&rng, 7, (uint64_t)rows);
    for (int sample = 0; sample < SAMPLES; sample++) {
        for (size_t i = 0; i < rows; i++) {
            classes[i] = i < rare;
            double score = rng_normal(&rng) + shift * (double)(i < rare);
            bool right = rng_uniform(&rng) >= wrong;
            p[2 * i + 1] = wrong > 0 ? (double)(right == (classes[i] == 1)) : score;
            p[2 * i] = wrong > 0 ? 1 - p[2 * i + 1] : -score;
        }
        const struct score_truth t = {.rows = rows, .outputs = 2, .classes = classes};
        ck_ok(score_compute(m, &t, NULL, rows, p, 1, &value, influence, &err), err);
        score_interval(m, value, score_half_width(influence, NULL, rows), score_evidence(m, &t),
                       &low, &high);
        covered += low <= truth && truth <= high;
    }
    return (double)covered / SAMPLES;
}

/* The shares are functions of the seed. A normal interval has 77, 70, 68 and 76 %. */
START_TEST(cover_also_where_nearly_all_rows_are_right)
{
    double of[] = {
        coverage(SCORE_ERROR, 300, 150, 0, 0.005, 0.005),
        coverage(SCORE_ERROR, 60, 30, 0, 0.02, 0.02), coverage(SCORE_AUC, 60, 30, 3.29, 0, 0.99),
        coverage(SCORE_AUC, 600, 30, 3.29, 0, 0.99), coverage(SCORE_AUC, 300, 150, 1.8124, 0, 0.9)};
    for (size_t i = 0; i < AS_ARRAY_LEN(of); i++)
        ck_assert_msg(of[i] > 0.85 && of[i] < 0.99, "case %zu: %g", i, of[i]);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/score_interval");
    TCase *t = tcase_create("score_interval");
    tcase_add_test(t, ends_where_the_metric_does);
    tcase_add_test(t, of_error_is_wilsons);
    tcase_add_test(t, evidence_is_the_rows_that_count);
    tcase_add_test(t, cover_also_where_nearly_all_rows_are_right);
    suite_add_tcase(s, t);
    return s;
}
