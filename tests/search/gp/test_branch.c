/* Branches and penalty: which branch deserves a trial, when it is left and visited again, what a
 * crossing holds, and how much failures count.
 * Then whole sweeps on spaces with a branch that looks bad until it is tuned, and with a region of
 * failures beside the best values. */
#include "search/gp/branch.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "search/gp/failure_penalty.h"
#include "search/gp/crossing.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static const char two_methods[] = "method: {type: categorical, values: [easy, deep]}\n"
                                  "a: {type: float, min: 0, max: 1, when: {method: easy}}\n"
                                  "b: {type: float, min: 0, max: 1, when: {method: deep}}\n";

static void add(struct sweep *w, const struct space *s, unsigned method, double u, double value)
{
    AS_AUTO(config_freep) struct config *c = config_create(s);
    c->entries[0].value.choice = method;
    c->entries[1 + method].value.real = u;
    config_settle(s, c);
    sweep_add(w, c, value);
}

static bool chosen(struct sweep *w, struct branch *ret)
{
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    struct as_err err = {0};
    const struct history h = {w->trials, w->n};
    bool found = false;
    ck_ok(training_set_create(&w->spec, &h, NULL, &set, &err), err);
    ck_ok(branch_choose(set, TRAINING_SET_NONE, &found, ret, &err), err);
    return found;
}

START_TEST(each_branch_gets_its_first_trials)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two_methods);
    AS_AUTO(sweep_done) struct sweep w;
    struct branch b;
    sweep_init(&w, s, 1, false);
    for (int i = 0; i < 4; i++)
        add(&w, s, 0, 0.2 * i, 1 - 0.1 * i);
    ck_assert(chosen(&w, &b));
    ck_assert(b.param == 0 && b.level == 1 && b.n_ended == 0 && b.n_missing >= 2);
    ck_assert_uint_eq(b.best, TRAINING_SET_NONE);
    for (int i = 0; i < 4; i++)
        add(&w, s, 1, 0.2 * i, 9);
    ck_assert(chosen(&w, &b));
    ck_assert_uint_eq(b.n_missing, 1); /* two, and three for b */
    add(&w, s, 1, 0.9, 9);
    ck_assert(!chosen(&w, &b)); /* flat and far behind */
}
END_TEST

START_TEST(a_branch_that_rises_stays)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two_methods);
    AS_AUTO(sweep_done) struct sweep w;
    struct branch b;
    sweep_init(&w, s, 1, false);
    for (int i = 0; i < 6; i++)
        add(&w, s, 0, 0.1 * i, 1);
    for (int i = 0; i < 6; i++)
        add(&w, s, 1, 0.1 * i, 5 - 0.5 * i);
    ck_assert(chosen(&w, &b));
    ck_assert(b.param == 0 && b.level == 1 && b.n_missing == 0);
    ck_assert_double_le(b.optimistic, 2.5 - 0.5 * 12);
    ck_assert_uint_eq(b.best, 11);
    for (int i = 0; i < 12; i++)
        add(&w, s, 1, 0.05 * i, 2.5); /* it rises no more */
    ck_assert(!chosen(&w, &b));
}
END_TEST

START_TEST(a_branch_that_was_left_is_visited_again)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two_methods);
    AS_AUTO(sweep_done) struct sweep w;
    struct branch b;
    sweep_init(&w, s, 1, false);
    for (int i = 0; i < 5; i++)
        add(&w, s, 1, 0.2 * i, 9);
    for (int i = 0; i < 2; i++)
        add(&w, s, 0, 0.3 * i, 1);
    ck_assert(!chosen(&w, &b)); /* `easy` holds the best trial, and `deep` is left */
    add(&w, s, 0, 0.9, 1);
    ck_assert(chosen(&w, &b)); /* the last trial of five, and eight now */
    ck_assert(b.param == 0 && b.level == 1 && b.is_revisit && b.n_missing == 0);
    add(&w, s, 1, 0.9, 9);
    ck_assert(!chosen(&w, &b));
}
END_TEST

/* ---- crossings ---- */

static const char shared[] = "method: {type: categorical, values: [easy, deep, wide]}\n"
                             "lr: {type: float, min: 0, max: 1}\n"
                             "act: {type: categorical, values: [p, q, r]}\n"
                             "a: {type: float, min: 0, max: 1, when: {method: deep}}\n"
                             "u: {type: float, min: 0, max: 1, when: {method: wide}}\n"
                             "v: {type: float, min: 0, max: 1, when: {method: wide}}\n"
                             "w: {type: float, min: 0, max: 1, when: {method: wide}}\n";

