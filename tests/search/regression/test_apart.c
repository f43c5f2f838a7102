/* Which values stand apart from all others. */
#include "search/regression/apart.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/rng.h"
#include "tests/support/check_main.h"

#define MOST 40

START_TEST(a_gap_of_ten_ranges_stands_apart)
{
    static const struct {
        size_t n;
        double v[12];
        size_t low, high;
    } cases[] = {
        {8, {-1e8, 1, 2, 3, 4, 5, 6, 7}, 1, 0},
        {8, {-39, 1, 2, 3, 4, 5, 6, 7}, 0, 0}, /* the range ends at the third quartile: 5 - 1 */
        {8, {-40, 1, 2, 3, 4, 5, 6, 7}, 1, 0}, /* 41 > 10 x 4 */
        {8, {1, 2, 3, 4, 5, 6, 7, 1e8}, 0, 1},
        {8, {-1e8, -1e8, 1, 2, 3, 4, 5, 6}, 2, 0},
        {9, {1, 2, 3, 4, 5, 6, 1e3, 1e8, 1e8}, 0, 3}, /* the largest number */
        {12, {-1e5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 1e8, 1e8, 1e8, 1e8}, 0, 4},
        {12, {-1e5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 1e8, 1e8}, 1, 2}, /* both at once */
        {8, {0.9, 1, 1, 1, 1, 1, 1, 1}, 0, 0}, /* all others are equal: nothing to compare with */
        {7, {-1e8, 1, 2, 3, 4, 5, 6}, 0, 0},   /* too few */
        {8, {1, 2, 3, 1e8, 1e8, 1e8, 1e8, 1e8}, 0, 0}, /* most of them */
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        size_t low = apart_lowest(cases[i].v, cases[i].n, INFINITY);
        size_t high = apart_highest(cases[i].v, cases[i].n);
        ck_assert_msg(low == cases[i].low && high == cases[i].high, "case %zu: %zu and %zu", i, low,
                      high);
    }
}
END_TEST

START_TEST(what_is_known_does_not_stand_apart)
{
    static const double v[] = {-1e8, -100, 1, 2, 3, 4, 5, 6, 7, 8};
    ck_assert_uint_eq(apart_lowest(v, 10, INFINITY), 2);
    ck_assert_uint_eq(apart_lowest(v, 10, -100), 1);
    ck_assert_uint_eq(apart_lowest(v, 10, -1e8), 0);
}
END_TEST

/* Random values of a steep bowl, whose best ones are far apart on a logarithmic scale: none stands
 * apart in 1,000 sets. */
START_TEST(a_steep_bowl_has_no_value_apart)
{
    for (uint64_t k = 0; k < 1000; k++) {
        double v[MOST];
        struct rng r;
        rng_init(&r, k, 1);
        for (size_t i = 0; i < MOST; i++) {
            double x = rng_uniform(&r) - 0.5, y = rng_uniform(&r) - 0.5;
            v[i] = 1e6 * x * x + y * y;
        }
        qsort(v, MOST, sizeof *v, as_order_f64);
        ck_assert(!apart_lowest(v, MOST, INFINITY) && !apart_highest(v, MOST));
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("apart");
    TCase *t = tcase_create("apart");
    tcase_add_test(t, a_gap_of_ten_ranges_stands_apart);
    tcase_add_test(t, what_is_known_does_not_stand_apart);
    tcase_add_test(t, a_steep_bowl_has_no_value_apart);
    suite_add_tcase(s, t);
    return s;
}
