/* Moves of the few trials that have succeeded, while nearly all fail. */
#include "search/gp/nearby.h"

#include <math.h>

#include "base/json.h"
#include "search/gp/acquisition_schedule.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define SIX                                                                                        \
    "a: {type: float, min: 0, max: 1}\nb: {type: float, min: 0, max: 1}\n"                         \
    "c: {type: float, min: 0, max: 1}\nd: {type: float, min: 0, max: 1}\n"                         \
    "e: {type: float, min: 0, max: 1}\nf: {type: float, min: 0, max: 1}\n"
#define MIXED                                                                                      \
    "kind: {type: categorical, values: [p, q, r]}\nn: {type: int, min: 0, max: 30}\n"              \
    "x: {type: float, min: 0, max: 1}\n"

/* Ask for n trials, of which the first `good` succeed and the others fail. */
static void run(struct sweep *w, size_t n, size_t good)
{
    struct as_err err = {0};
    for (size_t t = 0; t < n; t++) {
        ck_ok(sweep_ask(w, &err), err);
        if (t < good)
            sweep_tell(w, t, 1 + (double)t);
        else
            w->trials[t].state = OBSERVED_FAILED;
    }
}

static bool is_needed(size_t n, size_t good)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SIX);
    AS_AUTO(sweep_done) struct sweep w;
    sweep_init(&w, s, 3, true);
    run(&w, n, good);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    ck_assert_int_eq((schedule_facts(set) & FACT_FEW_SUCCEED) != 0, nearby_is_needed(set));
    return nearby_is_needed(set);
}

START_TEST(only_a_few_successes_beside_many_failures_need_it)
{
    ck_assert(!is_needed(12, 0));
    ck_assert(!is_needed(9, 1));
    ck_assert(is_needed(10, 1));
    ck_assert(!is_needed(19, 2));
    ck_assert(is_needed(20, 2));
    ck_assert(!is_needed(50, 5)); /* enough for the models */
}
END_TEST

/* The farthest that one of 200 moves goes in a number. */
static double farthest(const struct training_set *set, size_t from)
{
    double most = 0, point[6];
    for (uint64_t k = 0; k < 200; k++) {
        ck_assert(nearby_point(set, k, point));
        for (size_t i = 0; i < set->enc->n; i++)
            most = fmax(most, fabs(point[i] - training_set_point(set, from)[i]));
    }
    return most;
}

/* The first trial, at the centre, succeeds. */
START_TEST(failures_in_the_neighbourhood_shorten_the_moves)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SIX);
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    AS_AUTO(config_freep) struct config *c = config_create(s);
    sweep_init(&w, s, 3, true);
    run(&w, 1, 1);
    AS_AUTO(training_set_freep) struct training_set *before = sweep_training_set(&w);
    ck_assert(fabs(farthest(before, 0) - 0.25) < 0.01);
    for (size_t k = 0; k < 4; k++) {
        double point[6] = {0.5 + 0.04 * (double)(k + 1), 0.5, 0.5, 0.5, 0.5, 0.5};
        encoding_to_config(before->enc, point, c);
        sweep_add(&w, c, 0);
        w.trials[w.n - 1].state = OBSERVED_FAILED;
    }
    AS_AUTO(training_set_freep) struct training_set *after = sweep_training_set(&w);
    ck_assert(fabs(farthest(after, 0) - 0.25 * pow(0.8, 4)) < 0.01);
    ck_ok(sweep_ask(&w, &err), err);
}
END_TEST

START_TEST(moves_are_new_configurations_of_the_space)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(MIXED);
    AS_AUTO(sweep_done) struct sweep w;
    size_t n_nearby = 0;
    struct as_err err = {0};
    sweep_init(&w, s, 3, true);
    run(&w, 20, 2);
    for (size_t k = 0; k < 12; k++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, w.n - 1);
        w.trials[w.n - 1].state = OBSERVED_FAILED;
        n_nearby += as_streq(json_string_value(json_object_get(w.reason, "acquisition")), "nearby");
    }
    ck_assert_uint_eq(n_nearby, 6);
}
END_TEST

static size_t nearby_of(struct sweep *w, size_t n)
{
    struct as_err err = {0};
    size_t n_nearby = 0;
    for (size_t k = 0; k < n; k++) { /* they stay pending */
        ck_ok(sweep_ask(w, &err), err);
        n_nearby +=
            as_streq(json_string_value(json_object_get(w->reason, "acquisition")), "nearby");
    }
    return n_nearby;
}

/* One success among 12 trials: every second suggestion is a move while fewer than four are pending,
 * and then each. With two successes it is every second one, and so it is where a dozen trials have
 * failed around the only success. */
START_TEST(with_many_pending_all_stay_near_the_only_success)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SIX);
    AS_AUTO(sweep_done) struct sweep one, two, around;
    AS_AUTO(config_freep) struct config *c = config_create(s);
    sweep_init(&one, s, 3, true);
    run(&one, 12, 1);
    ck_assert_uint_eq(nearby_of(&one, 4), 2);
    ck_assert_uint_eq(nearby_of(&one, 8), 8);
    sweep_init(&two, s, 3, true);
    run(&two, 20, 2);
    ck_assert_uint_eq(nearby_of(&two, 4), 2);
    ck_assert_uint_eq(nearby_of(&two, 8), 4);
    sweep_init(&around, s, 3, true);
    run(&around, 12, 1);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&around);
    for (size_t k = 0; k < 12; k++) {
        double point[6] = {0.5 + 0.02 * (double)(k + 1), 0.5, 0.5, 0.5, 0.5, 0.5};
        encoding_to_config(set->enc, point, c);
        sweep_add(&around, c, 0);
        around.trials[around.n - 1].state = OBSERVED_FAILED;
    }
    ck_assert_uint_eq(nearby_of(&around, 4), 2);
    ck_assert_uint_eq(nearby_of(&around, 8), 4);
}
END_TEST

/* Only a box succeeds: 1.2% of the space, in three of its parameters. */
static bool succeeds(const struct sweep *w, size_t trial)
{
    static const double centre[3] = {0.429741, 0.526504, 0.294258};
    for (size_t i = 0; i < 3; i++)
        if (fabs(sweep_number(w, trial, i) - centre[i]) > 0.1145)
            return false;
    return true;
}

static size_t successes(const struct space *s, uint64_t seed, size_t trials)
{
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    size_t n = 0;
    sweep_init(&w, s, seed, true);
    for (size_t t = 0; t < trials; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        if (succeeds(&w, t))
            sweep_tell(&w, t, sweep_bowl(&w, t));
        else
            w.trials[t].state = OBSERVED_FAILED;
        n += succeeds(&w, t);
    }
    return n;
}

/* The designs of these seeds have one success, trial 24 and trial 1. Without moves near it there
 * was one success, and two, in 60 trials. */
START_TEST(one_success_leads_to_more)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(SIX);
    size_t first = successes(s, 0, 60), second = successes(s, 5, 60);
    ck_assert_msg(first >= 10, "%zu", first);
    ck_assert_msg(second >= 10, "%zu", second);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/nearby");
    TCase *t = tcase_create("nearby");
    tcase_add_test(t, only_a_few_successes_beside_many_failures_need_it);
    tcase_add_test(t, failures_in_the_neighbourhood_shorten_the_moves);
    tcase_add_test(t, moves_are_new_configurations_of_the_space);
    tcase_add_test(t, with_many_pending_all_stay_near_the_only_success);
    tcase_add_test(t, one_success_leads_to_more);
    suite_add_tcase(s, t);
    return s;
}