static void add_shared(struct sweep *w, const struct space *s, unsigned method, double lr,
                       double own, double value)
{
    AS_AUTO(config_freep) struct config *c = config_create(s);
    c->entries[0].value.choice = method;
    c->entries[1].value.real = lr;
    c->entries[2].value.choice = method == 0 ? 2 : 1;
    for (size_t i = 3; i < s->n; i++)
        c->entries[i].value.real = own;
    config_settle(s, c);
    sweep_add(w, c, value);
}

/* The crossing into a value of `method`; its place is in point. */
static bool crossed(struct sweep *w, struct branch *b, bool as_its_best, double *point)
{
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    struct as_err err = {0};
    const struct history h = {w->trials, w->n};
    ck_ok(training_set_create(&w->spec, &h, NULL, &set, &err), err);
    return crossing_point(set, b, 7, as_its_best, point);
}

START_TEST(a_crossing_is_the_best_trial_in_the_branch)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(shared);
    AS_AUTO(sweep_done) struct sweep w;
    struct branch deep = {.param = 0, .level = 1, .best = 2}, wide = {.param = 0, .level = 2};
    double point[7];
    sweep_init(&w, s, 1, false);
    add_shared(&w, s, 0, 0.25, 0, 1);
    add_shared(&w, s, 1, 0.75, 0.1, 6);
    add_shared(&w, s, 1, 0.5, 0.2, 5);
    wide.best = TRAINING_SET_NONE;
    ck_assert(!crossed(&w, &wide, true, point)); /* nothing is known of it */
    add_shared(&w, s, 2, 0.5, 0.4, 7);
    wide.best = 3;
    ck_assert(crossed(&w, &deep, true, point));
    ck_assert(point[0] == 1 && point[1] == 0.25 && point[2] == 2); /* from the best trial */
    ck_assert_double_eq(point[3], 0.2);                            /* from the branch's */
    ck_assert(crossed(&w, &deep, false, point));
    ck_assert(point[0] == 1 && point[1] == 0.25 && point[2] == 2);
    ck_assert_double_gt(point[3], 0.8);           /* far from 0.1 and 0.2 */
    ck_assert(!crossed(&w, &wide, false, point)); /* the model leads in three dimensions */
    wide.is_revisit = true;
    ck_assert(crossed(&w, &wide, true, point));
    ck_assert(point[0] == 2 && point[1] == 0.25 && point[4] == 0.4);
}
END_TEST

START_TEST(a_crossing_that_was_tried_is_not_repeated)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(shared);
    AS_AUTO(sweep_done) struct sweep w;
    struct branch deep = {.param = 0, .level = 1, .best = 1};
    double point[7];
    sweep_init(&w, s, 1, false);
    add_shared(&w, s, 0, 0.25, 0, 1);
    add_shared(&w, s, 1, 0.75, 0.1, 6);
    ck_assert(crossed(&w, &deep, true, point));
    {
        AS_AUTO(config_freep) struct config *c = config_create(s);
        c->entries[0].value.choice = 1;
        c->entries[1].value.real = 0.25;
        c->entries[2].value.choice = 2;
        c->entries[3].value.real = 0.1;
        config_settle(s, c);
        sweep_add(&w, c, 8);
    }
    ck_assert(crossed(&w, &deep, true, point));
    ck_assert_double_gt(point[3], 0.7);
}
END_TEST

START_TEST(a_branch_that_always_fails_is_left)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two_methods);
    AS_AUTO(sweep_done) struct sweep w;
    struct branch b;
    sweep_init(&w, s, 1, false);
    add(&w, s, 0, 0.5, 1);
    for (int i = 0; i < 5; i++)
        add(&w, s, 1, 0.1 * i, NAN);
    ck_assert(!chosen(&w, &b) || b.level == 0);
}
END_TEST

