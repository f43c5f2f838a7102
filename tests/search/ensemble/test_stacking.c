/* Stacking is held against the objective of stacking.c, written plainly: at what it returns, the
 * gradient (by finite differences) vanishes, or points out of the bound. And it finds coefficients
 * that are known because the targets were made with them. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/ensemble/ensemble.h"
#include "tests/support/check_main.h"

enum { ROWS = 240, M = 4 };

static float predictions[M][ROWS * 3];
static float targets[ROWS * 3];
static int64_t classes[ROWS];
static float weights[ROWS];
static const float *of[M];

/* Rows have weights if half of the seed is odd. */
static struct ensemble_input problem(bool of_classes, size_t outputs, uint64_t seed)
{
    struct rng r;
    rng_init(&r, seed, 6);
    for (size_t i = 0; i < ROWS; i++) {
        classes[i] = (int64_t)rng_below(&r, outputs);
        weights[i] = (float)(i % 4) * 0.75f;
        for (size_t c = 0; c < outputs; c++)
            targets[i * outputs + c] = (float)(3 + 10 * rng_normal(&r));
        for (size_t m = 0; m < M; m++) {
            double sum = 0;
            for (size_t c = 0; c < outputs; c++) {
                float *p = &predictions[m][i * outputs + c];
                double hint = of_classes ? classes[i] == (int64_t)c : targets[i * outputs + c];
                double noise = rng_normal(&r) * (of_classes ? 1 : 2 + 2 * (double)m);
                *p = (float)(of_classes ? exp(hint * 2 + noise) : hint + noise);
                sum += *p;
            }
            for (size_t c = 0; of_classes && c < outputs; c++)
                predictions[m][i * outputs + c] /= (float)sum;
        }
    }
    for (size_t m = 0; m < M; m++)
        of[m] = predictions[m];
    return (struct ensemble_input){.candidates = M,
                                   .truth = {ROWS, outputs, of_classes ? classes : NULL,
                                             of_classes ? NULL : targets,
                                             seed / 2 % 2 ? weights : NULL},
                                   .predictions = of,
                                   .metric = of_classes ? SCORE_LOG_LOSS : SCORE_RMSE,
                                   .method = ENSEMBLE_STACKING,
                                   .size = M,
                                   .seed = seed};
}

static double input_of(const struct ensemble_input *in, size_t m, size_t i, size_t c)
{
    double v = (double)in->predictions[m][i * in->truth.outputs + c];
    return in->truth.classes ? log(fmin(fmax(v, 1e-7), 1)) : v;
}

/* The mean square of the inputs around their means: over the classes of a row, or over the rows. */
static double scale_of(const struct ensemble_input *in)
{
    size_t C = in->truth.outputs;
    double sum = 0, all = 0;
    for (size_t i = 0; i < ROWS; i++)
        all += score_weight(&in->truth, i);
    for (size_t m = 0; m < M; m++)
        for (size_t i = 0; i < ROWS; i++)
            for (size_t c = 0; c < C; c++) {
                double mean = 0;
                for (size_t k = 0; in->truth.classes && k < C; k++)
                    mean += input_of(in, m, i, k) / (double)C;
                for (size_t k = 0; !in->truth.classes && k < ROWS; k++)
                    mean += score_weight(&in->truth, k) * input_of(in, m, k, c) / all;
                sum += score_weight(&in->truth, i) * pow(input_of(in, m, i, c) - mean, 2);
            }
    return sum / (all * (double)(M * C));
}

static double objective(const struct ensemble_input *in, double penalty, double scale,
                        const double *w, const double *b)
{
    size_t C = in->truth.outputs;
    double total = 0, pull = 0, bias = 0, all = 0;
    for (size_t i = 0; i < ROWS; i++) {
        double weight = score_weight(&in->truth, i);
        double z[3], sum = 0, error = 0;
        for (size_t c = 0; c < C; c++) {
            z[c] = b[c];
            for (size_t m = 0; m < M; m++)
                z[c] += w[m] * input_of(in, m, i, c);
            sum += exp(z[c]);
            error += in->truth.targets ? pow(z[c] - in->truth.targets[i * C + c], 2) : 0;
        }
        total +=
            weight * (in->truth.classes ? log(sum) - z[in->truth.classes[i]] : error / (double)C);
        all += weight;
    }
    for (size_t m = 0; m < M; m++)
        pull += scale * pow(w[m] - 1.0 / M, 2);
    for (size_t c = 0; c < C; c++)
        bias += b[c] * b[c];
    return total / all + (in->truth.classes ? penalty / 2 * (pull + bias) : penalty * pull);
}

static void check_is_minimum(const struct ensemble_input *in, const struct ensemble *e)
{
    double x[M + 3], scale = scale_of(in), tolerance = in->truth.classes ? 1e-4 : 1e-3;
    memcpy(x, e->weights, sizeof e->weights[0] * M);
    memcpy(x + M, e->biases, sizeof e->biases[0] * e->outputs);
    for (size_t j = 0; j < M + e->outputs; j++) {
        double at = x[j], h = 1e-5;
        x[j] = at + h;
        double up = objective(in, e->penalty, scale, x, x + M);
        x[j] = at - h;
        double down = objective(in, e->penalty, scale, x, x + M), slope = (up - down) / (2 * h);
        x[j] = at;
        if (in->non_negative && j < M && at == 0)
            ck_assert_double_gt(slope, -tolerance);
        else
            ck_assert_double_eq_tol(slope, 0, tolerance);
        ck_assert(!in->non_negative || j >= M || at >= 0);
    }
}

