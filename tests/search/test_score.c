/* Metrics of any rows. The trainer's own functions are the oracle of the values. Influences are
 * compared with the change that one more copy of a row causes among many copies of all rows. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/network/metrics.h"
#include "search/score.h"
#include "tests/support/check_main.h"

#define MAX_ROWS 40
#define MAX_C 7
#define COPIES 300

struct problem {
    struct score_truth truth;
    int64_t classes[MAX_ROWS];
    float targets[MAX_ROWS * MAX_C];
    float p[MAX_ROWS * MAX_C];
    float weights[MAX_ROWS];
    size_t n;
};

/* Coarse outputs, so that there are ties. Rows have weights, some of them none, if the seed is
 * odd. */
static void random_problem(struct problem *p, uint64_t seed, score_metric m)
{
    struct rng r;
    rng_init(&r, seed, 3);
    bool classes = score_is_of_classes(m);
    size_t C = classes ? 2 + rng_below(&r, MAX_C - 1) : 1 + rng_below(&r, 3);
    p->n = 4 + rng_below(&r, MAX_ROWS - 3);
    p->truth =
        (struct score_truth){p->n, C, classes ? p->classes : NULL, classes ? NULL : p->targets};
    p->truth.weights = seed % 2 ? p->weights : NULL;
    for (size_t i = 0; i < p->n; i++) {
        p->weights[i] = i > 0 ? (float)rng_below(&r, 4) * 0.7f : 1;
        p->classes[i] = (int64_t)rng_below(&r, C);
        for (size_t c = 0; c < C; c++) {
            double hint = classes ? p->classes[i] == (int64_t)c : 0;
            p->targets[i * C + c] = (float)rng_normal(&r);
            p->p[i * C + c] = classes ? (float)(1 + floor(4 * rng_uniform(&r) + 2 * hint)) / 8
                                      : p->targets[i * C + c] + (float)rng_normal(&r);
        }
    }
}

static double oracle(const struct problem *p, score_metric m)
{
    int32_t labels[MAX_ROWS];
    char name[40];
    double v = 0;
    struct as_err err = {0};
    for (size_t i = 0; i < p->n; i++)
        labels[i] = (int32_t)p->classes[i];
    const struct metric_input in = {.n = p->n,
                                    .outputs = p->truth.outputs,
                                    .labels = score_is_of_classes(m) ? labels : NULL,
                                    .targets = p->targets,
                                    .predicted = p->p,
                                    .weights = p->truth.weights};
    if (m == SCORE_MSE)
        return metric_mse(&in);
    (void)snprintf(name, sizeof name, "val_%s", score_format(m));
    ck_ok(metric_compute(name, &in, &v, &err), err);
    return v;
}

/* The metric of `members` times the predictions, over a list of rows that may repeat. */
static double compute(const struct problem *p, score_metric m, const size_t *rows, size_t n,
                      double members, double *influence)
{
    size_t C = p->truth.outputs;
    double *q = as_calloc(n * C, sizeof *q), v = 0;
    struct as_err err = {0};
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < C; c++)
            q[i * C + c] = members * (double)p->p[(rows ? rows[i] : i) * C + c];
    ck_ok(score_compute(m, &p->truth, rows, n, q, members, &v, influence, &err), err);
    free(q);
    return v;
}

START_TEST(values_are_the_trainers)
{
    score_metric m = (score_metric)_i;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct problem p;
        random_problem(&p, seed, m);
        double want = oracle(&p, m), got = compute(&p, m, NULL, p.n, 4, NULL);
        if (isnan(want))
            ck_assert(isnan(got));
        else
            ck_assert_double_eq_tol(got, want, 1e-9);
    }
}
END_TEST

