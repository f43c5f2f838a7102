/* Which values count: gaps between magnitudes, heavy tails, small samples. */
#include "search/problem/credible.h"

#include <float.h>
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tests/support/check_main.h"

#define MOST 200

static double limit_of(const double *v, size_t n)
{
    struct as_err err = {0};
    double limit;
    ck_ok(credible_limit(v, n, CREDIBLE_FIRST, &limit, &err), err);
    return limit;
}

START_TEST(gaps)
{
    static const struct {
        size_t n;
        double v[8];
        double limit;
    } cases[] = {
        {0, {0}, INFINITY},
        {1, {-1e300}, INFINITY}, /* nothing to compare with */
        {2, {-1e300, 0.5}, 1},
        {4, {0.3, 1e300, -0.1, 1e300}, 1},
        {4, {2e5, 1e300, 3, 1e300}, 2e5},
        {4, {0, 0, 0, 1e300}, 1},
        {5, {0, NAN, 5, INFINITY, -DBL_MAX}, 5},
        {5, {1, 1e8, 1e16, 1e24, -1e32}, INFINITY}, /* a tail without a gap */
        {5, {1e-40, 1e-20, 3, 1e-30, 1e9}, INFINITY},
        {5, {1e20, 1e20 + 1e10, 2e20, 0, 1e300}, 2e20},
        {3, {1e300, 1e300, 2e300}, INFINITY},
    };
    for (size_t k = 0; k < AS_ARRAY_LEN(cases); k++) {
        double limit = limit_of(cases[k].v, cases[k].n);
        ck_assert_msg(limit == cases[k].limit, "case %zu: %g", k, limit);
    }
}
END_TEST

/* With every second value absurd, and with the rest spread over ten orders of magnitude. */
START_TEST(every_second_value)
{
    double v[MOST], most = 0;
    struct rng r;
    rng_init(&r, 1, 1);
    for (size_t n = 0; n < MOST; n++) {
        v[n] = n % 2 ? 1e300 : pow(10, 10 * rng_uniform(&r) - 5);
        most = fmax(most, n % 2 ? 0 : v[n]);
        double limit = n > 0 ? limit_of(v, n + 1) : 1;
        ck_assert_msg(limit == fmax(1, most), "%zu values: %g, not %g", n + 1, limit, most);
    }
}
END_TEST

/* Without an absurd value all values count, whatever the tail: a lognormal one of ten decades. */
START_TEST(heavy_tails)
{
    struct rng r;
    rng_init(&r, 2, 1);
    for (size_t k = 0; k < 1000; k++) {
        double v[MOST];
        for (size_t i = 0; i < MOST; i++)
            v[i] = (rng_uniform(&r) < 0.5 ? -1 : 1) * pow(10, 2.5 * rng_normal(&r));
        for (size_t n = 1; n <= MOST; n += 7)
            ck_assert(limit_of(v, n) == INFINITY);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("credible");
    TCase *t = tcase_create("limit");
    tcase_add_test(t, gaps);
    tcase_add_test(t, every_second_value);
    tcase_add_test(t, heavy_tails);
    suite_add_tcase(s, t);
    return s;
}
