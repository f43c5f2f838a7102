#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "search/space/config.h"
#include "search/space/encoding.h"
#include "search/importance/region.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define MAX_PARAMS 16

static struct region *create(const struct space *s, size_t i)
{
    struct region *r = NULL;
    struct as_err err;
    ck_ok(region_create(s, i, &r, &err), err);
    return r;
}

/* The parameter is active at every mapped point. For an unconditional parameter nothing is
 * restricted. */
static void check_region(const struct space *s, const struct encoding *e, size_t i, struct rng *rng)
{
    AS_AUTO(region_freep) struct region *r = create(s, i);
    ck_assert(region_is_all(r) == (s->params[i].n_conds == 0));
    for (size_t draw = 0; draw < 200; draw++) {
        double u[MAX_PARAMS], before[MAX_PARAMS];
        bool active[MAX_PARAMS];
        for (size_t k = 0; k < s->n; k++)
            u[k] = before[k] = rng_uniform(rng);
        region_map(r, u);
        if (region_is_all(r))
            ck_assert_mem_eq(u, before, s->n * sizeof *u);
        encoding_from_unit(e, u, u);
        encoding_active(e, u, active);
        ck_assert_msg(active[i], "%s is not active", s->params[i].name);
    }
}

START_TEST(mapped_points_are_inside)
{
    struct rng rng;
    rng_init(&rng, 1, 1);
    for (uint64_t seed = 0; seed < 200; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        AS_AUTO(encoding_freep) struct encoding *e = NULL;
        struct as_err err;
        ck_ok(encoding_create(s, &e, &err), err);
        for (size_t i = 0; i < s->n && s->n <= MAX_PARAMS; i++)
            check_region(s, e, i, &rng);
    }
}
END_TEST

static struct space *chain(void)
{
    struct space *s = NULL;
    struct as_err err;
    ck_ok(space_from_yaml("{depth: {type: int, min: 1, max: 1000000},"
                          " kind: {type: categorical, values: [a, b, c, d], when: {depth: {min: "
                          "500001}}},"
                          " rate: {type: float, min: 0, max: 1, when: {kind: [b, d]}},"
                          " gain: {type: float, min: 0, max: 1, when: {kind: [b, d]}},"
                          " deep: {type: float, min: 0, max: 1, when: {rate: {min: 0.25, max: "
                          "0.5}}},"
                          " one: {type: float, min: 0, max: 1, when: {depth: 777}}}",
                          &s, &err),
          err);
    return s;
}

/* Restricted parameters are uniform over their remaining values: quarters of the float's range,
 * choices, halves. */
START_TEST(ancestors_are_held_and_stay_uniform)
{
    AS_AUTO(space_freep) struct space *s = chain();
    AS_AUTO(region_freep) struct region *rate = create(s, 2), *gain = create(s, 3);
    AS_AUTO(region_freep) struct region *deep = create(s, 4), *one = create(s, 5);
    ck_assert(region_equal(rate, gain) && !region_equal(rate, deep) && !region_equal(one, deep));
    double sum[4] = {0};
    size_t n = 4000;
    for (size_t k = 0; k < n; k++) {
        double at = ((double)k + 0.5) / (double)n, u[6] = {at, at, at, at, at, at};
        region_map(deep, u);
        ck_assert(u[0] > 0.5 && u[2] >= 0.25 && u[2] <= 0.5);
        ck_assert((u[1] >= 0.25 && u[1] < 0.5) || u[1] >= 0.75);
        sum[0] += u[0] / (double)n;
        sum[1] += (u[1] >= 0.75) / (double)n;
        sum[2] += u[2] / (double)n;
        ck_assert_double_eq(u[4], at);
    }
    ck_assert_double_eq_tol(sum[0], 0.75, 1e-3);
    ck_assert_double_eq_tol(sum[1], 0.5, 1e-3);
    ck_assert_double_eq_tol(sum[2], 0.375, 1e-3);
    double u[6] = {0};
    region_map(one, u); /* one value in a million owns no cell */
    ck_assert_int_eq(param_decode(&s->params[0], u[0]).integer, 777);
}
END_TEST

START_TEST(memory_that_runs_out)
{
    AS_AUTO(space_freep) struct space *s = chain();
    struct region *r = NULL;
    struct as_err err;
    as_status st = AS_E_NOMEM;
    for (size_t nth = 1; st == AS_E_NOMEM; nth++) {
        as_mem_fail_nth(nth);
        st = region_create(s, 4, &r, &err);
        ck_assert_uint_lt(nth, 50);
    }
    as_mem_fail_nth(0);
    ck_ok(st, err);
    region_free(r);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search_region");
    TCase *t = tcase_create("region");
    tcase_add_test(t, mapped_points_are_inside);
    tcase_add_test(t, ancestors_are_held_and_stay_uniform);
    tcase_add_test(t, memory_that_runs_out);
    suite_add_tcase(s, t);
    return s;
}