START_TEST(a_branch_holds_its_points)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("m: {type: categorical, values: [x, y]}\n"
                                    "c: {type: categorical, values: [p, q], when: {m: y}}\n");
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    struct as_err err = {0};
    ck_ok(encoding_create(s, &e, &err), err);
    const struct branch inner = {.param = 1, .level = 1};
    ck_assert(branch_holds(e, &inner, (double[]){1, 1}));
    ck_assert(!branch_holds(e, &inner, (double[]){1, 0}));
    ck_assert(!branch_holds(e, &inner, (double[]){0, 1})); /* c is not active */
    ck_assert(branch_holds(e, NULL, (double[]){0, 1}));
}
END_TEST

/* Where nothing is declared, a value that was seen untuned is looked at when the sweep stalls. */
START_TEST(undeclared_values_are_tuned_while_a_sweep_stalls)
{
    static const char flat[] = "method: {type: categorical, values: [easy, deep]}\n"
                               "a: {type: float, min: 0, max: 1}\n"
                               "b: {type: float, min: 0, max: 1%s}\n"
                               "c: {type: float, min: 0, max: 1}\n";
    for (int declared = 0; declared < 2; declared++) {
        char text[384];
        struct branch b;
        (void)snprintf(text, sizeof text, flat, declared ? ", when: {a: {min: 0.5}}" : "");
        AS_AUTO(space_freep) struct space *s = space_of_yaml(text);
        AS_AUTO(sweep_done) struct sweep w;
        sweep_init(&w, s, 1, false);
        for (int i = 0; i < 20; i++)
            add(&w, s, i % 5 == 4, 0.05 * i, i % 5 == 4 ? 8 - 0.2 * i : 5 - 0.1 * i);
        ck_assert(!chosen(&w, &b)); /* it improves */
        for (int i = 0; i < 9; i++)
            add(&w, s, 0, 0.1 * i, 3.1);
        ck_assert_msg(chosen(&w, &b) == !declared, "declared %d", declared);
        ck_assert(declared || (b.param == 0 && b.level == 1));
        ck_assert(declared || b.n_missing == 1); /* of 2, and one for each number, it has 4 */
    }
}
END_TEST

/* ---- penalty ---- */

/* 60 random trials of the unit square; those fail that `fails` says. noise: that the model of
 * failures found. */
static struct failure_penalty penalty_for(bool (*fails)(double x, double y, struct rng *r),
                                          double noise)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, "
                                    "max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w;
    AS_AUTO(training_set_freep) struct training_set *set = NULL;
    struct as_err err = {0};
    struct rng r;
    rng_init(&r, 7, 0);
    sweep_init(&w, s, 1, false);
    for (int i = 0; i < 60; i++) {
        AS_AUTO(config_freep) struct config *c = config_create(s);
        double x = c->entries[0].value.real = rng_uniform(&r);
        double y = c->entries[1].value.real = rng_uniform(&r);
        config_settle(s, c);
        sweep_add(&w, c, fails(x, y, &r) ? NAN : x);
    }
    const struct history h = {w.trials, w.n};
    ck_ok(training_set_create(&w.spec, &h, NULL, &set, &err), err);
    return failure_penalty_of(set, (double[]){0, 0, 0, log(noise)});
}

static bool on_one_side(double x, double y, struct rng *r)
{
    (void)r;
    return x + y > 1.2;
}

static bool anywhere(double x, double y, struct rng *r)
{
    (void)x;
    (void)y;
    return rng_uniform(r) < 0.3;
}

static bool nowhere(double x, double y, struct rng *r)
{
    (void)x;
    (void)y;
    (void)r;
    return false;
}

START_TEST(penalty_grows_where_failures_have_a_place)
{
    struct failure_penalty region = penalty_for(on_one_side, 0.95),
                           random = penalty_for(anywhere, 0.95);
    ck_assert_double_gt(region.weight, 10);
    ck_assert_double_lt(region.threshold, 0.3);
    ck_assert_double_lt(random.weight, 3);
    ck_assert_double_eq(penalty_for(nowhere, 0.95).weight, 1);
    ck_assert_double_eq(penalty_for(nowhere, 0.95).threshold, 0.5);
}
END_TEST

/* Where trials gather at a border, the neighbours of each are of both kinds and predict nothing. */
START_TEST(penalty_grows_where_the_model_of_failures_has_little_noise)
{
    struct failure_penalty known = penalty_for(anywhere, 0.3), random = penalty_for(anywhere, 0.95);
    ck_assert_double_gt(known.weight, 10);
    ck_assert_double_lt(known.threshold, 0.3);
    ck_assert_double_gt(known.weight, 5 * random.weight);
    ck_assert_double_eq(penalty_for(nowhere, 0.3).weight, 1);
}
END_TEST

