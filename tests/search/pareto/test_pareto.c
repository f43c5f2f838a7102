/* Non-dominated sets and the reference point.
 *
 * The oracle compares every point with every other point. Random sets on a small grid have many
 * copies and ties; points on a sphere are nearly all on the front, which is the slow case. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/pareto/pareto.h"
#include "tests/support/check_main.h"

#define MAX_N 120

static bool dominates_plainly(const double *a, const double *b, size_t m, const bool *maximize)
{
    size_t no_worse = 0, better = 0;
    for (size_t k = 0; k < m; k++) {
        no_worse += maximize[k] ? a[k] >= b[k] : a[k] <= b[k];
        better += maximize[k] ? a[k] > b[k] : a[k] < b[k];
    }
    return no_worse == m && better > 0;
}

/* Points on a small grid (copies and ties abound), or reals, or a sphere where nearly all are on
 * the front. */
static void random_points(struct rng *r, double *v, size_t n, size_t m, unsigned kind)
{
    for (size_t i = 0; i < n; i++) {
        double norm = 0;
        for (size_t k = 0; k < m; k++) {
            double *x = &v[i * m + k];
            *x = kind == 0 ? (double)rng_below(r, 6) : kind == 1 ? rng_normal(r) : rng_uniform(r);
            norm += *x * *x;
        }
        for (size_t k = 0; k < m && kind == 2; k++)
            v[i * m + k] /= -sqrt(norm);
    }
}

START_TEST(front_is_what_nothing_dominates)
{
    struct rng r;
    rng_init(&r, 11, 1);
    double v[MAX_N * 4];
    size_t front[MAX_N], n_front;
    struct as_err err;
    for (unsigned round = 0; round < 400; round++) {
        size_t n = rng_below(&r, round % 2 ? 40 : MAX_N), m = 1 + round % 4;
        bool maximize[4];
        for (size_t k = 0; k < m; k++)
            maximize[k] = rng_below(&r, 2);
        random_points(&r, v, n, m, (round / 4) % 3);
        as_status st = gp_pareto_front(v, n, m, maximize, front, &n_front, &err);
        ck_ok(st, err);
        size_t at = 0;
        for (size_t i = 0; i < n; i++) {
            bool dominated = false;
            for (size_t j = 0; j < n; j++) {
                bool does = dominates_plainly(v + j * m, v + i * m, m, maximize);
                ck_assert(does == gp_pareto_dominates(v + j * m, v + i * m, m, maximize));
                dominated = dominated || does;
            }
            bool is_in = at < n_front && front[at] == i;
            ck_assert_msg(is_in != dominated, "round %u: point %zu of %zu", round, i, n);
            at += is_in;
        }
        ck_assert_uint_eq(at, n_front);
    }
}
END_TEST

