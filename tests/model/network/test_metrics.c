/* Against values of scikit-learn 1.2.1, written down; what was called is beside each. */
#include <math.h>

#include "base/mem.h"
#include "tests/support/check_main.h"
#include "model/network/metrics.h"

static struct as_err err;

static double of_classes(const char *name, const float *p, const int32_t *labels,
                         const float *weights, size_t n, size_t classes)
{
    const struct metric_input in = {
        .n = n, .outputs = classes, .labels = labels, .predicted = p, .weights = weights};
    double v = -1;
    ck_ok(metric_compute(name, &in, &v, &err), err);
    return v;
}

static double of_numbers(const char *name, const float *p, const float *targets,
                         const float *weights, size_t n, size_t outputs)
{
    const struct metric_input in = {
        .n = n, .outputs = outputs, .targets = targets, .predicted = p, .weights = weights};
    double v = -1;
    ck_ok(metric_compute(name, &in, &v, &err), err);
    return v;
}

struct known {
    const char *name;
    double alike, weighted; /* without and with weights */
};

/* ---- two classes ---- */

/* The probability of class 1, with ties, and 0.5 among them; a weight is 0. */
#define TWO 12
static const float score[TWO] = {.1F, .4F, .35F, .8F, .65F, .4F, .2F, .9F, .4F, .1F, .5F, .5F};
static const int32_t label[TWO] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0};
static const float weight[TWO] = {1, 2, .5F, 3, 0, 1, 1, 2, .25F, 4, 1, 1.5F};

static void both_columns(const float *p1, size_t n, float *ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = 1 - p1[i];
        ret[2 * i + 1] = p1[i];
    }
}

START_TEST(two_classes)
{
    /* y, s, w as above, float32; p = stack([1 - s, s]); c = p[:, 1] > p[:, 0]:
     * roc_auc_score(y, s, sample_weight=w), average_precision_score(y, s, …),
     * balanced_accuracy_score(y, c, …), f1_score(y, c, …), brier_score_loss(y, s, …),
     * log_loss(y, p, …), accuracy_score(y, c, …) */
    static const struct known rows[] = {
        {"val_auc", 0.7083333333333334, 0.7315689981096408},
        {"val_average_precision", 0.6972222222222222, 0.6529378721491967},
        {"val_balanced_accuracy", 0.5833333333333334, 0.5434782608695652},
        {"val_f1", 0.4444444444444444, 0.37209302325581395},
        {"val_brier", 0.21958333671093, 0.22239130794138154},
        {"val_log_loss", 0.6132474698413923, 0.6156081131624657},
        {"val_error", 0.41666666666666663, 0.3913043478260869},
        {"val_accuracy", 0.5833333333333334, 0.6086956521739131},
        {"val_top5", 1, 1},
    };
    float p[2 * TWO];
    both_columns(score, TWO, p);
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        double alike = of_classes(rows[i].name, p, label, NULL, TWO, 2);
        double weighted = of_classes(rows[i].name, p, label, weight, TWO, 2);
        /* log_loss() divides the rows by their sums, which are not 1 in the last bits */
        double most = i == 5 ? 1e-8 : 1e-12;
        ck_assert_msg(fabs(alike - rows[i].alike) < most, "%s: %.17g", rows[i].name, alike);
        ck_assert_msg(fabs(weighted - rows[i].weighted) < most, "%s: %.17g", rows[i].name,
                      weighted);
    }
}
END_TEST

START_TEST(one_class_alone)
{
    static const int32_t zeros[TWO] = {0}, ones[TWO] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    float p[2 * TWO];
    both_columns(score, TWO, p);
    ck_assert_double_nan(of_classes("val_auc", p, zeros, NULL, TWO, 2)); /* sklearn refuses it */
    ck_assert_double_eq(of_classes("val_average_precision", p, zeros, NULL, TWO, 2), 0);
    ck_assert_double_eq(of_classes("val_average_precision", p, ones, NULL, TWO, 2), 1);
    ck_assert_double_eq(of_classes("val_balanced_accuracy", p, zeros, NULL, TWO, 2), 0.75);
    ck_assert_double_eq(of_classes("val_f1", p, zeros, NULL, TWO, 2), 0);
    ck_assert_double_eq_tol(of_classes("val_brier", p, zeros, NULL, TWO, 2), 0.2529166630903881,
                            1e-12);
    ck_assert_double_eq_tol(of_classes("val_log_loss", p, zeros, NULL, TWO, 2), 0.7287719666239223,
                            1e-8);
}
END_TEST

