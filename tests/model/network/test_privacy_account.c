/* The accountant of `train.privacy` against published figures, the exact value of the Gaussian
 * mechanism, and the definition by numerical integration. */
#include <math.h>

#include "model/network/privacy_account.h"
#include "tests/support/check_main.h"

/* Published figures are from the older rule from a divergence to epsilon (Mironov 2017). */
static double older_epsilon(double q, double noise, double steps, double delta)
{
    double least = INFINITY;
    for (int order = 2; order <= PRIVACY_MAX_ORDER; order++) {
        double e = steps * privacy_divergence(q, noise, order) - log(delta) / (order - 1);
        least = e < least ? e : least;
    }
    return least;
}

static double newer_epsilon(double q, double noise, double steps, double delta)
{
    struct privacy_account a = {0};
    privacy_account_add(&a, q, noise, steps);
    return privacy_account_epsilon(&a, delta);
}

START_TEST(published_figures)
{
    static const struct {
        double q, noise, steps, epsilon;
    } rows[] = {
        {0.01, 4, 10000, 1.26}, /* Abadi et al. 2016 */
        {256 / 60000.0, 1.12, 60 * 60000 / 256.0,
         2.92}, /* TensorFlow Privacy, compute_dp_sgd_privacy */
        {256 / 60000.0, 1.3, 20 * 60000 / 256.0, 1.34}, /* Bu, Dong, Long and Su 2020, figure 4 */
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        double e = older_epsilon(rows[i].q, rows[i].noise, rows[i].steps, 1e-5);
        ck_assert_msg(fabs(e - rows[i].epsilon) < 0.01 * rows[i].epsilon, "%g, expected %g", e,
                      rows[i].epsilon);
        ck_assert_double_lt(newer_epsilon(rows[i].q, rows[i].noise, rows[i].steps, 1e-5), e);
    }
}
END_TEST

/* The definition: E under N(0, s^2) of the a-th power of the ratio of the densities of
 * (1 - q) N(0, s^2) + q N(1, s^2) and N(0, s^2), by the rule of trapezoids. */
static double integrated(double q, double s, int order)
{
    double sum = 0, step = 0.001;
    for (double x = -20 * s; x < 20 * s + order; x += step) {
        double ratio = 1 - q + q * exp((2 * x - 1) / (2 * s * s));
        sum += step * exp(-x * x / (2 * s * s)) / (s * sqrt(2 * M_PI)) * pow(ratio, order);
    }
    return log(sum) / (order - 1);
}

START_TEST(a_step_is_the_integral)
{
    static const double qs[] = {0.001, 0.05, 0.5}, noises[] = {0.8, 1.5, 4};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++)
            for (int order = 2; order <= 12; order += 5) {
                double a = privacy_divergence(qs[i], noises[k], order);
                double b = integrated(qs[i], noises[k], order);
                ck_assert_double_le(fabs(a - b), 1e-6 * fabs(b) + 1e-12);
            }
}
END_TEST

/* Delta of n Gaussian mechanisms at epsilon (Balle and Wang 2018, theorem 8), with mu = sqrt(n) /
 * noise. */
static double exact_delta(double mu, double epsilon)
{
    double up = erfc((epsilon / mu - mu / 2) / sqrt(2)) / 2;
    double down = erfc((epsilon / mu + mu / 2) / sqrt(2)) / 2;
    return up - exp(epsilon) * down;
}

START_TEST(whole_batches_are_near_the_exact_value)
{
    static const double mus[] = {0.2, 1, 3};
    for (size_t i = 0; i < 3; i++) {
        double e = newer_epsilon(1, 10 / mus[i], 100, 1e-5);
        ck_assert_double_le(exact_delta(mus[i], e), 1e-5); /* it holds */
        ck_assert_double_gt(exact_delta(mus[i], 0.85 * e),
                            1e-5); /* and is not far from the least */
    }
}
END_TEST

START_TEST(more_costs_more)
{
    double e = newer_epsilon(0.02, 1.1, 1000, 1e-5);
    ck_assert_double_gt(newer_epsilon(0.03, 1.1, 1000, 1e-5), e);
    ck_assert_double_gt(newer_epsilon(0.02, 1.0, 1000, 1e-5), e);
    ck_assert_double_gt(newer_epsilon(0.02, 1.1, 1001, 1e-5), e);
    ck_assert_double_gt(newer_epsilon(0.02, 1.1, 1000, 1e-6), e);
}
END_TEST

/* 10 epochs of 2 batches of 400 rows and one of 200. */
START_TEST(a_training)
{
    const struct train_privacy_spec p = {.given = true, .clip = 1, .noise = 1.5, .delta = 1e-5};
    struct privacy_account a = {0};
    privacy_account_add(&a, 0.4, 1.5, 20);
    privacy_account_add(&a, 0.2, 1.5, 10);
    ck_assert_double_eq(privacy_epsilon(&p, 1000, 400, 10), privacy_account_epsilon(&a, 1e-5));
    ck_assert_double_eq(privacy_epsilon(&p, 1000, 5000, 7), newer_epsilon(1, 1.5, 7, 1e-5));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("privacy_account");
    TCase *t = tcase_create("privacy_account");
    tcase_add_test(t, published_figures);
    tcase_add_test(t, a_step_is_the_integral);
    tcase_add_test(t, whole_batches_are_near_the_exact_value);
    tcase_add_test(t, more_costs_more);
    tcase_add_test(t, a_training);
    suite_add_tcase(s, t);
    return s;
}
