/* Priors as methods use them: densities, draws, distances and their slopes; and that the methods
 * which learn nothing draw from them. */
#include "search/prior/prior_dist.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/sampling/grid_method.h"
#include "search/sampling/sampler.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define MIXED                                                                                      \
    "x: {type: float, min: -2, max: 6, prior: {mean: 1, deviation: 1.5}}\n"                        \
    "lr: {type: float, min: 1e-4, max: 1, scale: log, prior: {mean: 0.02, deviation: 1.2}}\n"      \
    "n: {type: int, min: 3, max: 90, prior: {mean: 80, deviation: 12}}\n"                          \
    "w: {type: int, min: 8, max: 1024, scale: log, prior: {mean: 64, deviation: 0.7}}\n"           \
    "s: {type: float, min: 0, max: 1, step: 0.05, prior: {mean: 0.3, deviation: 0.1}}\n"           \
    "c: {type: categorical, values: [a, b, c], prior: {weights: {b: 6, c: 3}}}\n"                  \
    "o: {type: ordinal, values: [1, 2, 4, 8], prior: {weights: {'4': 5}}}\n"                       \
    "t: {type: bool, prior: {weights: {'true': 4}}, when: {c: b}}\n"                               \
    "plain: {type: float, min: 0, max: 1}\n"                                                       \
    "one: {type: int, min: 5, max: 5, prior: {mean: 5, deviation: 1}}\n"

static void open_space(const char *yaml, struct space **s, struct encoding **e)
{
    struct as_err err = {0};
    *s = space_of_yaml(yaml);
    ck_ok(encoding_create(*s, e, &err), err);
}

/* Each density is one over [0, 1], or over the values of a choice. */
START_TEST(densities_sum_to_one)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    open_space(MIXED, &s, &e);
    for (size_t i = 0; i < 8; i++) {
        size_t n = param_is_choice(&s->params[i]) ? s->params[i].n_values : 20000;
        double sum = 0;
        for (size_t k = 0; k < n; k++) {
            double place = param_is_choice(&s->params[i]) ? encoding_place(e, i, k)
                                                          : ((double)k + 0.5) / (double)n;
            sum += exp(prior_dist_density(e, i, place)) / (double)n;
        }
        ck_assert_msg(fabs(sum - 1) < 1e-6, "%s: %g", s->params[i].name, sum);
    }
    ck_assert(prior_dist_density(e, 8, 0.3) == 0 && prior_dist_density(e, 9, 0) == 0);
}
END_TEST

/* The mean of a log parameter is the median, and the deviation that of the natural logarithm. */
START_TEST(draws_are_what_the_document_says)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    open_space(
        "x: {type: float, min: -20, max: 60, prior: {mean: 10, deviation: 2}}\n"
        "lr: {type: float, min: 1e-6, max: 1, scale: log, prior: {mean: 1e-3, deviation: 0.7}}\n"
        "n: {type: int, min: 0, max: 1000, prior: {mean: 300, deviation: 25}}\n"
        "c: {type: categorical, values: [a, b], prior: {weights: {b: 3}}}\n",
        &s, &e);
    const double below = 0.158655253931457; /* of one deviation */
    ck_assert_double_eq_tol(prior_dist_value(&s->params[0], 0.5).real, 10, 1e-9);
    ck_assert_double_eq_tol(prior_dist_value(&s->params[0], below).real, 8, 1e-6);
    ck_assert_double_eq_tol(prior_dist_value(&s->params[1], 0.5).real, 1e-3, 1e-9);
    ck_assert_double_eq_tol(log(prior_dist_value(&s->params[1], 1 - below).real), log(1e-3) + 0.7,
                            1e-6);
    ck_assert_int_eq(prior_dist_value(&s->params[2], below).integer, 275);
    ck_assert_uint_eq(prior_dist_value(&s->params[3], 0.249).choice, 0);
    ck_assert_uint_eq(prior_dist_value(&s->params[3], 0.251).choice, 1);
    ck_assert_double_eq_tol(prior_dist_place(e, 0, 0.5), 30.0 / 80, 1e-9);
    ck_assert_double_eq_tol(prior_dist_mode(e, 1), 0.5, 1e-9);
    ck_assert(prior_dist_mode(e, 3) == 1);
    for (double u = 0; u <= 1; u += 0.25) /* cut at the ends, also where a prior lies at one */
        for (size_t i = 0; i < s->n; i++)
            ck_assert(param_contains(&s->params[i], prior_dist_value(&s->params[i], u)));
}
END_TEST

/* What is very narrow or wide is a point, or flat. */
START_TEST(odd_priors_are_finite)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    open_space("a: {type: float, min: 0, max: 1, prior: {mean: 0.5, deviation: 1e-300}}\n"
               "b: {type: float, min: 0, max: 1e-300, prior: {mean: 0, deviation: 1e300}}\n"
               "c: {type: int, min: 1, max: 4611686018427387904, scale: log,\n"
               "    prior: {mean: 4e18, deviation: 1e-9}}\n"
               "d: {type: float, min: 7, max: 7, prior: {mean: 7, deviation: 1}}\n"
               "e: {type: categorical, values: [x], prior: {weights: {x: 1e6}}}\n"
               "f: {type: float, min: 1, max: 2, step: 0.4, prior: {mean: 2, deviation: 0.01}}\n",
               &s, &e);
    for (double u = 0; u <= 1; u += 0.125)
        for (size_t i = 0; i < s->n; i++) {
            double slope[8], point[8] = {u, u, u, 0, 0, u};
            ck_assert(param_contains(&s->params[i], prior_dist_value(&s->params[i], u)));
            ck_assert(isfinite(prior_dist_place(e, i, u)) && isfinite(prior_dist_density(e, i, u)));
            ck_assert(isfinite(prior_dist_log(e, point, slope)));
            for (size_t j = 0; j < s->n; j++)
                ck_assert(isfinite(slope[j]));
        }
    ck_assert_double_eq_tol(prior_dist_value(&s->params[0], 0.9).real, 0.5, 1e-4);
    ck_assert_double_eq_tol(prior_dist_value(&s->params[1], 0.9).real, 0.9e-300, 1e-303);
    ck_assert_double_eq(prior_dist_value(&s->params[5], 0.5).real, 1.8);
}
END_TEST