START_TEST(auc_of_two_classes)
{
    static const int32_t y[] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 0};
    static const float s[] = {.1F, .4F, .35F, .8F, .65F, .4F, .2F, .9F, .4F, .1F};
    float p[20], equal[20] = {0};
    both_columns(s, 10, p);
    /* roc_auc_score(y, s) */
    ck_assert_double_eq_tol(of_classes("val_auc", p, y, NULL, 10, 2), 0.76, 1e-12);
    ck_assert_double_eq(of_classes("val_auc", equal, y, NULL, 10, 2), 0.5);
    p[1] = NAN;
    ck_assert_double_nan(of_classes("val_auc", p, y, NULL, 10, 2));
    ck_assert_double_nan(of_classes("val_average_precision", p, y, NULL, 10, 2));
}
END_TEST

/* Many rows, with many ties, from a generator that was repeated in Python. */
START_TEST(auc_of_many_rows)
{
    int32_t y[500];
    float s[500], p[1000];
    uint64_t v = 12345;
    for (size_t i = 0; i < 500; i++) {
        v = (v * 1103515245 + 12345) % ((uint64_t)1 << 31);
        y[i] = (int32_t)((v >> 16) % 2);
        v = (v * 1103515245 + 12345) % ((uint64_t)1 << 31);
        s[i] = (float)((double)((v >> 16) % 50) / 50 + 0.3 * y[i]);
    }
    both_columns(s, 500, p);
    ck_assert_double_eq_tol(of_classes("val_auc", p, y, NULL, 500, 2), 0.7451176725035645, 1e-12);
}
END_TEST

/* ---- several classes ---- */

START_TEST(several_classes)
{
    static const int32_t y[] = {0, 2, 1, 1, 0, 2, 2, 1, 0, 1};
    static const float p[] = {.6F,  .3F,  .1F, .2F, .2F,  .6F,  .3F, .5F, .2F, .5F,
                              .25F, .25F, .4F, .4F, .2F,  .1F,  .2F, .7F, .5F, .2F,
                              .3F,  .2F,  .6F, .2F, .25F, .25F, .5F, .1F, .3F, .6F};
    static const float w[] = {1, 2, .5F, 3, 0, 1, 1, 2, .25F, 4};
    /* Y = eye(3)[y]; c = p.argmax(1): mean over k of roc_auc_score(Y[:, k], p[:, k],
     * sample_weight=w), the same of average_precision_score; balanced_accuracy_score(y, c, …),
     * f1_score(y, c, average="macro", …), average(((p - Y)**2).sum(1), weights=w),
     * accuracy_score */
    static const struct known rows[] = {
        {"val_auc", 0.8253968253968255, 0.8779011482193857},
        {"val_average_precision", 0.7383597883597884, 0.7787053464159527},
        {"val_balanced_accuracy", 0.611111111111111, 0.6043859649122807},
        {"val_f1", 0.6031746031746033, 0.42333333333333334},
        {"val_brier", 0.5209999967515472, 0.5839830486653218},
        {"val_error", 0.4, 0.5593220338983051},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        double alike = of_classes(rows[i].name, p, y, NULL, 10, 3);
        double weighted = of_classes(rows[i].name, p, y, w, 10, 3);
        ck_assert_msg(fabs(alike - rows[i].alike) < 1e-12, "%s: %.17g", rows[i].name, alike);
        ck_assert_msg(fabs(weighted - rows[i].weighted) < 1e-12, "%s: %.17g", rows[i].name,
                      weighted);
    }
}
END_TEST

