#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/pareto/hypervolume.h"
#include "tests/support/check_main.h"

#define MAX_N 12

/* The oracle: inclusion and exclusion over all subsets, minimising. */
static double by_inclusion(const double *v, size_t n, size_t m, const double *reference)
{
    double total = 0;
    for (unsigned set = 1; set < 1u << n; set++) {
        double volume = __builtin_popcount(set) % 2 ? 1 : -1;
        for (size_t k = 0; k < m; k++) {
            double worst = -INFINITY;
            for (size_t i = 0; i < n; i++)
                if (set >> i & 1)
                    worst = fmax(worst, v[i * m + k]);
            volume *= fmax(0, reference[k] - worst);
        }
        total += volume;
    }
    return total;
}

START_TEST(equals_inclusion_and_exclusion)
{
    struct rng r;
    rng_init(&r, 5, 1);
    double v[MAX_N * 4], flipped[MAX_N * 4];
    struct as_err err;
    for (unsigned round = 0; round < 600; round++) {
        size_t m = 1 + round % 4, n = rng_below(&r, MAX_N + 1);
        double reference[4], flipped_reference[4], hv, hv_flipped;
        bool maximize[4];
        for (size_t k = 0; k < m; k++) {
            reference[k] = 0.5 + rng_uniform(&r);
            maximize[k] = rng_below(&r, 2);
            flipped_reference[k] = maximize[k] ? -reference[k] : reference[k];
        }
        for (size_t i = 0; i < n * m; i++) {
            v[i] = round % 8 < 4 ? rng_uniform(&r) * 1.2 : (double)rng_below(&r, 5) / 4;
            flipped[i] = maximize[i % m] ? -v[i] : v[i];
        }
        ck_ok(gp_hypervolume(v, n, m, NULL, reference, &hv, &err), err);
        double want = by_inclusion(v, n, m, reference);
        ck_assert_msg(fabs(hv - want) <= 1e-11, "round %u: %.17g, wanted %.17g", round, hv, want);
        ck_ok(gp_hypervolume(flipped, n, m, maximize, flipped_reference, &hv_flipped, &err), err);
        ck_assert_double_eq_tol(hv_flipped, hv, 1e-15);
    }
}
END_TEST

/* The part of the unit cube above the points with x_1 + ... + x_m = 1 has a known volume. */
START_TEST(a_simplex_of_many_points)
{
    struct as_err err;
    double want[] = {0, 0, 0.5, 5.0 / 6, 23.0 / 24}, reference[] = {1, 1, 1, 1};
    size_t side[] = {0, 0, 1000, 40, 16};
    for (size_t m = 2; m <= 4; m++) {
        size_t n = 0, cells = side[m];
        double *v = as_calloc(100000, sizeof *v), hv;
        ck_assert(v);
        for (size_t a = 0; a <= cells; a++)
            for (size_t b = 0; b <= (m > 2 ? cells - a : 0); b++)
                for (size_t c = 0; c <= (m > 3 ? cells - a - b : 0); c++) {
                    size_t rest = cells - a - b - c, at[] = {a, b, c};
                    for (size_t k = 0; k + 1 < m; k++)
                        v[n * m + k] = (double)at[k] / (double)cells;
                    v[n * m + m - 1] = (double)rest / (double)cells;
                    n++;
                }
        ck_ok(gp_hypervolume(v, n, m, NULL, reference, &hv, &err), err);
        ck_assert_double_lt(hv, want[m]);
        ck_assert_double_gt(hv, want[m] - 1.6 / (double)cells);
        free(v);
    }
}
END_TEST

/* Uniform points in four dimensions against Monte Carlo: 200,000 draws, five deviations; the draws
 * are fixed. */
START_TEST(equals_monte_carlo)
{
    struct rng r;
    rng_init(&r, 8, 1);
    enum { n = 200, draws = 200000 };
    double v[n * 4], reference[] = {1, 1, 1, 1};
    struct as_err err;
    for (size_t m = 2; m <= 4; m++) {
        double hv;
        for (size_t i = 0; i < n * m; i++)
            v[i] = 0.2 + rng_uniform(&r);
        ck_ok(gp_hypervolume(v, n, m, NULL, reference, &hv, &err), err);
        size_t inside = 0;
        for (size_t s = 0; s < draws; s++) {
            double y[4];
            for (size_t k = 0; k < m; k++)
                y[k] = rng_uniform(&r);
            bool dominated = false;
            for (size_t i = 0; i < n && !dominated; i++) {
                dominated = true;
                for (size_t k = 0; k < m; k++)
                    dominated = dominated && v[i * m + k] <= y[k];
            }
            inside += dominated;
        }
        double share = (double)inside / draws;
        ck_assert_double_eq_tol(hv, share, 5 * sqrt(share * (1 - share) / draws));
    }
}
END_TEST

START_TEST(bad_input)
{
    struct as_err err;
    double v[] = {0, NAN}, reference[] = {1, 1}, hv = 7;
    ck_fails(gp_hypervolume(v, 1, 2, NULL, reference, &hv, &err), AS_E_INVAL, err, "point 0");
    v[1] = 0;
    reference[1] = INFINITY;
    ck_fails(gp_hypervolume(v, 1, 2, NULL, reference, &hv, &err), AS_E_INVAL, err, "reference");
    ck_fails(gp_hypervolume(v, 1, 5, NULL, reference, &hv, &err), AS_E_INVAL, err, "5 objectives");
    reference[1] = 1;
    for (size_t nth = 1; nth <= 3; nth++) {
        as_mem_fail_nth(nth);
        ck_fails(gp_hypervolume(v, 1, 2, NULL, reference, &hv, &err), AS_E_NOMEM, err, "memory");
    }
    as_mem_fail_nth(0);
    ck_assert_double_eq(hv, 7);
    ck_ok(gp_hypervolume(v, 1, 2, NULL, reference, &hv, &err), err);
    ck_assert_double_eq(hv, 1);
    ck_ok(gp_hypervolume(v, 0, 2, NULL, reference, &hv, &err), err);
    ck_assert_double_eq(hv, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_hypervolume");
    TCase *t = tcase_create("hypervolume");
    tcase_add_test(t, equals_inclusion_and_exclusion);
    tcase_add_test(t, a_simplex_of_many_points);
    tcase_add_test(t, equals_monte_carlo);
    tcase_add_test(t, bad_input);
    suite_add_tcase(s, t);
    return s;
}
