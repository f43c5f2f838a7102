/* The output transforms.
 *
 * Small cases are computed by hand from the formulas in warp.h. Random and extreme values check the
 * properties that models rely on: mean 0 and deviation 1, kept order, finite results for failures,
 * and an inverse. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "search/regression/warp.h"
#include "tests/support/check_main.h"

static struct gp_warp *warp(gp_warp_kind kind, const double *y, size_t n)
{
    struct as_err err = {0};
    struct gp_warp *w = NULL;
    ck_ok(gp_warp_create(kind, y, n, &w, &err), err);
    return w;
}

/* Mean 0 and deviation 1, or all 0; all finite. */
static void is_standard(const struct gp_warp *w, size_t n)
{
    const double *v = gp_warp_values(w);
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        ck_assert(isfinite(v[i]));
        mean += v[i] / (double)n;
        square += v[i] * v[i] / (double)n;
    }
    ck_assert_double_eq_tol(mean, 0, 1e-12);
    ck_assert(square == 0 || fabs(square - 1) < 1e-12);
}

/* By hand, after the formulas at the head of warp.h. z = -y: 4 3 2 1 0; median 2, sd^2 = (4 + 1 +
 * 0) / 3; below it ranks 1 and 2 of D = 2.5, so that Phi^-1(0.1) = -1.2815515655 and
 * Phi^-1(0.3). */
START_TEST(half_rank_by_hand)
{
    double y[6] = {-4, -3, -2, -1, 0, NAN}, sd = sqrt(5.0 / 3), v[6], mean = 0, square = 0;
    double z[5] = {4, 3, 2, 2 - sd * 0.5244005127080409, 2 - sd * 1.2815515655446004};
    for (int i = 0; i < 5; i++)
        v[i] = -(0.5 - log1p((z[0] - z[i]) / (z[0] - z[4]) * 0.5) / log(1.5));
    v[5] = 0.5 + 0.5 * (v[4] - v[0]) + 1;
    for (int i = 0; i < 6; i++)
        mean += v[i] / 6;
    for (int i = 0; i < 6; i++)
        square += (v[i] - mean) * (v[i] - mean) / 6;
    AS_AUTO(gp_warp_freep) struct gp_warp *w = warp(WARP_HALF_RANK, y, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(gp_warp_values(w)[i], (v[i] - mean) / sqrt(square), 1e-12);
}
END_TEST

START_TEST(plain_by_hand)
{
    /* Median 3, quartile 2: the cut is at 8, and the failure goes there, too. */
    double y[6] = {1, 2, 3, 4, 100, INFINITY}, v[6] = {1, 2, 3, 4, 8, 8}, mean = 26.0 / 6;
    double square = 0;
    for (int i = 0; i < 6; i++)
        square += (v[i] - mean) * (v[i] - mean) / 6;
    AS_AUTO(gp_warp_freep) struct gp_warp *w = warp(WARP_PLAIN, y, 6);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(gp_warp_values(w)[i], (v[i] - mean) / sqrt(square), 1e-14);
    ck_assert_double_eq_tol(gp_warp_forward(w, 20), (20 - mean) / sqrt(square), 1e-14);
    ck_assert_double_eq_tol(gp_warp_inverse(w, gp_warp_forward(w, 20)), 20, 1e-12);
    ck_assert_double_eq_tol(gp_warp_inverse_slope(w, 0), sqrt(square), 1e-14);
}
END_TEST

/* Twenty values from 1 to 20, then a crowd at 1: the cut is not at 1, but at q + 20 (q - best). */
START_TEST(a_crowd_at_the_best_does_not_hide_the_others)
{
    double y[60], best = 0.999, quartile = 6.75, cut = quartile + 20 * (quartile - best);
    for (int i = 0; i < 60; i++)
        y[i] = i < 20 ? 1 + (double)i : best + 1e-6 * (double)(i - 20);
    y[3] = 500;
    AS_AUTO(gp_warp_freep) struct gp_warp *w = warp(WARP_PLAIN_WIDE, y, 60);
    const double *v = gp_warp_values(w);
    ck_assert_double_gt(v[19], v[5]);
    ck_assert_double_eq_tol(gp_warp_inverse(w, v[19]), 20, 1e-9);
    ck_assert_double_lt(v[3], gp_warp_forward(w, 500));
    ck_assert_double_eq_tol(gp_warp_inverse(w, v[3]), cut, 1e-9);
    AS_AUTO(gp_warp_freep) struct gp_warp *narrow = warp(WARP_PLAIN, y, 60);
    ck_assert_double_eq(gp_warp_values(narrow)[19], gp_warp_values(narrow)[18]);
    AS_AUTO(gp_warp_freep) struct gp_warp *few = warp(WARP_PLAIN_WIDE, y, 39);
    ck_assert_double_eq(gp_warp_values(few)[19], gp_warp_values(few)[18]);
}
END_TEST

/* The order is kept, equal values stay equal, failures are worst, and the inverse works. */
static void check_any(gp_warp_kind kind, const double *y, size_t n)
{
    AS_AUTO(gp_warp_freep) struct gp_warp *w = warp(kind, y, n);
    const double *v = gp_warp_values(w);
    double range = 0;
    bool ordered = true; /* one assertion: Check is slow */
    is_standard(w, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            if (isfinite(y[i]) && isfinite(y[j])) {
                ordered = ordered && (y[i] >= y[j] || v[i] <= v[j]);
                ordered = ordered && (y[i] != y[j] || v[i] == v[j]);
                range = fmax(range, fabs(y[i] / 2 - y[j] / 2));
            } else if (isfinite(y[i])) {
                ordered = ordered && v[i] <= v[j];
            }
        }
    ck_assert(ordered);
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(y[i]))
            continue;
        double forward = gp_warp_forward(w, y[i]), back = gp_warp_inverse(w, forward);
        ck_assert(isfinite(forward) && isfinite(back) && isfinite(gp_warp_inverse_slope(w, v[i])));
        ck_assert(kind != WARP_HALF_RANK ? forward >= v[i] - 1e-9 : forward == v[i]);
        if (range > 0)
            ck_assert_double_le(fabs(back / 2 - y[i] / 2), 1e-9 * range + 1e-15 * fabs(y[i]));
    }
    ck_assert(gp_warp_inverse(w, -1e3) <= gp_warp_inverse(w, 1e3));
    ck_assert(isfinite(gp_warp_inverse(w, 1e300)) && isfinite(gp_warp_inverse(w, -1e300)));
}