/* A class without rows has no part in means over the classes. */
START_TEST(a_class_without_rows)
{
    static const float p[] = {.6F, .3F, .1F, .2F, .2F, .6F, .3F, .5F, .2F, .5F, .25F, .25F,
                              .4F, .4F, .2F, .1F, .2F, .7F, .5F, .2F, .3F, .2F, .6F,  .2F};
    static const int32_t y[] = {0, 1, 1, 1, 0, 0, 0, 1};
    static const char *const names[] = {"val_auc", "val_average_precision"};
    for (size_t m = 0; m < AS_ARRAY_LEN(names); m++) {
        double sum = 0;
        for (size_t c = 0; c < 2; c++) {
            float pair[16];
            int32_t mine[8];
            for (size_t i = 0; i < 8; i++) {
                pair[2 * i + 1] = p[3 * i + c];
                pair[2 * i] = 0;
                mine[i] = y[i] == (int32_t)c;
            }
            sum += of_classes(names[m], pair, mine, NULL, 8, 2);
        }
        ck_assert_double_eq_tol(of_classes(names[m], p, y, NULL, 8, 3), sum / 2, 1e-12);
    }
}
END_TEST

START_TEST(predicted_classes)
{
    static const int32_t y3[] = {0, 2, 1, 1, 0, 2, 2, 1}, p3[] = {0, 2, 1, 0, 0, 2, 0, 1};
    struct metric_input in = {.n = 8, .outputs = 3, .labels = y3, .predicted_class = p3};
    double v = -1;
    ck_ok(metric_compute("val_f1", &in, &v, &err), err);
    ck_assert_double_eq_tol(v, 0.7555555555555555, 1e-12); /* average="macro" */
    static const int32_t p4[] = {0, 2, 1, 3,
                                 0, 2, 0, 1}; /* 3 is predicted, never true; 4 neither */
    in.predicted_class = p4;
    in.outputs = 5;
    ck_ok(metric_compute("val_f1", &in, &v, &err), err);
    ck_assert_double_eq_tol(v, 0.6000000000000001, 1e-12);
    static const int32_t none[] = {-1, -1, -1, -1, -1, -1, -1, -1};
    in = (struct metric_input){.n = 8, .outputs = 2, .labels = p3, .predicted_class = none};
    ck_ok(metric_compute("val_f1", &in, &v, &err), err);
    ck_assert_double_eq(v, 0);
    ck_ok(metric_compute("val_error", &in, &v, &err), err);
    ck_assert_double_eq(v, 1);
}
END_TEST

START_TEST(top5)
{
    /* the label's probability is that of the class itself; equal ones count if they come first */
    static const float p[] = {.1F, .2F, .3F, .1F, .1F, .1F, .1F, .1F, .2F, .3F, .1F, .1F, .1F, .1F};
    static const int32_t y[] = {5, 0};
    static const float w[] = {1, 3};
    ck_assert_double_eq(of_classes("val_top5", p, y, NULL, 2, 7), 0.5);
    ck_assert_double_eq(of_classes("val_top5", p, y, w, 2, 7), 0.75);
}
END_TEST

START_TEST(log_loss)
{
    static const float z[] = {1.5F, -.5F, .25F, .1F, .2F, 3, -1, 2, .5F, .3F, .3F, .3F};
    static const int32_t y[] = {0, 2, 0, 1};
    static const float w[] = {1, 0, 1, 2};
    /* log_loss(y, softmax(z)) */
    ck_assert_double_eq_tol(metric_log_loss(z, y, NULL, 4, 3), 1.200369228471357, 1e-7);
    static const float b[] = {1.5F, -2, .25F, -.75F};
    static const int32_t yb[] = {1, 0, 0, 1};
    ck_assert_double_eq_tol(metric_log_loss(b, yb, NULL, 4, 1), 0.5727879287548671, 1e-12);
    double each[4];
    for (size_t i = 0; i < 4; i++)
        each[i] = metric_log_loss(b + i, yb + i, NULL, 1, 1);
    ck_assert_double_eq_tol(metric_log_loss(b, yb, w, 4, 1), (each[0] + each[2] + 2 * each[3]) / 4,
                            1e-12);
    static const float huge[] = {1000, -1000};
    static const int32_t wrong[] = {1};
    ck_assert_double_eq(metric_log_loss(huge, wrong, NULL, 1, 2), 2000);
}
END_TEST

