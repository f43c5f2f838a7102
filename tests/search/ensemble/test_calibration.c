/* Calibration and thresholds of ensembles: what is fitted is what the predictions were distorted
 * by, and the threshold is the best of all that a plain search tries. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "model/combine/combine.h"
#include "search/ensemble/ensemble.h"
#include "tests/support/check_main.h"

#define ROWS 400
#define MAX_C 3

static struct as_err err;

struct problem {
    struct ensemble_input in;
    float p[ROWS * MAX_C], weights[ROWS];
    int64_t classes[ROWS];
    const float *rows_of[1];
};

static void set_up(struct problem *p, size_t rows, size_t outputs, score_metric metric)
{
    p->rows_of[0] = p->p;
    p->in = (struct ensemble_input){
        .candidates = 1,
        .truth = {.rows = rows, .outputs = outputs, .classes = p->classes, .weights = p->weights},
        .predictions = p->rows_of,
        .metric = metric,
        .method = ENSEMBLE_BUCKETING,
        .size = 1,
        .calibrate = true,
        .seed = 3};
}

static struct ensemble *select_of(const struct problem *p)
{
    struct ensemble *e = NULL;
    ck_ok(ensemble_select(&p->in, &e, &err), err);
    return e;
}

/* Softmax of `slope` times the logits, with a bias for class 1. */
static void soften(const double *z, size_t C, double slope, double bias, double *ret)
{
    double sum = 0;
    for (size_t c = 0; c < C; c++)
        sum += ret[c] = exp(slope * z[c] + (c == 1 ? bias : 0));
    for (size_t c = 0; c < C; c++)
        ret[c] /= sum;
}

/* Each point is there once for each class, with the weight that the class has there: so the
 * probabilities that are true have the least log loss, and what distorts them is found. Weights are
 * large, so that the pull to the identity counts for little. */
static void distorted(struct problem *p, size_t C, double slope, double bias)
{
    struct rng r;
    size_t points = ROWS / C;
    rng_init(&r, 11, C);
    set_up(p, points * C, C, SCORE_LOG_LOSS);
    for (size_t i = 0; i < points; i++) {
        double z[MAX_C] = {0}, is_true[MAX_C] = {0}, says[MAX_C] = {0};
        for (size_t c = 0; c < C; c++)
            z[c] = rng_normal(&r);
        soften(z, C, 1, 0, is_true);
        soften(z, C, slope, bias, says);
        for (size_t k = 0; k < C; k++) {
            size_t row = i * C + k;
            p->classes[row] = (int64_t)k;
            p->weights[row] = (float)(1e5 * is_true[k]);
            for (size_t c = 0; c < C; c++)
                p->p[row * C + c] = (float)says[c];
        }
    }
}

START_TEST(distortions_are_found)
{
    static const struct {
        size_t classes;
        double slope, bias;
    } cases[] = {{2, 1, 0}, {2, 2.5, 0.75}, {2, 0.5, -1}, {3, 2, 0}, {3, 0.4, 0}};
    struct problem *p = as_calloc(1, sizeof *p);
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        double slope = cases[i].slope;
        distorted(p, cases[i].classes, slope, cases[i].bias);
        AS_AUTO(ensemble_freep) struct ensemble *e = select_of(p);
        ck_assert_double_eq_tol(e->calibration.slope, 1 / slope, 1e-3);
        ck_assert_double_eq_tol(e->calibration.bias, -cases[i].bias / slope, 1e-3);
        ck_assert(isnan(e->threshold)); /* the log loss counts no classes */
        ck_assert_msg((e->gain > 1e-4) == (slope != 1), "gain %g", e->gain);
        ck_assert(slope == 1 || e->recommended);
    }
    free(p);
}
END_TEST

/* Probabilities that are never wrong stay finite, and those that say the contrary are not turned
 * around. */
