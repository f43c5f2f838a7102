/* The metric of an ensemble: the trainer's by its name, a program's by its values. */
#include "scheduler/lifecycle/ensemble_metric.h"

#include <string.h>

#include "base/mem.h"
#include "tests/support/check_main.h"

#define ROWS 6

static const int64_t classes[ROWS] = {0, 1, 1, 0, 1, 1};
/* two models; both have two rows wrong, but not the same AUC */
static const float a[ROWS * 2] = {.4f, .6f, .3f, .7f, .6f, .4f, .8f, .2f, .2f, .8f, .1f, .9f};
static const float b[ROWS * 2] = {.9f, .1f, .3f, .7f, .6f, .4f, .8f, .2f, .55f, .45f, .1f, .9f};
static const float *const both[] = {a, b};

static struct as_err err;

static struct ensemble_metric choose(const char *name, bool is_trainers, bool maximize,
                                     const double *values)
{
    struct ensemble_metric m;
    const struct ensemble_metric_input in = {.name = name,
                                             .is_trainers = is_trainers,
                                             .maximize = maximize,
                                             .truth = {ROWS, 2, classes, NULL},
                                             .n = 2,
                                             .predictions = both,
                                             .values = values};
    ck_ok(ensemble_metric_choose(&in, &m, &err), err);
    return m;
}

static const double unknown[] = {7, -3};

START_TEST(names_of_the_trainer)
{
    static const struct {
        const char *name;
        bool maximize;
        score_metric metric;
    } rows[] = {{"val_error", false, SCORE_ERROR},
                {"val_accuracy", true, SCORE_ACCURACY},
                {"val_auc", true, SCORE_AUC},
                {"val_f1", true, SCORE_F1},
                {"val_top5", true, SCORE_TOP5},
                {"val_log_loss", false, SCORE_LOG_LOSS},
                {"val_brier", false, SCORE_BRIER},
                {"val_average_precision", true, SCORE_AVERAGE_PRECISION},
                {"val_balanced_accuracy", true, SCORE_BALANCED_ACCURACY}};
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        struct ensemble_metric m = choose(rows[i].name, true, rows[i].maximize, unknown);
        ck_assert(m.metric == rows[i].metric && m.is_sweeps && !m.reason[0]);
        /* in another program the same name means nothing */
        m = choose(rows[i].name, false, rows[i].maximize, unknown);
        ck_assert(m.metric == SCORE_ERROR && !m.is_sweeps);
        ck_assert_ptr_nonnull(strstr(m.reason, "cannot be computed"));
    }
    struct ensemble_metric m = choose("val_loss", true, false, unknown);
    ck_assert(m.metric == SCORE_LOG_LOSS && !m.is_sweeps);
    m = choose("val_auc", true, false, unknown); /* whoever minimises the AUC gets no AUC */
    ck_assert(m.metric == SCORE_ERROR && !m.is_sweeps);
}
END_TEST

START_TEST(what_is_asked_for)
{
    struct ensemble_metric m;
    struct ensemble_metric_input in = {.name = "val_auc",
                                       .asked = "log_loss",
                                       .is_trainers = true,
                                       .maximize = true,
                                       .truth = {ROWS, 2, classes, NULL},
                                       .n = 2,
                                       .predictions = both,
                                       .values = unknown};
    ck_ok(ensemble_metric_choose(&in, &m, &err), err);
    ck_assert(m.metric == SCORE_LOG_LOSS && !m.is_sweeps);
    ck_assert_ptr_nonnull(strstr(m.reason, "asked for"));
    in.asked = "auc";
    ck_ok(ensemble_metric_choose(&in, &m, &err), err);
    ck_assert(m.metric == SCORE_AUC && m.is_sweeps && !m.reason[0]);
    in.asked = "rmse";
    ck_fails(ensemble_metric_choose(&in, &m, &err), AS_E_INVAL, err, "a metric of classes");
    for (int k = 0; k <= SCORE_METRICS + SCORE_PINBALL_MAX; k++) {
        score_metric found = SCORE_ERROR;
        if (k == SCORE_METRICS)
            continue;
        ck_assert(ensemble_metric_parse(score_format((score_metric)k), &found));
        ck_assert_int_eq(found, k);
    }
    ck_assert(!ensemble_metric_parse("val_auc", &(score_metric){0}));
}
END_TEST

