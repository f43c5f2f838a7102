/* Walks over what constraints allow: uniform where that can be known, never outside, the same for
 * the same key, and a clear end where nothing is allowed. */
#include "search/sampling/feasible.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static struct space *space_with(const char *yaml, const char *constraint)
{
    struct space *s = space_of_yaml(yaml);
    struct as_err err = {0};
    JSON_AUTO list = json_pack("[s]", constraint);
    ck_ok(space_parse_constraints(s, list, "/parameter_constraints", &err), err);
    return s;
}

static struct feasible_walk *started(const struct space *s, uint64_t key, uint64_t stream)
{
    struct feasible_walk *w = NULL;
    struct as_err err = {0};
    ck_ok(feasible_start(s, key, stream, &w, &err), err);
    return w;
}

static const char *const simplex_yaml = "a: {type: float, min: 0, max: 1}\n"
                                        "b: {type: float, min: 0, max: 1}\n"
                                        "c: {type: float, min: 0, max: 1}\n"
                                        "d: {type: float, min: 0, max: 1}\n"
                                        "e: {type: float, min: 0, max: 1}\n"
                                        "f: {type: float, min: 0, max: 1}\n";

/* In a + … + f <= 1 each coordinate is Beta(1, 6): mean 1/7, and so is the slack. Over 2,000
 * starts, which are independent, the mean has the deviation sqrt(6 / (7^2 8)) / sqrt(2000) =
 * 0.0028; 5 of them: 1 in 1.7 million for each of the 7 figures. */
START_TEST(simplex_is_filled_uniformly)
{
    AS_AUTO(space_freep) struct space *s = space_with(simplex_yaml, "a + b + c + d + e + f <= 1");
    double mean[7] = {0};
    const size_t n = 2000;
    for (size_t k = 0; k < n; k++) {
        AS_AUTO(feasible_freep) struct feasible_walk *w = started(s, 5, k);
        const struct config *c = feasible_config(w);
        double slack = 1;
        ck_assert(space_allows(s, c));
        for (size_t i = 0; i < 6; i++) {
            mean[i] += c->entries[i].value.real / (double)n;
            slack -= c->entries[i].value.real;
        }
        mean[6] += slack / (double)n;
    }
    for (size_t i = 0; i < 7; i++)
        ck_assert_msg(fabs(mean[i] - 1.0 / 7) < 5 * 0.0028, "coordinate %zu: %g", i, mean[i]);
}
END_TEST

/* Choices too: under x < k / 4 the share of choice k is k / (1 + 2 + 3) = k / 6. */
START_TEST(choices_have_their_shares)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_with("k: {type: int, min: 0, max: 3}\nx: {type: float, min: 0, max: 1}", "x < k / 4");
    size_t seen[4] = {0};
    for (size_t i = 0; i < 3000; i++) {
        AS_AUTO(feasible_freep) struct feasible_walk *w = started(s, 9, i);
        seen[feasible_config(w)->entries[0].value.integer]++;
    }
    ck_assert_uint_eq(seen[0], 0);
    for (size_t k = 1; k < 4; k++) /* deviation at most 27.4; 5 of them */
        ck_assert_msg(fabs((double)seen[k] - 500.0 * (double)k) < 137, "%zu: %zu", k, seen[k]);
}
END_TEST

/* Every branch and every value that is allowed is reached. */
START_TEST(branches_are_reached)
{
    AS_AUTO(space_freep)
    struct space *s = space_with("opt: {type: categorical, values: [sgd, adam, lion]}\n"
                                 "m: {type: float, min: 0, max: 1, when: {opt: sgd}}\n"
                                 "x: {type: float, min: 0, max: 1}\n"
                                 "y: {type: float, min: 0, max: 1}\n",
                                 "x + y < 0.001 and (opt != 'adam' or x < y)");
    size_t seen[3] = {0};
    for (size_t i = 0; i < 300; i++) {
        AS_AUTO(feasible_freep) struct feasible_walk *w = started(s, 1, i);
        seen[feasible_config(w)->entries[0].value.choice]++;
    }
    for (size_t k = 0; k < 3; k++)
        ck_assert_uint_gt(seen[k], 20);
}
END_TEST