START_TEST(what_cannot_be_calibrated)
{
    struct problem *p = as_calloc(1, sizeof *p);
    for (int right = 0; right < 2; right++) {
        set_up(p, 40, 2, SCORE_LOG_LOSS);
        p->in.truth.weights = NULL;
        for (size_t i = 0; i < 40; i++) {
            p->classes[i] = (int64_t)(i % 2);
            p->p[i * 2 + 1] = ((i % 2 == 1) == right) ? 0.9f : 0.1f;
            p->p[i * 2] = 1 - p->p[i * 2 + 1];
        }
        AS_AUTO(ensemble_freep) struct ensemble *e = select_of(p);
        ck_assert_msg(right ? e->calibration.slope > 1 && e->calibration.slope < 10
                            : e->calibration.slope == 1 && e->calibration.bias == 0,
                      "slope %g, bias %g", e->calibration.slope, e->calibration.bias);
    }
    free(p);
}
END_TEST

/* A rare class, whose rows a threshold of a half would never find. */
static void rare(struct problem *p, score_metric metric, bool weighted)
{
    struct rng r;
    rng_init(&r, 5, 1);
    set_up(p, ROWS, 2, metric);
    for (size_t i = 0; i < ROWS; i++) {
        double z = rng_normal(&r) + (i % 10 == 0 ? 1.2 : -0.4), says = 1 / (1 + exp(2.5 - z));
        p->classes[i] = i % 10 == 0;
        p->weights[i] = weighted ? 0.5f + (float)(i % 3) : 1;
        p->p[i * 2 + 1] = (float)(nearbyint(says * 200) / 200); /* some are equal */
        p->p[i * 2] = 1 - p->p[i * 2 + 1];
    }
}

static double value_at(const struct problem *p, const double *calibrated, double threshold)
{
    double decided[ROWS * 2], v = 0;
    for (size_t i = 0; i < ROWS; i++) {
        decided[i * 2 + 1] = (double)(float)calibrated[i * 2 + 1] > threshold;
        decided[i * 2] = 1 - decided[i * 2 + 1];
    }
    ck_ok(score_compute(p->in.metric, &p->in.truth, NULL, ROWS, decided, 1, &v, NULL, &err), err);
    return score_is_maximized(p->in.metric) ? v : -v;
}

START_TEST(the_threshold_is_the_best_by_the_metric)
{
    static const score_metric metrics[] = {SCORE_F1, SCORE_BALANCED_ACCURACY, SCORE_ERROR,
                                           SCORE_ACCURACY};
    struct problem *p = as_calloc(1, sizeof *p);
    for (size_t m = 0; m < 2 * AS_ARRAY_LEN(metrics); m++) {
        double calibrated[ROWS * 2], best = -INFINITY;
        rare(p, metrics[m / 2], m % 2);
        AS_AUTO(ensemble_freep) struct ensemble *e = select_of(p);
        ensemble_predict(e, &p->in, NULL, ROWS, calibrated);
        for (int t = 0; t <= 4000; t++)
            best = fmax(best, value_at(p, calibrated, t / 4000.0));
        double got = value_at(p, calibrated, e->threshold);
        ck_assert_msg(got >= best - 1e-12, "%s: threshold %g has %g, another one %g",
                      score_format(metrics[m / 2]), e->threshold, got, best);
        ensemble_decide(e, ROWS, calibrated);
        ck_assert(calibrated[0] + calibrated[1] == 1 && calibrated[0] * calibrated[1] == 0);
        if (m < 4) /* F1 and the balanced accuracy look at a rare class as at the other */
            ck_assert_msg(e->threshold < 0.4 && e->gain > 0.1 && e->recommended, "%g %g",
                          e->threshold, e->gain);
    }
    free(p);
}
END_TEST

/* ---- several classes ---- */

/* Three classes of shares 80, 15 and 5 %, whose probabilities hardly ever favour a rare one. */
static void rare_classes(struct problem *p, score_metric metric)
{
    struct rng r;
    rng_init(&r, 2, 9);
    set_up(p, ROWS, 3, metric);
    for (size_t i = 0; i < ROWS; i++) {
        double z[3], u = rng_uniform(&r), said[3];
        size_t y = u < 0.8 ? 0 : u < 0.95 ? 1 : 2;
        const double prior[] = {log(0.8), log(0.15), log(0.05)};
        for (size_t c = 0; c < 3; c++)
            z[c] = prior[c] + (c == y ? 1.2 : 0) + 0.6 * rng_normal(&r);
        soften(z, 3, 1, 0, said);
        p->classes[i] = (int64_t)y;
        p->weights[i] = 1;
        for (size_t c = 0; c < 3; c++)
            p->p[i * 3 + c] = (float)said[c];
    }
}