START_TEST(any_values)
{
    static const double scales[] = {1, 0, 1e-300, 5e-324, 1e300, DBL_MAX, 1e-9};
    static const double offsets[] = {0, 1, -1e6, 1e16};
    double y[64];
    for (size_t round = 0; round < 700; round++) {
        struct rng r;
        rng_init(&r, 5, round);
        size_t n = round % 65;
        for (size_t i = 0; i < n; i++) {
            double u = round % 4 == 0 ? (double)rng_below(&r, 3) - 1 : 2 * rng_uniform(&r) - 1;
            if (round % 5 == 1)
                u = u * u * u * u * u;
            y[i] = u * scales[round % 7] + (round % 7 < 2 ? offsets[round % 4] : 0);
            uint64_t fate = rng_below(&r, 12);
            if (round % 3 == 0 && fate < 3)
                y[i] = fate == 0 ? NAN : fate == 1 ? INFINITY : -INFINITY;
        }
        check_any(WARP_HALF_RANK, y, n);
        check_any(WARP_PLAIN, y, n);
        check_any(WARP_PLAIN_WIDE, y, n);
    }
}
END_TEST

START_TEST(nothing_to_tell_apart)
{
    double same[4] = {7, 7, 7, 7}, bad[3] = {NAN, INFINITY, -INFINITY}, mixed[3] = {5, NAN, 5};
    for (int kind = WARP_HALF_RANK; kind <= WARP_PLAIN_WIDE; kind++) {
        AS_AUTO(gp_warp_freep) struct gp_warp *a = warp((gp_warp_kind)kind, same, 4);
        AS_AUTO(gp_warp_freep) struct gp_warp *b = warp((gp_warp_kind)kind, bad, 3);
        AS_AUTO(gp_warp_freep) struct gp_warp *c = warp((gp_warp_kind)kind, same, 1);
        AS_AUTO(gp_warp_freep) struct gp_warp *none = warp((gp_warp_kind)kind, NULL, 0);
        AS_AUTO(gp_warp_freep) struct gp_warp *d = warp((gp_warp_kind)kind, mixed, 3);
        for (int i = 0; i < 3; i++)
            ck_assert(gp_warp_values(a)[i] == 0 && gp_warp_values(b)[i] == 0);
        ck_assert(gp_warp_values(c)[0] == 0 && gp_warp_inverse(c, 3) == 7);
        ck_assert(gp_warp_inverse(none, 1) == 0 && gp_warp_forward(none, 1) == 0);
        ck_assert(gp_warp_inverse(b, 1) == 0 && gp_warp_inverse_slope(a, 0) == 0);
        /* With ranks, a failure among equal values still has a worse value. */
        ck_assert(kind != WARP_HALF_RANK || gp_warp_values(d)[1] > gp_warp_values(d)[0]);
    }
}
END_TEST

