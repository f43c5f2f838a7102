/* Against values of scikit-learn 1.2.1, written down; what was called is beside each. */
#include <math.h>

#include "tests/support/check_main.h"
#include "model/network/metrics.h"

static struct as_err err;

static double auc(const float *scores, const int32_t *labels, size_t n)
{
    double v = -1;
    ck_ok(metric_auc(scores, 1, labels, 1, n, &v, &err), err);
    return v;
}

START_TEST(auc_of_two_classes)
{
    static const int32_t y[] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 0};
    static const float s[] = {.1F, .4F, .35F, .8F, .65F, .4F, .2F, .9F, .4F, .1F};
    ck_assert_double_eq_tol(auc(s, y, 10), 0.76, 1e-12); /* roc_auc_score(y, s) */
    static const float equal[10] = {0};
    ck_assert_double_eq(auc(equal, y, 10), 0.5);
    static const int32_t one_side[10] = {0};
    ck_assert_double_nan(auc(s, one_side, 10));
    static const float bad[] = {1, NAN};
    ck_assert_double_nan(auc(bad, y, 2));
}
END_TEST

/* Many rows, with many ties, from a generator that was repeated in Python. */
START_TEST(auc_of_many_rows)
{
    int32_t y[500];
    float s[500];
    uint64_t v = 12345;
    for (size_t i = 0; i < 500; i++) {
        v = (v * 1103515245 + 12345) % ((uint64_t)1 << 31);
        y[i] = (int32_t)((v >> 16) % 2);
        v = (v * 1103515245 + 12345) % ((uint64_t)1 << 31);
        s[i] = (float)((double)((v >> 16) % 50) / 50 + 0.3 * y[i]);
    }
    ck_assert_double_eq_tol(auc(s, y, 500), 0.7451176725035645, 1e-12);
}
END_TEST

START_TEST(auc_of_several_classes)
{
    static const int32_t y[] = {0, 2, 1, 1, 0, 2, 2, 1};
    static const float p[] = {.6F, .3F, .1F, .2F, .2F, .6F, .3F, .5F, .2F, .5F, .25F, .25F,
                              .4F, .4F, .2F, .1F, .2F, .7F, .5F, .2F, .3F, .2F, .6F,  .2F};
    double v = -1;
    /* roc_auc_score(y, p, multi_class="ovr", average="macro") */
    ck_ok(metric_auc_classes(p, 3, y, 8, &v, &err), err);
    ck_assert_double_eq_tol(v, 0.9, 1e-12);
    static const int32_t two_of_three[] = {0, 1, 1, 1, 0, 0, 0, 1}; /* class 2 has no rows */
    double first = 0, second = 0;
    ck_ok(metric_auc(p, 3, two_of_three, 0, 8, &first, &err), err);
    ck_ok(metric_auc(p + 1, 3, two_of_three, 1, 8, &second, &err), err);
    ck_ok(metric_auc_classes(p, 3, two_of_three, 8, &v, &err), err);
    ck_assert_double_eq_tol(v, (first + second) / 2, 1e-12);
}
END_TEST

START_TEST(f1)
{
    static const int32_t y[] = {0, 1, 1, 0, 1, 0, 0, 1, 1, 0};
    static const int32_t p[] = {0, 0, 0, 1, 1, 0, 0, 1, 0, 0};
    double v = -1;
    ck_ok(metric_f1(p, y, 10, 2, &v, &err), err);
    ck_assert_double_eq_tol(v, 0.5, 1e-12); /* f1_score(y, p) */
    static const int32_t y3[] = {0, 2, 1, 1, 0, 2, 2, 1}, p3[] = {0, 2, 1, 0, 0, 2, 0, 1};
    ck_ok(metric_f1(p3, y3, 8, 3, &v, &err), err);
    ck_assert_double_eq_tol(v, 0.7555555555555555, 1e-12); /* average="macro" */
    static const int32_t p4[] = {0, 2, 1, 3,
                                 0, 2, 0, 1}; /* 3 is predicted, never true; 4 neither */
    ck_ok(metric_f1(p4, y3, 8, 5, &v, &err), err);
    ck_assert_double_eq_tol(v, 0.6000000000000001, 1e-12);
    static const int32_t none[] = {-1, -1};
    ck_ok(metric_f1(none, y, 2, 2, &v, &err), err);
    ck_assert_double_eq(v, 0);
}
END_TEST

START_TEST(log_loss)
{
    static const float z[] = {1.5F, -.5F, .25F, .1F, .2F, 3, -1, 2, .5F, .3F, .3F, .3F};
    static const int32_t y[] = {0, 2, 0, 1};
    /* log_loss(y, softmax(z)) */
    ck_assert_double_eq_tol(metric_log_loss(z, y, 4, 3), 1.200369228471357, 1e-7);
    static const float b[] = {1.5F, -2, .25F, -.75F};
    static const int32_t yb[] = {1, 0, 0, 1};
    ck_assert_double_eq_tol(metric_log_loss(b, yb, 4, 1), 0.5727879287548671, 1e-12);
    static const float huge[] = {1000, -1000};
    static const int32_t wrong[] = {1};
    ck_assert_double_eq(metric_log_loss(huge, wrong, 1, 2), 2000);
}
END_TEST

START_TEST(errors)
{
    static const float want[] = {1, 10, 2, 20, 3, 15, 4, 40};
    static const float got[] = {1.5F, 12, 2, 18, 2.5F, 15.5F, 5, 30};
    struct metric_errors e = metric_errors(got, want, 4, 2);
    ck_assert_double_eq_tol(e.mse, 13.71875, 1e-12);           /* mean_squared_error */
    ck_assert_double_eq_tol(e.rmse, 2.907267723683499, 1e-12); /* squared=False */
    ck_assert_double_eq_tol(e.mae, 2.0625, 1e-12);             /* mean_absolute_error */
    ck_assert_double_eq_tol(e.r2, 0.7456626506024095, 1e-12);  /* r2_score */
    static const float want1[] = {3, -.5F, 2, 7}, got1[] = {2.5F, 0, 2, 8};
    e = metric_errors(got1, want1, 4, 1);
    ck_assert_double_eq_tol(e.r2, 0.9486081370449679, 1e-12);
    static const float same[] = {5, 5}, off[] = {5, 6};
    ck_assert_double_eq(metric_errors(same, same, 2, 1).r2, 1);
    ck_assert_double_eq(metric_errors(off, same, 2, 1).r2, 0);
    static const float infinite[] = {INFINITY, 5};
    e = metric_errors(infinite, off, 2, 1);
    ck_assert_double_eq(e.rmse, INFINITY);
    ck_assert_double_eq(e.r2, -INFINITY);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("metrics");
    TCase *t = tcase_create("metrics");
    tcase_add_test(t, auc_of_two_classes);
    tcase_add_test(t, auc_of_many_rows);
    tcase_add_test(t, auc_of_several_classes);
    tcase_add_test(t, f1);
    tcase_add_test(t, log_loss);
    tcase_add_test(t, errors);
    suite_add_tcase(s, t);
    return s;
}