START_TEST(is_the_minimum_of_its_objective)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        bool of_classes = _i % 2 == 0;
        struct ensemble_input in =
            problem(of_classes, of_classes ? 2 + seed % 2 : 1 + seed % 2, seed);
        in.non_negative = _i >= 2;
        if (seed > 3) /* a candidate that is the opposite: its coefficient wants to be negative */
            for (size_t k = 0; k < ROWS * in.truth.outputs; k++)
                predictions[3][k] = of_classes ? 1 - predictions[0][k] : 100 - predictions[0][k];
        AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
        struct as_err err = {0};
        ck_ok(ensemble_select(&in, &e, &err), err);
        ck_assert_ptr_nonnull(e->biases);
        check_is_minimum(&in, e);
        if (in.non_negative && seed > 3) {
            ck_assert_double_eq(e->weights[3], 0);
            ck_assert_uint_eq(e->counts[3], 0); /* it is not a member */
        }
    }
}
END_TEST

START_TEST(finds_known_coefficients)
{
    struct ensemble_input in = problem(false, 1, 3);
    for (size_t i = 0; i < ROWS; i++)
        targets[i] = 1.5f * predictions[0][i] - 0.5f * predictions[2][i] + 7;
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&in, &e, &err), err);
    const double truth[M] = {1.5, 0, -0.5, 0};
    for (size_t m = 0; m < M; m++)
        ck_assert_double_eq_tol(e->weights[m], truth[m], 2e-2);
    ck_assert_double_eq_tol(e->biases[0], 7, 0.2);
    ck_assert(e->value < e->single_value / 10 && e->recommended && !e->within_noise);
    double p[ROWS], v = 0;
    ensemble_predict(e, &in, NULL, ROWS, p);
    ck_ok(score_compute(SCORE_RMSE, &in.truth, NULL, ROWS, p, 1, &v, NULL, &err), err);
    ck_assert_double_eq_tol(v, e->value_selected, 1e-12);
}
END_TEST

/* Probabilities that are too sure by a factor of 3, and one class that is always too likely: the
 * coefficients and the biases put both right. */
START_TEST(calibrates_classes)
{
    struct ensemble_input in = problem(true, 3, 8);
    for (size_t m = 0; m < M; m++)
        for (size_t i = 0; i < ROWS; i++) {
            double p[3], sum = 0;
            for (size_t c = 0; c < 3; c++)
                sum += p[c] = pow(predictions[m][i * 3 + c], 3) * (c == 1 ? 20 : 1);
            for (size_t c = 0; c < 3; c++)
                predictions[m][i * 3 + c] = (float)(p[c] / sum);
        }
    AS_AUTO(ensemble_freep) struct ensemble *e = NULL, *mean = NULL;
    struct as_err err = {0};
    ck_ok(ensemble_select(&in, &e, &err), err);
    in.method = ENSEMBLE_AVERAGE;
    ck_ok(ensemble_select(&in, &mean, &err), err);
    ck_assert(e->value < mean->value / 1.5);
    ck_assert(e->biases[1] < e->biases[0] - 1 && e->biases[1] < e->biases[2] - 1);
    check_is_minimum(&in, e);
    in.method = ENSEMBLE_STACKING;
    double p[ROWS * 3];
    ensemble_predict(e, &in, NULL, ROWS, p);
    for (size_t i = 0; i < ROWS; i++)
        ck_assert_double_eq_tol(p[i * 3] + p[i * 3 + 1] + p[i * 3 + 2], 1, 1e-12);
}
END_TEST

/* Targets that have nothing to do with the predictions are no reason for large coefficients, and
 * the figure is not that of the rows that were fitted. */
START_TEST(noise_is_not_learned)
{
    size_t better = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct ensemble_input in = problem(true, 2, seed);
        struct rng r;
        rng_init(&r, seed, 99);
        for (size_t i = 0; i < ROWS; i++)
            classes[i] = (int64_t)rng_below(&r, 2);
        in.metric = SCORE_ERROR;
        AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
        struct as_err err = {0};
        ck_ok(ensemble_select(&in, &e, &err), err);
        for (size_t m = 0; m < M; m++)
            ck_assert_double_lt(fabs(e->weights[m]), 0.5);
        better += e->value < 0.5;
        ck_assert_double_ge(e->value, 0.35); /* 4.6 standard deviations of chance */
    }
    ck_assert(better >= 5 && better <= 35); /* a fair coin: beyond it 1 in a million */
}
END_TEST

START_TEST(few_rows)
{
    for (size_t rows = 1; rows < 8; rows++) {
        struct ensemble_input in = problem(_i == 0, 2, rows);
        in.truth.rows = rows;
        AS_AUTO(ensemble_freep) struct ensemble *e = NULL;
        struct as_err err = {0};
        ck_ok(ensemble_select(&in, &e, &err), err);
        for (size_t m = 0; m < M; m++)
            ck_assert(isfinite(e->weights[m]));
        ck_assert(e->within_noise);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/ensemble/stacking");
    TCase *t = tcase_create("stacking");
    tcase_add_loop_test(t, is_the_minimum_of_its_objective, 0, 4);
    tcase_add_test(t, finds_known_coefficients);
    tcase_add_test(t, calibrates_classes);
    tcase_add_test(t, noise_is_not_learned);
    tcase_add_loop_test(t, few_rows, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