START_TEST(exact_under_powers_of_two)
{
    double y[20], scaled[20];
    struct rng r;
    rng_init(&r, 9, 9);
    for (int i = 0; i < 20; i++) {
        y[i] = rng_normal(&r);
        scaled[i] = ldexp(y[i], -900);
    }
    for (int kind = WARP_HALF_RANK; kind <= WARP_PLAIN_WIDE; kind++) {
        AS_AUTO(gp_warp_freep) struct gp_warp *a = warp((gp_warp_kind)kind, y, 20);
        AS_AUTO(gp_warp_freep) struct gp_warp *b = warp((gp_warp_kind)kind, scaled, 20);
        ck_assert_mem_eq(gp_warp_values(a), gp_warp_values(b), sizeof(y));
    }
}
END_TEST

/* The size of the worst value has no effect, up to the largest double. */
START_TEST(one_diverged)
{
    double y[7] = {3, 1, 2.5, 4, 2, 1e6, 5};
    for (int kind = WARP_HALF_RANK; kind <= WARP_PLAIN_WIDE; kind++) {
        y[5] = 1e6;
        AS_AUTO(gp_warp_freep) struct gp_warp *a = warp((gp_warp_kind)kind, y, 7);
        for (double worst = 1e100; worst < INFINITY; worst *= 1e104) {
            y[5] = worst;
            AS_AUTO(gp_warp_freep) struct gp_warp *b = warp((gp_warp_kind)kind, y, 7);
            ck_assert_mem_eq(gp_warp_values(a), gp_warp_values(b), sizeof(y));
            ck_assert_double_eq(gp_warp_forward(a, 2), gp_warp_forward(b, 2));
        }
    }
}
END_TEST

START_TEST(out_of_memory)
{
    struct as_err err = {0};
    struct gp_warp *w = NULL;
    double y[2] = {1, 2};
    for (size_t nth = 1; nth <= 4; nth++) {
        as_mem_fail_nth(nth);
        ck_fails(gp_warp_create(WARP_PLAIN, y, 2, &w, &err), AS_E_NOMEM, err, "out of memory");
    }
    as_mem_fail_nth(0);
    ck_assert_ptr_null(w);
}
END_TEST

START_TEST(standardised)
{
    double v[4] = {1, 3, 5, 7}, equal[2] = {2, 2}, wide[2] = {-1e300, 1e300}, mean, deviation;
    ck_assert(gp_standardise(v, 4, &mean, &deviation));
    ck_assert_double_eq(mean, 4);
    ck_assert_double_eq_tol(deviation, sqrt(5), 1e-15);
    ck_assert_double_eq_tol(v[0], -3 / sqrt(5), 1e-15);
    ck_assert_double_eq_tol(v[3], 3 / sqrt(5), 1e-15);
    ck_assert(!gp_standardise(equal, 2, &mean, &deviation));
    ck_assert(!gp_standardise(wide, 2, &mean, &deviation));
    ck_assert_double_eq(equal[0], 2);
    ck_assert_double_eq(wide[1], 1e300);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("gp_warp");
    TCase *t = tcase_create("warp");
    tcase_add_test(t, half_rank_by_hand);
    tcase_add_test(t, plain_by_hand);
    tcase_add_test(t, a_crowd_at_the_best_does_not_hide_the_others);
    tcase_add_test(t, any_values);
    tcase_add_test(t, nothing_to_tell_apart);
    tcase_add_test(t, exact_under_powers_of_two);
    tcase_add_test(t, one_diverged);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, standardised);
    suite_add_tcase(s, t);
    return s;
}
