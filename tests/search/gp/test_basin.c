/* Basins beside that of the best trial. */
#include "search/gp/basin.h"

#include <math.h>

#include "base/json.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define TWO "a: {type: float, min: 0, max: 1}\nb: {type: float, min: 0, max: 1}\n"
#define SEVEN                                                                                      \
    TWO "c: {type: float, min: 0, max: 1}\nd: {type: float, min: 0, max: 1}\n"                     \
        "e: {type: float, min: 0, max: 1}\nf: {type: float, min: 0, max: 1}\n"                     \
        "g: {type: float, min: 0, max: 1}\n"
#define KIND TWO "kind: {type: categorical, values: [p, q]}\n"

static void add(struct sweep *w, double a, double b, double kind, double value)
{
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(w);
    AS_AUTO(config_freep) struct config *c = config_create(w->spec.space);
    double point[3] = {a, b, kind};
    encoding_to_config(set->enc, point, c);
    sweep_add(w, c, value);
}

/* The head that is chosen; SIZE_MAX: none. */
static size_t chosen(const struct sweep *w)
{
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(w);
    size_t head = SIZE_MAX;
    return basin_choose(set, &head) ? head : SIZE_MAX;
}

START_TEST(a_head_has_no_better_trial_near_it)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(TWO);
    AS_AUTO(sweep_done) struct sweep w;
    sweep_init(&w, s, 3, true);
    add(&w, 0.1, 0.1, 0, 1);
    ck_assert_uint_eq(chosen(&w), SIZE_MAX);
    add(&w, 0.2, 0.1, 0, 2); /* near the best */
    ck_assert_uint_eq(chosen(&w), SIZE_MAX);
    add(&w, 0.8, 0.8, 0, 4);
    ck_assert_uint_eq(chosen(&w), 2);
    add(&w, 0.9, 0.7, 0, 3); /* a better one takes over */
    ck_assert_uint_eq(chosen(&w), 3);
    add(&w, 0.35, 0.1, 0, 2.5); /* near trial 1, which is better */
    ck_assert_uint_eq(chosen(&w), 3);
}
END_TEST

/* In two parameters a basin is known by nine trials. */
START_TEST(a_basin_that_is_known_is_left)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(TWO);
    AS_AUTO(sweep_done) struct sweep w;
    sweep_init(&w, s, 3, true);
    add(&w, 0.1, 0.1, 0, 1);
    add(&w, 0.8, 0.8, 0, 2);
    add(&w, 0.8, 0.2, 0, 3);
    for (size_t k = 0; k < 7; k++)
        add(&w, 0.75 + 0.02 * (double)k, 0.75, 0, 10);
    ck_assert_uint_eq(chosen(&w), 1);
    w.trials[w.n - 1].state = OBSERVED_FAILED; /* a failure is a trial there, too */
    add(&w, 0.8, 0.9, 0, 10);
    ck_assert_uint_eq(chosen(&w), 2);
}
END_TEST

START_TEST(a_space_without_continuous_parameters_has_none)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("a: {type: int, min: 0, max: 4}\nb: {type: int, min: 0, max: 4}\n");
    AS_AUTO(sweep_done) struct sweep w;
    sweep_init(&w, s, 3, true);
    add(&w, 0.1, 0.1, 0, 1);
    add(&w, 0.9, 0.9, 0, 2);
    ck_assert_uint_eq(chosen(&w), SIZE_MAX);
}
END_TEST

START_TEST(choices_that_differ_are_not_near)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(KIND);
    AS_AUTO(sweep_done) struct sweep w;
    sweep_init(&w, s, 3, true);
    add(&w, 0.1, 0.1, 0, 1);
    add(&w, 0.1, 0.1, 1, 2);
    ck_assert_uint_eq(chosen(&w), 1);
}
END_TEST

/* Whatever is suggested in the box and better than the head is near the head, and takes over. */
START_TEST(the_box_is_within_what_is_near)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(TWO);
    AS_AUTO(sweep_done) struct sweep w;
    double lower[2], upper[2];
    sweep_init(&w, s, 3, true);
    add(&w, 0.1, 0.1, 0, 1);
    add(&w, 0.95, 0.5, 0, 2);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    basin_box(set, 1, lower, upper);
    ck_assert_double_eq(upper[0], 1);
    ck_assert(lower[0] > 0.75 && lower[1] > 0.3 && upper[1] < 0.7);
    add(&w, lower[0], upper[1], 0, 1.5);
    ck_assert_uint_eq(chosen(&w), 2);
}
END_TEST

/* A broad basin, 0.05 at its best in a corner, and a narrow one that reaches 0. */
static double two_basins(const struct sweep *w, size_t t)
{
    double x[7], rest = 0;
    for (size_t i = 0; i < 7; i++)
        x[i] = sweep_number(w, t, i);
    for (size_t i = 2; i < 7; i++)
        rest += 0.06 * (x[i] - 0.6) * (x[i] - 0.6);
    double broad = 0.05 + 0.25 * ((1 - x[0]) * (1 - x[0]) + x[1] * x[1]);
    double narrow = 7 * ((x[0] - 0.36) * (x[0] - 0.36) + (x[1] - 0.47) * (x[1] - 0.47));
    return fmin(broad, narrow) + rest;
}

/* Suggestions of a sweep in other basins than the best trial's. How often it then finds the better
 * one is for bench/search to say. */
static size_t looks_elsewhere(const struct space *s, uint64_t seed)
{
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    size_t n = 0;
    sweep_init(&w, s, seed, true);
    for (size_t t = 0; t < 90; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        sweep_tell(&w, t, two_basins(&w, t));
        n += json_is_integer(json_object_get(w.reason, "basin"));
    }
    return n;
}

START_TEST(a_sweep_that_crowds_looks_into_other_basins)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SEVEN);
    ck_assert_uint_gt(looks_elsewhere(s, 8) + looks_elsewhere(s, 10), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/basin");
    TCase *t = tcase_create("basin");
    tcase_add_test(t, a_head_has_no_better_trial_near_it);
    tcase_add_test(t, a_basin_that_is_known_is_left);
    tcase_add_test(t, a_space_without_continuous_parameters_has_none);
    tcase_add_test(t, choices_that_differ_are_not_near);
    tcase_add_test(t, the_box_is_within_what_is_near);
    tcase_add_test(t, a_sweep_that_crowds_looks_into_other_basins);
    suite_add_tcase(s, t);
    return s;
}
