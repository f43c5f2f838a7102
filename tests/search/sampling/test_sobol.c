#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "search/sampling/sobol.h"
#include "tests/support/check_main.h"

#define POINTS 1024

/* The first rows of the listing that Joe and Kuo's own program prints for three dimensions, which
 * goes through the points in Gray-code order. */
START_TEST(agrees_with_joe_and_kuo)
{
    const double want[10][3] = {
        {0, 0, 0},
        {0.5, 0.5, 0.5},
        {0.75, 0.25, 0.25},
        {0.25, 0.75, 0.75},
        {0.375, 0.375, 0.625},
        {0.875, 0.875, 0.125},
        {0.625, 0.125, 0.875},
        {0.125, 0.625, 0.375},
        {0.1875, 0.3125, 0.9375},
        {0.6875, 0.8125, 0.4375},
    };
    for (uint32_t i = 0; i < 10; i++)
        for (unsigned d = 0; d < 3; d++)
            ck_assert(sobol_bits(i ^ i >> 1, d) * 0x1p-32 == want[i][d]);
}
END_TEST

/* The points [from, from + 2^k) have one in each of the 2^k equal intervals. */
static void check_strata(uint64_t seed, unsigned dim, uint64_t from, unsigned k, bool scrambled)
{
    unsigned char seen[POINTS] = {0};
    uint64_t n = UINT64_C(1) << k;
    for (uint64_t i = from; i < from + n; i++) {
        double u = scrambled ? sobol_point(seed, i, dim) : sobol_bits((uint32_t)i, dim) * 0x1p-32;
        ck_assert(u >= 0 && u < 1);
        size_t at = (size_t)(u * (double)n);
        ck_assert_msg(!seen[at], "dimension %u: interval %zu twice", dim, at);
        seen[at] = 1;
    }
}

START_TEST(every_dimension_is_stratified)
{
    for (unsigned dim = 0; dim < SOBOL_MAX_DIMS; dim++) {
        check_strata(0, dim, 0, 9, false);
        check_strata(0, dim, 3 * 256, 8, false);
        check_strata(dim * 7, dim, 0, 9, true);
        check_strata(dim * 7, dim, 5 * 256, 8, true);
        check_strata(9, dim, (UINT64_C(1) << 32) + 64, 6, true);
    }
}
END_TEST

/* Points in each elementary box of 2^a x 2^b, a + b = k, of 2^(k + t) points: exactly 2^t? */
static bool is_net(unsigned d1, unsigned d2, unsigned k, unsigned t, uint64_t seed)
{
    for (unsigned a = 0; a <= k; a++) {
        unsigned counts[POINTS] = {0};
        for (uint64_t i = 0; i < UINT64_C(1) << (k + t); i++) {
            size_t x = (size_t)(sobol_point(seed, i, d1) * (double)(1u << a));
            size_t y = (size_t)(sobol_point(seed, i, d2) * (double)(1u << (k - a)));
            counts[x << (k - a) | y]++;
        }
        for (size_t box = 0; box < (size_t)1 << k; box++)
            if (counts[box] != 1u << t)
                return false;
    }
    return true;
}

START_TEST(pairs_fill_elementary_boxes)
{
    for (unsigned k = 1; k <= 9; k++) /* the first two dimensions are a (0,2)-sequence in base 2 */
        ck_assert(is_net(0, 1, k, 0, k));
    /* later pairs have t up to the sum of their degrees minus one; Joe and Kuo chose the numbers so
     * that neighbours among the first dimensions are much better */
    for (unsigned d = 1; d < 12; d++)
        ck_assert_msg(is_net(d - 1, d, 5, 4, 3), "dimensions %u and %u", d - 1, d);
}
END_TEST

START_TEST(scrambling_depends_on_seed_and_dimension)
{
    size_t same_seed = 0, same_dim = 0;
    for (uint64_t i = 0; i < 256; i++) {
        ck_assert(sobol_point(1, i, 3) == sobol_point(1, i, 3));
        same_seed += sobol_point(1, i, 3) == sobol_point(2, i, 3);
        same_dim += sobol_point(1, i, 0) == sobol_point(1, i, 1);
    }
    ck_assert_uint_le(same_seed, 1);
    ck_assert_uint_le(same_dim, 1);
    ck_assert(sobol_point(1, 0, 0) != sobol_point(1, UINT64_C(1) << 32, 0));
}
END_TEST

START_TEST(columns_are_made_of_the_same_points)
{
    enum { N = 600 }; /* more than two runs of indices */
    static const uint64_t from[] = {0, 5, 250, (UINT64_C(1) << 32) - 3};
    for (size_t f = 0; f < 4; f++)
        for (unsigned dim = 0; dim < SOBOL_MAX_DIMS; dim += 17) {
            double column[3 * N] = {0};
            sobol_column(11, from[f], N, dim, column, 3);
            for (size_t k = 0; k < N; k++) {
                ck_assert(column[3 * k] == sobol_point(11, from[f] + k, dim));
                ck_assert(column[3 * k + 1] == 0);
            }
        }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/sobol");
    TCase *t = tcase_create("sobol");
    tcase_add_test(t, agrees_with_joe_and_kuo);
    tcase_add_test(t, every_dimension_is_stratified);
    tcase_add_test(t, pairs_fill_elementary_boxes);
    tcase_add_test(t, scrambling_depends_on_seed_and_dimension);
    tcase_add_test(t, columns_are_made_of_the_same_points);
    suite_add_tcase(s, t);
    return s;
}