/* ---- whole sweeps ---- */

/* Two methods with three parameters each. Random configurations of `deep` are worse than
 * those of `easy`; its best is better. */
static double funnels(const struct sweep *w, size_t t)
{
    bool deep = sweep_number(w, t, 0) > 0.5;
    double sum = 0;
    for (size_t i = 0; i < 3; i++) {
        double off = sweep_number(w, t, (deep ? 4 : 1) + i) - (deep ? 0.3 : 0.6);
        sum += off * off;
    }
    return deep ? 0.9 * (1 - exp(-sqrt(sum) / 0.4)) : 0.3 + 0.1 * sqrt(sum);
}

START_TEST(finds_the_branch_that_looks_bad_untuned)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("method: {type: categorical, values: [easy, deep]}\n"
                                    "a1: {type: float, min: 0, max: 1, when: {method: easy}}\n"
                                    "a2: {type: float, min: 0, max: 1, when: {method: easy}}\n"
                                    "a3: {type: float, min: 0, max: 1, when: {method: easy}}\n"
                                    "b1: {type: float, min: 0, max: 1, when: {method: deep}}\n"
                                    "b2: {type: float, min: 0, max: 1, when: {method: deep}}\n"
                                    "b3: {type: float, min: 0, max: 1, when: {method: deep}}\n");
    for (uint64_t seed = 0; seed < 4; seed++) {
        AS_AUTO(sweep_done) struct sweep w;
        struct as_err err = {0};
        double best = INFINITY;
        size_t inside = 0;
        sweep_init(&w, s, seed, true);
        for (size_t t = 0; t < 60; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            const json_t *branch = json_object_get(w.reason, "branch");
            if (branch) {
                ck_assert_str_eq(json_string_value(json_object_get(branch, "parameter")), "method");
                inside++;
            }
            double value = funnels(&w, t);
            sweep_tell(&w, t, value);
            best = fmin(best, value);
        }
        ck_assert_uint_gt(inside, 3);
        ck_assert_msg(best < 0.2, "seed %d: %g", (int)seed, best);
    }
}
END_TEST

START_TEST(a_region_of_failures_costs_few_trials)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1}\n"
                                    "y: {type: float, min: 0, max: 1}\n"
                                    "z: {type: float, min: 0, max: 1}\n"
                                    "k: {type: categorical, values: [a, b, c]}\n");
    for (uint64_t seed = 0; seed < 3; seed++) {
        AS_AUTO(sweep_done) struct sweep w;
        struct as_err err = {0};
        size_t failed = 0, after = 0;
        sweep_init(&w, s, seed, true);
        for (size_t t = 0; t < 80; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            double x = sweep_number(&w, t, 0), y = sweep_number(&w, t, 1);
            bool fails = x + y > 1.1;
            after += fails && failed >= 10;
            failed += fails;
            double z = sweep_number(&w, t, 2) - 0.4;
            sweep_tell(&w, t,
                       fails ? NAN : 2 - x - y + z * z + 0.1 * (sweep_number(&w, t, 3) > 0.5));
        }
        ck_assert_msg(after <= 14, "seed %d: %zu of %zu failures", (int)seed, after, failed);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp/branch");
    TCase *t = tcase_create("branch");
    tcase_add_test(t, each_branch_gets_its_first_trials);
    tcase_add_test(t, a_branch_that_rises_stays);
    tcase_add_test(t, undeclared_values_are_tuned_while_a_sweep_stalls);
    tcase_add_test(t, a_branch_that_was_left_is_visited_again);
    tcase_add_test(t, a_crossing_is_the_best_trial_in_the_branch);
    tcase_add_test(t, a_crossing_that_was_tried_is_not_repeated);
    tcase_add_test(t, a_branch_that_always_fails_is_left);
    tcase_add_test(t, a_branch_holds_its_points);
    tcase_add_test(t, penalty_grows_where_failures_have_a_place);
    tcase_add_test(t, penalty_grows_where_the_model_of_failures_has_little_noise);
    tcase_add_test(t, finds_the_branch_that_looks_bad_untuned);
    tcase_add_test(t, a_region_of_failures_costs_few_trials);
    suite_add_tcase(s, t);
    return s;
}