/* The distance is zero at the modes, counts active parameters alone, and has the slope it says. */
START_TEST(distances_and_slopes)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    double point[10], slope[10], off[10];
    open_space(MIXED, &s, &e);
    for (size_t i = 0; i < 10; i++)
        point[i] = i == 8 ? 0.7 : prior_dist_mode(e, i);
    ck_assert_double_eq_tol(prior_dist_distance(e, point), 0, 1e-12);
    ck_assert_double_eq_tol(prior_dist_log(e, point, slope), 0, 1e-12);
    point[7] = 0; /* t */
    ck_assert_double_eq_tol(prior_dist_distance(e, point), log(4), 1e-9);
    point[5] = 0; /* c: t is not active */
    ck_assert_double_eq_tol(prior_dist_distance(e, point), log(6), 1e-9);
    point[5] = 1;
    point[0] += 0.1, point[1] -= 0.2, point[2] -= 0.07, point[4] += 0.04;
    double at = prior_dist_log(e, point, slope);
    ck_assert(at < -0.5 && at > -PRIOR_DIST_FLOOR);
    for (size_t i = 0; i < 5; i++) {
        memcpy(off, point, sizeof off);
        off[i] += 1e-6;
        double up = prior_dist_log(e, off, NULL);
        off[i] -= 2e-6;
        double numeric = (up - prior_dist_log(e, off, NULL)) / 2e-6;
        ck_assert_msg(fabs(numeric - slope[i]) < 1e-5 * (1 + fabs(numeric)), "%zu: %g, not %g", i,
                      slope[i], numeric);
    }
    for (size_t i = 5; i < 10; i++)
        ck_assert(slope[i] == 0);
}
END_TEST

/* ---- the methods that learn nothing ---- */

/* How many of the draws from `from` to `to` have x within two deviations of its prior. */
static size_t count_near(const struct space *s, sampler_kind kind, uint64_t from, uint64_t to)
{
    size_t n = 0;
    for (uint64_t t = from; t < to; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        struct as_err err = {0};
        ck_ok(sampler_draw(s, kind, 7, t, &c, NULL, &err), err);
        n += fabs(c->entries[0].value.real - 10) < 2;
    }
    return n;
}

/* 10 of 11 + t draws: half of the first 20, and 7 of the second thousand. By chance 5 in a hundred
 * draws are as near. */
START_TEST(random_draws_fade)
{
    static const sampler_kind kinds[] = {SAMPLER_RANDOM, SAMPLER_SOBOL};
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("x: {type: float, min: -20, max: 60, prior: {mean: 10, "
                                    "deviation: 1}}\ny: {type: float, min: 0, max: 1}\n");
    ck_assert_uint_ge(count_near(s, kinds[_i], 0, 20), 7);
    size_t later = count_near(s, kinds[_i], 1000, 2000);
    ck_assert_msg(later > 30 && later < 90, "%zu", later);
}
END_TEST

/* A prior that lies where nothing is allowed neither narrows the space nor ends the search. */
START_TEST(a_forbidden_prior)
{
    static const sampler_kind kinds[] = {SAMPLER_RANDOM, SAMPLER_SOBOL};
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1, prior: {mean: 0.9, "
                                    "deviation: 0.01}}\n");
    JSON_AUTO rules = json_pack("[s]", "x < 0.5");
    struct as_err err = {0};
    bool narrow = true;
    ck_ok(space_parse_constraints(s, rules, "", &err), err);
    ck_ok(sampler_is_narrow(s, &narrow, &err), err);
    ck_assert(!narrow);
    for (uint64_t t = 0; t < 20; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(sampler_draw(s, kinds[_i], 1, t, &c, NULL, &err), err);
        ck_assert(space_allows(s, c));
    }
}
END_TEST

/* A grid has every cell anyway, and names the parameter. */
START_TEST(a_grid_refuses_priors)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: bool}\nx: {type: int, min: 0, max: 3, prior: {mean: "
                                    "1, deviation: 1}}\n");
    struct search_prepared *prepared = NULL;
    uint64_t total = 0;
    struct as_err err = {0};
    ck_fails(search_prepare(&search_grid, s, "/parameters", &prepared, &total, &err), AS_E_INVAL,
             err, "the method grid tries every cell");
    ck_assert_str_eq(err.pointer, "/parameters/x/prior");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/prior/prior_dist");
    TCase *t = tcase_create("prior_dist");
    tcase_add_test(t, densities_sum_to_one);
    tcase_add_test(t, draws_are_what_the_document_says);
    tcase_add_test(t, odd_priors_are_finite);
    tcase_add_test(t, distances_and_slopes);
    tcase_add_loop_test(t, random_draws_fade, 0, 2);
    tcase_add_loop_test(t, a_forbidden_prior, 0, 2);
    tcase_add_test(t, a_grid_refuses_priors);
    suite_add_tcase(s, t);
    return s;
}