START_TEST(same_key_same_walk)
{
    AS_AUTO(space_freep) struct space *s = space_with(simplex_yaml, "a + b + c + d + e + f <= 0.2");
    AS_AUTO(feasible_freep) struct feasible_walk *a = started(s, 3, 4);
    AS_AUTO(feasible_freep) struct feasible_walk *b = started(s, 3, 4);
    AS_AUTO(feasible_freep) struct feasible_walk *other = started(s, 3, 5);
    feasible_move(a, 3);
    feasible_move(b, 3);
    ck_assert_mem_eq(feasible_unit(a), feasible_unit(b), s->n * sizeof(double));
    ck_assert(memcmp(feasible_unit(a), feasible_unit(other), s->n * sizeof(double)) != 0);
}
END_TEST

/* A nudge stays allowed and near. */
START_TEST(nudges_are_short)
{
    AS_AUTO(space_freep) struct space *s = space_with(simplex_yaml, "a + b + c + d + e + f <= 0.2");
    AS_AUTO(feasible_freep) struct feasible_walk *from = started(s, 3, 4);
    struct as_err err = {0};
    size_t moved = 0;
    for (uint64_t k = 0; k < 100; k++) {
        AS_AUTO(feasible_freep) struct feasible_walk *w = NULL;
        double distance = 0;
        ck_ok(feasible_stand(s, feasible_unit(from), 3, k, &w, &err), err);
        feasible_nudge(w, 0.01);
        ck_assert(space_allows(s, feasible_config(w)));
        for (size_t i = 0; i < s->n; i++)
            distance = fmax(distance, fabs(feasible_unit(w)[i] - feasible_unit(from)[i]));
        ck_assert(distance <= 0.01 * 6); /* normal numbers: 6 deviations */
        moved += distance > 0;
    }
    ck_assert_uint_gt(moved, 80); /* two of six parameters may be one and the same, or a choice */
}
END_TEST

START_TEST(nothing_is_allowed)
{
    AS_AUTO(space_freep) struct space *s = space_with(simplex_yaml, "a + b > 2.5 and c < d");
    struct feasible_walk *w = NULL;
    struct as_err err = {0};
    ck_fails(feasible_start(s, 1, 1, &w, &err), AS_E_NOT_FOUND, err, "no configuration");
    ck_assert_ptr_null(w);
}
END_TEST

/* The excess is 0 exactly for what is allowed, in random spaces. */
START_TEST(excess_agrees_with_the_rules)
{
    size_t allowed = 0, refused = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        AS_AUTO(config_freep) struct config *c = config_create(s);
        struct rng r;
        space_constrain_at_random(s, seed);
        rng_init(&r, seed, 0);
        for (int k = 0; k < 20; k++) {
            for (size_t i = 0; i < s->n; i++)
                c->entries[i].value = param_decode(&s->params[i], rng_uniform(&r));
            config_settle(s, c);
            double excess = space_excess(s, c);
            ck_assert(isfinite(excess) && excess >= 0);
            ck_assert_int_eq(excess == 0, space_allows(s, c));
            allowed += excess == 0;
            refused += excess > 0;
        }
    }
    ck_assert(allowed > 500 && refused > 500);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/sampling/feasible");
    TCase *t = tcase_create("feasible");
    tcase_add_test(t, simplex_is_filled_uniformly);
    tcase_add_test(t, choices_have_their_shares);
    tcase_add_test(t, branches_are_reached);
    tcase_add_test(t, same_key_same_walk);
    tcase_add_test(t, nudges_are_short);
    tcase_add_test(t, nothing_is_allowed);
    tcase_add_test(t, excess_agrees_with_the_rules);
    suite_add_tcase(s, t);
    return s;
}