START_TEST(goals_copies_and_none)
{
    const double v[] = {0.9, 10, 0.8, 5, 0.9, 10, 0.7, 7, 0.95, 30};
    const bool maximize[] = {true, false}; /* accuracy, latency */
    size_t front[5], n;
    struct as_err err;
    ck_ok(gp_pareto_front(v, 5, 2, maximize, front, &n, &err), err);
    ck_assert_uint_eq(n, 4);
    const size_t want[] = {0, 1, 2, 4};
    ck_assert_mem_eq(front, want, sizeof want);
    ck_ok(gp_pareto_front(v, 5, 2, NULL, front, &n, &err), err);
    ck_assert_uint_eq(n, 2); /* both minimised: 1 and 3 */
    ck_ok(gp_pareto_front(v, 0, 2, NULL, front, &n, &err), err);
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(what_is_not_finite_is_refused)
{
    double v[] = {1, 2, 3, NAN};
    size_t front[2], n = 77;
    struct as_err err;
    ck_fails(gp_pareto_front(v, 2, 2, NULL, front, &n, &err), AS_E_INVAL, err,
             "objective 1 of point 1 is");
    v[3] = INFINITY;
    ck_fails(gp_pareto_front(v, 2, 2, NULL, front, &n, &err), AS_E_INVAL, err, "inf");
    ck_fails(gp_pareto_front(v, 0, 5, NULL, front, &n, &err), AS_E_INVAL, err, "5 objectives");
    ck_fails(gp_pareto_front(v, 0, 0, NULL, front, &n, &err), AS_E_INVAL, err, "0 objectives");
    ck_assert_uint_eq(n, 77);
    const double good[] = {0, 0}, bad[] = {NAN, 1};
    ck_assert(!gp_pareto_dominates(good, bad, 2, NULL) && !gp_pareto_dominates(bad, good, 2, NULL));
}
END_TEST

START_TEST(many_points)
{
    size_t n = 100000, n_front;
    struct rng r;
    rng_init(&r, 3, 1);
    double *v = as_calloc(n * 4, sizeof *v);
    size_t *front = as_calloc(n, sizeof *front);
    struct as_err err;
    ck_assert(v && front);
    random_points(&r, v, n, 2, 2);
    ck_ok(gp_pareto_front(v, n, 2, NULL, front, &n_front, &err), err);
    ck_assert_uint_gt(n_front, 99000); /* of a circle's arc all but copies by rounding */
    for (size_t m = 3; m <= 4; m++) {
        random_points(&r, v, 20000, m, 2);
        ck_ok(gp_pareto_front(v, 20000, m, NULL, front, &n_front, &err), err);
        ck_assert_uint_gt(n_front, 19990);
    }
    free(v);
    free(front);
}
END_TEST

START_TEST(reference_is_worse_than_the_front)
{
    const double v[] = {1, 100, 3, 60, 2, 80, 9, 500};
    const size_t front[] = {0, 1, 2};
    double r[2];
    gp_pareto_reference(v, 4, 2, NULL, front, 3, r);
    ck_assert_double_eq_tol(r[0], 3.2, 1e-12);
    ck_assert_double_eq_tol(r[1], 104, 1e-12);
    const bool maximize[] = {true, false};
    gp_pareto_reference(v, 4, 2, maximize, front, 3, r);
    ck_assert_double_eq_tol(r[0], 0.8, 1e-12);
    gp_pareto_reference(v, 4, 2, NULL, front, 1, r); /* one point: the range of all */
    ck_assert_double_eq_tol(r[0], 1.8, 1e-12);
    ck_assert_double_eq_tol(r[1], 144, 1e-12);
    gp_pareto_reference(v, 1, 2, NULL, front, 1, r); /* no range: the magnitude */
    ck_assert_double_eq_tol(r[0], 1.1, 1e-12);
    ck_assert_double_eq_tol(r[1], 110, 1e-12);
    const double zero[] = {0, 0};
    gp_pareto_reference(zero, 1, 2, NULL, front, 1, r);
    ck_assert_double_eq_tol(r[0], 0.1, 1e-12);
}
END_TEST

START_TEST(memory_that_runs_out)
{
    const double v[] = {1, 2, 2, 1};
    size_t front[2], n;
    struct as_err err;
    for (size_t nth = 1; nth <= 3; nth++) {
        as_mem_fail_nth(nth);
        ck_fails(gp_pareto_front(v, 2, 2, NULL, front, &n, &err), AS_E_NOMEM, err, "memory");
    }
    as_mem_fail_nth(0);
    ck_ok(gp_pareto_front(v, 2, 2, NULL, front, &n, &err), err);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_pareto");
    TCase *t = tcase_create("pareto");
    tcase_add_test(t, front_is_what_nothing_dominates);
    tcase_add_test(t, goals_copies_and_none);
    tcase_add_test(t, what_is_not_finite_is_refused);
    tcase_add_test(t, many_points);
    tcase_add_test(t, reference_is_worse_than_the_front);
    tcase_add_test(t, memory_that_runs_out);
    suite_add_tcase(s, t);
    return s;
}