static double value_with(const struct problem *p, const double *calibrated, const double *weights)
{
    double decided[ROWS * 3] = {0}, v = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const double *row = calibrated + i * 3;
        size_t best = 0;
        for (size_t c = 1; c < 3; c++)
            if ((double)(float)row[c] * weights[c] > (double)(float)row[best] * weights[best])
                best = c;
        decided[i * 3 + best] = 1;
    }
    ck_ok(score_compute(p->in.metric, &p->in.truth, NULL, ROWS, decided, 1, &v, NULL, &err), err);
    return v;
}

/* A metric that looks at all classes alike gets weights with which it is better, cross-fitted too;
 * one that counts rows gets none. */
START_TEST(rare_classes_are_weighed)
{
    static const score_metric metrics[] = {SCORE_F1, SCORE_BALANCED_ACCURACY};
    static const double same[] = {1, 1, 1};
    struct problem *p = as_calloc(1, sizeof *p);
    for (size_t m = 0; m < AS_ARRAY_LEN(metrics); m++) {
        double calibrated[ROWS * 3];
        rare_classes(p, metrics[m]);
        AS_AUTO(ensemble_freep) struct ensemble *e = select_of(p);
        ensemble_predict(e, &p->in, NULL, ROWS, calibrated);
        ck_assert(e->class_weights && isnan(e->threshold));
        ck_assert(e->class_weights[0] == 1 && e->class_weights[1] > 1 &&
                  e->class_weights[2] > e->class_weights[1]);
        double plain = value_with(p, calibrated, same);
        double got = value_with(p, calibrated, e->class_weights);
        ck_assert_msg(got > plain + 0.02, "%g with weights, %g without", got, plain);
        ck_assert_msg(e->gain > 0.02 && e->recommended, "%g", e->gain);
        ensemble_decide(e, ROWS, calibrated);
        double v = 0;
        ck_ok(score_compute(metrics[m], &p->in.truth, NULL, ROWS, calibrated, 1, &v, NULL, &err),
              err);
        ck_assert(v == got && v == e->value_selected);
    }
    rare_classes(p, SCORE_ERROR);
    AS_AUTO(ensemble_freep) struct ensemble *e = select_of(p);
    ck_assert_ptr_null(e->class_weights);
    free(p);
}
END_TEST

/* The ranking of rows stays, and so does a metric of it. */
START_TEST(rankings_stay)
{
    struct problem *p = as_calloc(1, sizeof *p);
    rare(p, SCORE_AUC, false);
    AS_AUTO(ensemble_freep) struct ensemble *e = select_of(p);
    p->in.calibrate = false;
    AS_AUTO(ensemble_freep) struct ensemble *plain = select_of(p);
    ck_assert(e->calibration.slope > 0 && isnan(e->threshold));
    ck_assert(plain->calibration.slope == 0 && !plain->recommended);
    ck_assert_double_eq_tol(e->value_selected, plain->value_selected, 1e-12);
    free(p);
}
END_TEST

START_TEST(numbers_are_refused)
{
    struct problem *p = as_calloc(1, sizeof *p);
    float targets[4] = {0, 1, 2, 3};
    struct ensemble *e = NULL;
    set_up(p, 4, 1, SCORE_RMSE);
    p->in.truth = (struct score_truth){.rows = 4, .outputs = 1, .targets = targets};
    ck_fails(ensemble_select(&p->in, &e, &err), AS_E_INVAL, err, "only probabilities of two");
    free(p);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("calibration");
    TCase *t = tcase_create("calibration");
    tcase_add_test(t, distortions_are_found);
    tcase_add_test(t, what_cannot_be_calibrated);
    tcase_add_test(t, the_threshold_is_the_best_by_the_metric);
    tcase_add_test(t, rare_classes_are_weighed);
    tcase_add_test(t, rankings_stay);
    tcase_add_test(t, numbers_are_refused);
    suite_add_tcase(s, t);
    return s;
}
