#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/importance/ped_anova.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define D 6

/* A float and a choice that matter, an int and a choice that do not, a constant, and a float that
 * is active in half of the trials. */
static struct space *make_space(void)
{
    struct space *s = NULL;
    struct as_err err;
    ck_ok(space_from_yaml("{x: {type: float, min: 0, max: 1},"
                          " c: {type: categorical, values: [a, b, c]},"
                          " i: {type: int, min: 1, max: 9},"
                          " idle: {type: categorical, values: [a, b, c, d, e]},"
                          " k: {type: constant, value: 1},"
                          " child: {type: float, min: 0, max: 1, when: {c: a}}}",
                          &s, &err),
          err);
    return s;
}

static void make_points(const struct encoding *e, size_t n, uint64_t seed, double *points)
{
    struct rng r;
    rng_init(&r, seed, 1);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < D; k++)
            points[i * D + k] = rng_uniform(&r);
        encoding_from_unit(e, points + i * D, points + i * D);
    }
}

/* On random points, the parameters that matter get almost all of the shares. */
START_TEST(what_decides_is_found)
{
    enum { n = 500 };
    AS_AUTO(space_freep) struct space *s = make_space();
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    struct as_err err;
    static double points[n * D];
    double costs[n], share[D], both = 0;
    ck_ok(encoding_create(s, &e, &err), err);
    for (uint64_t seed = 0; seed < 10; seed++) {
        make_points(e, n, seed, points);
        for (size_t i = 0; i < n; i++)
            costs[i] = fabs(points[i * D] - 0.3) + (points[i * D + 1] == 1 ? 0 : 0.3);
        ck_ok(ped_anova(e, points, costs, n, share, &err), err);
        double sum = 0;
        for (size_t k = 0; k < D; k++) {
            ck_assert(share[k] >= 0);
            sum += share[k];
        }
        ck_assert_double_eq_tol(sum, 1, 1e-12);
        ck_assert_double_eq(share[4], 0);
        both += (share[0] + share[1]) / 10;
        ck_assert(share[0] > 0.2 && share[1] > 0.1);
    }
    ck_assert_double_gt(both, 0.93);
}
END_TEST

START_TEST(few_trials_and_ties)
{
    AS_AUTO(space_freep) struct space *s = make_space();
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    struct as_err err;
    double points[20 * D], costs[20] = {0}, share[D];
    ck_ok(encoding_create(s, &e, &err), err);
    make_points(e, 20, 3, points);
    for (size_t n = 0; n <= 20; n++) {
        ck_ok(ped_anova(e, points, costs, n, share, &err), err);
        for (size_t k = 0; k < D; k++)
            ck_assert(share[k] >= 0 && share[k] <= 1);
    }
    for (size_t nth = 1; nth <= 4; nth++) {
        as_mem_fail_nth(nth);
        ck_fails(ped_anova(e, points, costs, 20, share, &err), AS_E_NOMEM, err, "memory");
    }
    as_mem_fail_nth(0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_ped_anova");
    TCase *t = tcase_create("ped_anova");
    tcase_add_test(t, what_decides_is_found);
    tcase_add_test(t, few_trials_and_ties);
    suite_add_tcase(s, t);
    return s;
}
