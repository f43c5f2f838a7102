/* The chance to beat the best trial, against the share of trials that do. */
#include "search/stopping/chance.h"

#include <math.h>

#include "base/rng.h"
#include "base/status.h"
#include "tests/support/check_main.h"

START_TEST(test_too_little_is_known)
{
    struct chance_pairs p = {0};
    for (int i = 0; i < CHANCE_ENOUGH - 1; i++)
        chance_add(&p, i, i);
    ck_assert(chance_below(&p, 99, 0) == 1);
    chance_add(&p, 9, 9);
    ck_assert(chance_below(&p, 99, 0) < 0.001);
}
END_TEST

/* The prediction of a value at `here` is right: so many of the values at the end are below. */
START_TEST(test_agrees_with_frequencies)
{
    static const double cases[][2] = {{0, 0}, {0, -1}, {2, 0}, {-1, 1}, {1, -2}};
    struct rng r;
    rng_init(&r, 3, 1);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double here = cases[c][0], best = cases[c][1], sum = 0;
        int below = 0, n = 2000;
        for (int i = 0; i < n; i++) { /* another sample of trials each time */
            struct chance_pairs p = {0};
            for (int k = 0; k < 100; k++) {
                double x = rng_normal(&r);
                chance_add(&p, x, 0.7 * x + 0.5 * rng_normal(&r));
            }
            sum += chance_below(&p, here, best) / n;
            below += 0.7 * here + 0.5 * rng_normal(&r) < best;
        }
        ck_assert_msg(fabs(sum - (double)below / n) < 0.03, "case %zu: %g, %d of %d", c, sum, below,
                      n);
    }
}
END_TEST

/* Ranks that mislead, constants, and values that are not finite. */
START_TEST(test_other_curves)
{
    struct chance_pairs p = {0};
    for (int i = 0; i < 10; i++)
        chance_add(&p, -i, i + 0.1 * (i % 2));
    ck_assert(chance_below(&p, 1, 0) > 0.9); /* the worse the better */
    ck_assert(chance_below(&p, -9, 0) < 0.01);
    struct chance_pairs same = {0};
    for (int i = 0; i < 10; i++)
        chance_add(&same, 1, i);
    ck_assert(chance_below(&same, 1, 4.5) > 0.4 && chance_below(&same, 1, 4.5) < 0.6);
    struct chance_pairs wild = {0};
    for (int i = 0; i < 20; i++)
        chance_add(&wild, i, i == 19 ? 1e300 : i);
    chance_add(&wild, NAN, NAN);
    ck_assert(chance_below(&wild, NAN, 0) < 0.05);
    ck_assert(chance_below(&wild, 1e300, 0) < 0.05);
    ck_assert(chance_below(&wild, 0, 3) > 0.3);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_chance");
    TCase *t = tcase_create("chance");
    tcase_add_test(t, test_too_little_is_known);
    tcase_add_test(t, test_agrees_with_frequencies);
    tcase_add_test(t, test_other_curves);
    suite_add_tcase(s, t);
    return s;
}
