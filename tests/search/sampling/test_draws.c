/* Statistical bounds on draws. Every bound is set so that a fair generator fails it with
 * probability 1e-6; seeds are fixed, so a failure repeats. */
#include <math.h>
#include <stdlib.h>

#include "search/sampling/sampler.h"
#include "search/sampling/sobol.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define N 20000
#define KS_1E6 2.694     /* sup |F_n - F| sqrt(n): 2 exp(-2 x^2) = 1e-6 */
#define NORMAL_1E6 4.892 /* two-sided */

static struct config *draw(const struct space *s, uint64_t seed, uint64_t trial)
{
    struct config *c = NULL;
    struct as_err err = {0};
    ck_ok(sampler_draw(s, SAMPLER_RANDOM, seed, trial, &c, NULL, &err), err);
    return c;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov-Smirnov distance from the uniform distribution, times sqrt(n). Sorts u. */
static double ks(double *u, size_t n)
{
    double worst = 0;
    qsort(u, n, sizeof *u, compare);
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs(u[i] - (double)i / (double)n));
        worst = fmax(worst, fabs(u[i] - (double)(i + 1) / (double)n));
    }
    return worst * sqrt((double)n);
}

static double chi2(const unsigned *counts, size_t n, const double *expected)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
    return sum;
}

START_TEST(random_floats_are_uniform_on_their_scale)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: float, min: -2, max: 5}\n"
                                    "b: {type: float, min: 1e-5, max: 10, scale: log}\n");
    static double a[N], b[N];
    double product = 0, lag = 0;
    for (size_t t = 0; t < N; t++) {
        AS_AUTO(config_freep) struct config *c = draw(s, 42, t);
        a[t] = (c->entries[0].value.real + 2) / 7;
        b[t] = (log10(c->entries[1].value.real) + 5) / 6;
        product += (a[t] - 0.5) * (b[t] - 0.5);
        lag += t ? (a[t] - 0.5) * (a[t - 1] - 0.5) : 0;
    }
    /* of two uniforms: variance 1/144 each term */
    ck_assert(fabs(product) < NORMAL_1E6 * sqrt(N / 144.0));
    ck_assert(fabs(lag) < NORMAL_1E6 * sqrt(N / 144.0));
    ck_assert(ks(a, N) < KS_1E6);
    ck_assert(ks(b, N) < KS_1E6);
}
END_TEST

START_TEST(random_choices_are_even)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("c: {type: categorical, values: [a, b, c, d, e]}\n"
                                    "i: {type: int, min: -2, max: 2}\n");
    unsigned c_counts[5] = {0}, i_counts[5] = {0};
    const double even[5] = {N / 5.0, N / 5.0, N / 5.0, N / 5.0, N / 5.0};
    for (size_t t = 0; t < N; t++) {
        AS_AUTO(config_freep) struct config *c = draw(s, 7, t);
        c_counts[c->entries[0].value.choice]++;
        i_counts[c->entries[1].value.integer + 2]++;
    }
    /* chi-square with 4 degrees of freedom: P(> 33.4) = 1e-6 */
    ck_assert(chi2(c_counts, 5, even) < 33.4);
    ck_assert(chi2(i_counts, 5, even) < 33.4);
}
END_TEST

START_TEST(random_log_ints_follow_their_edges)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("i: {type: int, min: 1, max: 5, scale: log}");
    unsigned counts[5] = {0};
    double expected[5];
    for (int k = 0; k < 5; k++)
        expected[k] = N * log((k + 1.5) / (k + 0.5)) / log(5.5 / 0.5);
    for (size_t t = 0; t < N; t++) {
        AS_AUTO(config_freep) struct config *c = draw(s, 8, t);
        counts[c->entries[0].value.integer - 1]++;
    }
    ck_assert(chi2(counts, 5, expected) < 33.4);
}
END_TEST

/* One point of the scrambled sequence, over many seeds. */
START_TEST(scrambled_points_are_uniform)
{
    static double u[N];
    for (size_t seed = 0; seed < N; seed++)
        u[seed] = sobol_point(seed, (uint64_t)_i, (unsigned)_i % 7);
    ck_assert(ks(u, N) < KS_1E6);
}
END_TEST

/* Why Sobol: the mean of a smooth function over 256 points of 4 dimensions, root mean square over
 * 64 seeds. Random is off by sigma / 16; scrambled Sobol must be ten times closer. */
START_TEST(sobol_integrates_better_than_random)
{
    double squares = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        double mean = 0;
        for (uint64_t i = 0; i < 256; i++) {
            double f = 1;
            for (unsigned d = 0; d < 4; d++)
                f *= 1 + (sobol_point(seed, i, d) - 0.5);
            mean += f / 256;
        }
        squares += (mean - 1) * (mean - 1) / 64;
    }
    double sigma = sqrt(pow(1 + 1.0 / 12, 4) - 1);
    ck_assert_msg(sqrt(squares) < sigma / 16 / 10, "off by %g, random by %g", sqrt(squares),
                  sigma / 16);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/draws");
    TCase *t = tcase_create("draws");
    tcase_add_test(t, random_floats_are_uniform_on_their_scale);
    tcase_add_test(t, random_choices_are_even);
    tcase_add_test(t, random_log_ints_follow_their_edges);
    tcase_add_loop_test(t, scrambled_points_are_uniform, 0, 6);
    tcase_add_test(t, sobol_integrates_better_than_random);
    suite_add_tcase(s, t);
    return s;
}