START_TEST(influences_are_derivatives)
{
    score_metric m = (score_metric)_i;
    static size_t rows[MAX_ROWS * COPIES + 1];
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct problem p;
        double influence[MAX_ROWS], sum = 0;
        random_problem(&p, seed, m);
        double value = compute(&p, m, NULL, p.n, 1, influence);
        if (isnan(value))
            continue;
        for (size_t i = 0; i < p.n * COPIES; i++)
            rows[i] = i % p.n;
        for (size_t i = 0; i < p.n; i++) {
            size_t n = p.n * COPIES + 1;
            rows[n - 1] = i;
            double change = (compute(&p, m, rows, n, 1, NULL) - value) * (double)n;
            ck_assert_double_eq_tol(change, influence[i], 0.02 * (1 + fabs(influence[i])));
            sum += influence[i];
        }
        ck_assert_double_eq_tol(sum, 0, 1e-9 * (double)p.n);
    }
}
END_TEST

START_TEST(no_value_without_two_classes)
{
    const int64_t classes[3] = {1, 1, 1};
    const double p[6] = {0.1, 0.9, 0.2, 0.8, 0.3, 0.7};
    const struct score_truth truth = {3, 2, classes, NULL};
    double v = 0, influence[3] = {1, 1, 1};
    struct as_err err = {0};
    ck_ok(score_compute(SCORE_AUC, &truth, NULL, 3, p, 1, &v, influence, &err), err);
    ck_assert(isnan(v) && influence[0] == 0 && influence[2] == 0);
}
END_TEST

/* A list of rows without weight has no value either. */
START_TEST(no_value_without_weight)
{
    struct problem p;
    double influence[MAX_ROWS];
    const size_t rows[2] = {1, 2};
    random_problem(&p, 1, (score_metric)_i);
    p.weights[1] = p.weights[2] = 0;
    ck_assert(isnan(compute(&p, (score_metric)_i, rows, 2, 1, influence)));
    ck_assert(influence[0] == 0 && influence[1] == 0);
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    struct problem p;
    double q[MAX_ROWS * MAX_C] = {0}, v;
    struct as_err err = {0};
    random_problem(&p, 1, (score_metric)_i);
    for (size_t nth = 1;; nth++) {
        as_mem_fail_nth(nth);
        as_status st = score_compute((score_metric)_i, &p.truth, NULL, p.n, q, 1, &v, NULL, &err);
        as_mem_fail_nth(0);
        if (st == AS_OK)
            break;
        ck_assert_int_eq(st, AS_E_NOMEM);
    }
}
END_TEST

START_TEST(metrics_have_names)
{
    static const char *const names[SCORE_METRICS] = {"error",
                                                     "log_loss",
                                                     "accuracy",
                                                     "top5",
                                                     "auc",
                                                     "f1",
                                                     "mse",
                                                     "rmse",
                                                     "mae",
                                                     "r2",
                                                     "balanced_accuracy",
                                                     "average_precision",
                                                     "brier",
                                                     "mape"};
    for (int m = 0; m < SCORE_METRICS; m++)
        ck_assert_str_eq(score_format((score_metric)m), names[m]);
    ck_assert(score_is_maximized(SCORE_AUC) && !score_is_maximized(SCORE_ERROR));
    ck_assert(score_is_of_classes(SCORE_F1) && !score_is_of_classes(SCORE_MAE));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/score");
    TCase *t = tcase_create("score");
    tcase_add_loop_test(t, values_are_the_trainers, 0, SCORE_METRICS);
    tcase_add_loop_test(t, influences_are_derivatives, 0, SCORE_METRICS);
    tcase_add_loop_test(t, values_are_the_trainers, SCORE_PINBALL(1), SCORE_PINBALL(100));
    tcase_add_loop_test(t, influences_are_derivatives, SCORE_PINBALL(90), SCORE_PINBALL(91));
    tcase_add_test(t, no_value_without_two_classes);
    tcase_add_loop_test(t, no_value_without_weight, 0, SCORE_METRICS);
    tcase_add_loop_test(t, runs_out_of_memory_cleanly, 0, SCORE_METRICS);
    tcase_add_test(t, metrics_have_names);
    suite_add_tcase(s, t);
    return s;
}