START_TEST(values_of_a_program)
{
    const struct score_truth truth = {ROWS, 2, classes, NULL};
    for (int k = 0; k < SCORE_METRICS; k++) {
        double values[2], p[ROWS * 2];
        score_metric metric = (score_metric)k;
        if (!score_is_of_classes(metric))
            continue;
        for (int model = 0; model < 2; model++) {
            for (int i = 0; i < ROWS * 2; i++)
                p[i] = (double)both[model][i];
            ck_ok(score_compute(metric, &truth, NULL, ROWS, p, 1, &values[model], NULL, &err), err);
            values[model] += 1e-7; /* decimal text */
        }
        struct ensemble_metric m = choose("whatever", false, score_is_maximized(metric), values);
        ck_assert(m.metric == metric && m.is_sweeps);
        ck_assert_ptr_nonnull(strstr(m.reason, score_format(metric)));
        values[1] += 0.01; /* one trial that differs is enough */
        m = choose("whatever", false, score_is_maximized(metric), values);
        ck_assert(!m.is_sweeps);
    }
}
END_TEST

/* A name with a parameter. The same values under another name are known, too. */
START_TEST(quantiles)
{
    static const float targets[ROWS] = {1, 2, 3, 4, 5, 6};
    static const float p[ROWS] = {1.5F, 2, 2, 5, 5.5F, 7}, q[ROWS] = {0, 2, 4, 4, 4, 8};
    const float *const numbers[] = {p, q};
    struct ensemble_metric m;
    double values[2] = {7, -3}, v[ROWS];
    struct ensemble_metric_input in = {.name = "val_pinball_90",
                                       .is_trainers = true,
                                       .truth = {ROWS, 1, NULL, targets},
                                       .n = 2,
                                       .predictions = numbers,
                                       .values = values};
    ck_ok(ensemble_metric_choose(&in, &m, &err), err);
    ck_assert(m.metric == SCORE_PINBALL(90) && m.is_sweeps);
    ck_assert_str_eq(score_format(m.metric), "pinball_90");
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < ROWS; i++)
            v[i] = (double)numbers[k][i];
        ck_ok(score_compute(SCORE_PINBALL(25), &in.truth, NULL, ROWS, v, 1, &values[k], NULL, &err),
              err);
    }
    in.name = "quantile_loss";
    in.is_trainers = false;
    ck_ok(ensemble_metric_choose(&in, &m, &err), err);
    ck_assert(m.metric == SCORE_PINBALL(25) && m.is_sweeps);
    in.name = "val_pinball_100"; /* there is none */
    in.is_trainers = true;
    values[0] = 7;
    ck_ok(ensemble_metric_choose(&in, &m, &err), err);
    ck_assert(!m.is_sweeps);
}
END_TEST

START_TEST(refuses_a_class_without_an_output)
{
    const int64_t wrong[ROWS] = {0, 2, 1, 0, 1, 1};
    struct ensemble_metric m;
    const struct ensemble_metric_input in = {.name = "x",
                                             .truth = {ROWS, 2, wrong, NULL},
                                             .n = 2,
                                             .predictions = both,
                                             .values = unknown};
    ck_fails(ensemble_metric_choose(&in, &m, &err), AS_E_INVAL, err, "row 1 has class 2");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("ensemble_metric");
    TCase *t = tcase_create("ensemble_metric");
    tcase_add_test(t, names_of_the_trainer);
    tcase_add_test(t, what_is_asked_for);
    tcase_add_test(t, values_of_a_program);
    tcase_add_test(t, quantiles);
    tcase_add_test(t, refuses_a_class_without_an_output);
    suite_add_tcase(s, t);
    return s;
}