/* ---- numbers ---- */

START_TEST(numbers)
{
    /* one target is 0; t, q [5, 2], w as below: mean over the targets of
     * mean_squared_error(t[:, c], q[:, c], sample_weight=w, squared=False); mean_absolute_error,
     * mean_absolute_percentage_error, r2_score, mean_pinball_loss(…, alpha=…) of (t, q) */
    static const float t[] = {3, -5, 0, 2, 2, 7, 8, 1e-3F, -1, 4};
    static const float q[] = {2.5F, -5.5F, .25F, 2, 2, 8, 7, 0, -1.5F, 3};
    static const float w[] = {1, 2, .5F, 3, .25F};
    static const struct known rows[] = {
        {"val_rmse", 0.6149187683480403, 0.5492623944788522},
        {"val_mae", 0.4751000000047497, 0.3983703703809254},
        {"val_mape", 112589990684262.66, 166799986198907.53},
        {"val_r2", 0.9702657031162478, 0.9723465492335718},
        {"val_pinball_50", 0.23755000000237486, 0.1991851851904627},
        {"val_pinball_90", 0.3275900000042748, 0.2992740740835736},
        {"val_pinball_5", 0.1362550000002375, 0.08658518518571293},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        double alike = of_numbers(rows[i].name, q, t, NULL, 5, 2);
        double weighted = of_numbers(rows[i].name, q, t, w, 5, 2);
        ck_assert_msg(fabs(alike / rows[i].alike - 1) < 1e-12, "%s: %.17g", rows[i].name, alike);
        ck_assert_msg(fabs(weighted / rows[i].weighted - 1) < 1e-12, "%s: %.17g", rows[i].name,
                      weighted);
    }
}
END_TEST

START_TEST(odd_numbers)
{
    static const float want[] = {1, 10, 2, 20, 3, 15, 4, 40};
    static const float got[] = {1.5F, 12, 2, 18, 2.5F, 15.5F, 5, 30};
    struct metric_input in = {.n = 4, .outputs = 2, .targets = want, .predicted = got};
    ck_assert_double_eq_tol(metric_mse(&in), 13.71875, 1e-12); /* mean_squared_error */
    static const float same[] = {5, 5}, off[] = {5, 6}, infinite[] = {INFINITY, 5};
    ck_assert_double_eq(of_numbers("val_r2", same, same, NULL, 2, 1), 1);
    ck_assert_double_eq(of_numbers("val_r2", off, same, NULL, 2, 1), 0);
    ck_assert_double_eq(of_numbers("val_rmse", infinite, off, NULL, 2, 1), INFINITY);
    ck_assert_double_eq(of_numbers("val_r2", infinite, off, NULL, 2, 1), -INFINITY);
    double v = 0;
    ck_fails(metric_compute("val_auc", &in, &v, &err), AS_E_INVAL, err, "no metric 'val_auc'");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("metrics");
    TCase *t = tcase_create("metrics");
    tcase_add_test(t, two_classes);
    tcase_add_test(t, one_class_alone);
    tcase_add_test(t, auc_of_two_classes);
    tcase_add_test(t, auc_of_many_rows);
    tcase_add_test(t, several_classes);
    tcase_add_test(t, a_class_without_rows);
    tcase_add_test(t, predicted_classes);
    tcase_add_test(t, top5);
    tcase_add_test(t, log_loss);
    tcase_add_test(t, numbers);
    tcase_add_test(t, odd_numbers);
    suite_add_tcase(s, t);
    return s;
}
