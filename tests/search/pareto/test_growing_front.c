/* A front that grows is the front of all its points, in whatever order they came and however often
 * it was settled; so are its reference and its hypervolume. The oracle finds the front of all
 * points at once. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "search/pareto/growing_front.h"
#include "search/pareto/hypervolume.h"
#include "tests/support/check_main.h"

#define MAX_N 300

static struct as_err err;

/* What the front of all of them is. */
struct plain {
    size_t front[MAX_N], n;
    double reference[GP_PARETO_MAX_OBJECTIVES], hypervolume;
};

static struct plain plain_front(const double *v, size_t n, size_t m, const bool *maximize)
{
    struct plain p = {0};
    ck_ok(gp_pareto_front(v, n, m, maximize, p.front, &p.n, &err), err);
    gp_pareto_reference(v, n, m, maximize, p.front, p.n, p.reference);
    ck_ok(gp_hypervolume(v, n, m, maximize, p.reference, &p.hypervolume, &err), err);
    return p;
}

static void check_same(struct growing_front *f, const double *v, size_t n)
{
    struct plain p = plain_front(v, n, f->m, f->maximize);
    double reference[GP_PARETO_MAX_OBJECTIVES], hypervolume;
    ck_ok(growing_front_settle(f, &err), err);
    ck_assert_uint_eq(f->n, p.n);
    for (size_t i = 0; i < p.n; i++) {
        ck_assert_int_eq(f->points[i].number, (int64_t)p.front[i]);
        ck_assert_mem_eq(f->points[i].values, v + p.front[i] * f->m, f->m * sizeof *v);
    }
    ck_ok(growing_front_measure(f, reference, &hypervolume, &err), err);
    ck_assert_mem_eq(reference, p.reference, f->m * sizeof *reference);
    ck_assert_double_le(fabs(hypervolume - p.hypervolume), 1e-12 * fabs(p.hypervolume));
}

/* On a grid, with ties and copies, or of reals, or nearly all on the front. */
static double draw(struct rng *r, unsigned kind, size_t k, double *sum)
{
    double v = kind == 0 ? (double)rng_below(r, 5) : rng_normal(r);
    if (kind == 2)
        v = k == 0 ? v : v - *sum;
    *sum += v;
    return v;
}

START_TEST(it_is_the_front_of_all)
{
    struct rng r;
    double v[MAX_N * GP_PARETO_MAX_OBJECTIVES];
    rng_init(&r, 28, 1);
    for (unsigned round = 0; round < 120; round++) {
        AS_AUTO(growing_front_done) struct growing_front f = {0};
        size_t m = 1 + round % 4, n = 1 + rng_below(&r, MAX_N - 1);
        bool maximize[GP_PARETO_MAX_OBJECTIVES];
        for (size_t k = 0; k < m; k++)
            maximize[k] = rng_below(&r, 2);
        ck_ok(growing_front_init(&f, m, maximize, &err), err);
        for (size_t i = 0; i < n; i++) {
            double sum = 0;
            for (size_t k = 0; k < m; k++)
                v[i * m + k] = draw(&r, round / 4 % 3, k, &sum);
            ck_ok(growing_front_add(&f, (int64_t)i, v + i * m, &err), err);
            if (i % 50 == 49)
                check_same(&f, v, i + 1);
        }
        check_same(&f, v, n);
    }
}
END_TEST

/* Each by its number, though they come in another order. */
START_TEST(the_order_of_points_does_not_matter)
{
    AS_AUTO(growing_front_done) struct growing_front f = {0};
    const bool maximize[] = {false, false};
    double v[200 * 2];
    struct rng r;
    rng_init(&r, 28, 2);
    ck_ok(growing_front_init(&f, 2, maximize, &err), err);
    for (size_t i = 0; i < 400; i++)
        v[i] = (double)rng_below(&r, 12);
    for (size_t i = 0; i < 200; i++) {
        size_t at = i * 77 % 200;
        ck_ok(growing_front_add(&f, (int64_t)at, v + at * 2, &err), err);
        if (i % 60 == 0)
            ck_ok(growing_front_settle(&f, &err), err);
    }
    check_same(&f, v, 200);
}
END_TEST

START_TEST(dominated_points_take_no_memory)
{
    AS_AUTO(growing_front_done) struct growing_front f = {0};
    const bool maximize[] = {true};
    ck_ok(growing_front_init(&f, 1, maximize, &err), err);
    for (int64_t i = 0; i < 300000; i++)
        ck_ok(growing_front_add(&f, i, &(double){(double)(i * 7919 % 300007)}, &err), err);
    ck_assert_uint_le(f.cap, 131072); /* 65,536 that came and a front */
    ck_ok(growing_front_settle(&f, &err), err);
    ck_assert_uint_eq(f.n, 1);
    ck_assert_uint_le(f.cap, 64);
}
END_TEST

START_TEST(bad_input_and_no_memory)
{
    AS_AUTO(growing_front_done) struct growing_front f = {0};
    const bool maximize[5] = {0};
    ck_fails(growing_front_init(&f, 5, maximize, &err), AS_E_INVAL, err, "5 objectives");
    ck_ok(growing_front_init(&f, 2, maximize, &err), err);
    ck_fails(growing_front_add(&f, 7, (double[]){1, NAN}, &err), AS_E_INVAL, err,
             "objective 1 of trial 7 is nan");
    as_mem_fail_nth(1);
    ck_fails(growing_front_add(&f, 7, (double[]){1, 2}, &err), AS_E_NOMEM, err, "memory");
    ck_assert_uint_eq(f.n, 0);
    ck_ok(growing_front_add(&f, 7, (double[]){1, 2}, &err), err);
    as_mem_fail_nth(1);
    ck_fails(growing_front_settle(&f, &err), AS_E_NOMEM, err, "memory");
    ck_ok(growing_front_settle(&f, &err), err);
    ck_assert_uint_eq(f.n, 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_growing_front");
    TCase *t = tcase_create("growing_front");
    tcase_add_test(t, it_is_the_front_of_all);
    tcase_add_test(t, the_order_of_points_does_not_matter);
    tcase_add_test(t, dominated_points_take_no_memory);
    tcase_add_test(t, bad_input_and_no_memory);
    suite_add_tcase(s, t);
    return s;
}
