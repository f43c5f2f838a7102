/* The skewness of a target, and which transformation is worth trying. */
#include "data/skewness.h"

#include <math.h>

#include "base/rng.h"
#include "tests/support/check_main.h"

#define N 4000

/* By the definition, over all values at once. */
static double skewness_by_definition(const double *v, size_t n)
{
    double mean = 0, m2 = 0, m3 = 0;
    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        m2 += pow(v[i] - mean, 2) / (double)n;
        m3 += pow(v[i] - mean, 3) / (double)n;
    }
    return m3 / pow(m2, 1.5);
}

/* Sums of twelve uniform numbers are nearly normal. */
static void draw(double *v, double (*made)(double))
{
    struct rng r;
    rng_init(&r, 7, 0);
    for (size_t i = 0; i < N; i++) {
        double z = -6;
        for (int k = 0; k < 12; k++)
            z += rng_uniform(&r);
        v[i] = made(z);
    }
}

static struct skewness of(const double *v)
{
    struct skewness s = {0};
    for (size_t i = 0; i < N; i++)
        skewness_add(&s, v[i]);
    return s;
}

static double heavy(double z)
{
    return 1000 * exp(z);
}
static double counts(double z)
{
    return floor(20 * exp(z - 2)); /* many are 0 */
}
static double normal(double z)
{
    return 50 + z;
}
static double below(double z)
{
    return exp(z) - 0.5;
}
static double to_the_left(double z)
{
    return 1000 - exp(z);
}
/* Few values are large, and the logarithms of few are far below the others. */
static double two_tails(double z)
{
    return z > 2 ? 20 : z < -2 ? 1e-9 : 1 + z / 10;
}

START_TEST(as_by_the_definition)
{
    static double v[N];
    double (*const made[])(double) = {heavy, counts, normal, below, to_the_left};
    for (size_t k = 0; k < AS_ARRAY_LEN(made); k++) {
        draw(v, made[k]);
        struct skewness s = of(v);
        double expected = skewness_by_definition(v, N);
        ck_assert_double_eq_tol(skewness_of(&s.own), expected, 1e-9 * (1 + fabs(expected)));
    }
}
END_TEST

START_TEST(what_is_worth_trying)
{
    static const struct {
        double (*made)(double);
        target_transform expected;
    } cases[] = {{heavy, TARGET_LOG},   {counts, TARGET_LOG1P},      {normal, TARGET_AS_IS},
                 {below, TARGET_AS_IS}, {to_the_left, TARGET_AS_IS}, {two_tails, TARGET_AS_IS}};
    static double v[N];
    double left;
    for (size_t k = 0; k < AS_ARRAY_LEN(cases); k++) {
        draw(v, cases[k].made);
        struct skewness s = of(v);
        target_transform found = skewness_transform(&s, &left);
        ck_assert_msg(found == cases[k].expected, "case %zu: %d, skewness %g, left %g", k,
                      (int)found, skewness_of(&s.own), left);
    }
    struct skewness none = {0}, same = {0};
    ck_assert_int_eq(skewness_transform(&none, &left), TARGET_AS_IS);
    for (int i = 0; i < 9; i++)
        skewness_add(&same, 4);
    ck_assert_double_eq(skewness_of(&same.own), 0);
    ck_assert_int_eq(skewness_transform(&same, &left), TARGET_AS_IS);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("skewness");
    TCase *t = tcase_create("skewness");
    tcase_add_test(t, as_by_the_definition);
    tcase_add_test(t, what_is_worth_trying);
    suite_add_tcase(s, t);
    return s;
}
