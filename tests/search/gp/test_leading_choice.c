/* Values of a choice that declares nothing: which choice leads, how its values are tuned, and whole
 * sweeps where the best value looks worst until its own numbers are right. */
#include "search/gp/leading_choice.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/gp/branch.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"
#define NUMBERS                                                                                    \
    UNIT("a1") UNIT("a2") UNIT("a3") UNIT("a4") UNIT("b1") UNIT("b2") UNIT("b3") UNIT("b4")
static const char three_methods[] =
    "method: {type: categorical, values: [a, b, c]}\n" NUMBERS UNIT("c1") UNIT("c2") UNIT("c3")
        UNIT("c4");
static const char two_methods[] = "method: {type: categorical, values: [a, b]}\n" NUMBERS;
static const char two_choices[] = "method: {type: categorical, values: [a, b]}\n"
                                  "fill: {type: categorical, values: [x, y, z]}\n" NUMBERS;
static const char many_numbers[] =
    "method: {type: categorical, values: [a, b]}\n" NUMBERS UNIT("c1") UNIT("c2") UNIT("c3")
        UNIT("c4") UNIT("d1") UNIT("d2") UNIT("d3") UNIT("d4") UNIT("e1") UNIT("e2") UNIT("e3")
            UNIT("e4") UNIT("f1");
static const char few_numbers[] = "method: {type: categorical, values: [a, b]}\n" UNIT("a1");
static const char conditional[] = "method: {type: categorical, values: [a, b]}\n"
                                  "c: {type: float, min: 0, max: 1, when: {method: a}}\n" NUMBERS;

/* The leading choice of an empty sweep, whose model has these length scales of choices. */
static size_t lead_of(const char *yaml, const double *lengths, size_t n)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(yaml);
    AS_AUTO(sweep_done) struct sweep w;
    JSON_AUTO theta = json_array();
    sweep_init(&w, s, 1, false);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    for (size_t i = 0; i < set->enc->n_numeric; i++)
        ck_assert_int_eq(json_array_append_new(theta, json_real(0)), 0);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(json_array_append_new(theta, json_real(log(lengths[i]))), 0);
    return leading_choice(set, theta);
}

START_TEST(a_choice_leads_that_stands_out)
{
    ck_assert_uint_eq(lead_of(two_methods, (double[]){1}, 1), 0);
    ck_assert_uint_eq(lead_of(two_methods, (double[]){4}, 1), TRAINING_SET_NONE);
    ck_assert_uint_eq(lead_of(two_choices, (double[]){4, 1}, 2), 1);
    ck_assert_uint_eq(lead_of(two_choices, (double[]){1, 4}, 2), 0);
    ck_assert_uint_eq(lead_of(two_choices, (double[]){1, 1.1}, 2), TRAINING_SET_NONE);
    ck_assert_uint_eq(lead_of(many_numbers, (double[]){1}, 1), 0);
    ck_assert_uint_eq(lead_of(few_numbers, (double[]){1}, 1), TRAINING_SET_NONE);
    ck_assert_uint_eq(lead_of(conditional, (double[]){1}, 1), TRAINING_SET_NONE);
    ck_assert_uint_eq(lead_of(two_methods, NULL, 0), TRAINING_SET_NONE); /* no fit yet */
}
END_TEST

/* Length scales: of a1, of the order of layers, of layers and of method as categories. */
START_TEST(the_order_of_a_choice_counts_for_its_distance)
{
    static const char yaml[] = "a1: {type: float, min: 0, max: 1}\n"
                               "layers: {type: categorical, values: [1, 2, 4]}\n"
                               "method: {type: categorical, values: [a, b]}\n";
    AS_AUTO(space_freep) struct space *s = space_of_yaml(yaml);
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    struct as_err err = {0};
    ck_ok(encoding_create(s, &e, &err), err);
    ck_assert_uint_eq(e->n_lengths, 4);
    JSON_AUTO by_order = json_pack("[f,f,f,f]", 0.0, log(0.5), log(50), log(50));
    JSON_AUTO by_category = json_pack("[f,f,f,f]", 0.0, log(50), log(0.5), log(0.5));
    double r = 2 * sqrt(5), expected = 1 - (1 + r + r * r / 3) * exp(-r);
    ck_assert_double_eq_tol(choice_distance(e, 1, by_order), expected, 1e-3);
    ck_assert_double_lt(choice_distance(e, 2, by_order), 1e-3);
    ck_assert_double_eq_tol(choice_distance(e, 1, by_category), expected, 1e-3);
    ck_assert_double_eq_tol(choice_distance(e, 2, by_category), expected, 1e-3);
    ck_assert_double_eq(choice_distance(e, 0, by_category), 0);
    ck_assert_double_eq(choice_distance(e, 1, NULL), 0);
}
END_TEST

static void add(struct sweep *w, unsigned method, double u, double value)
{
    AS_AUTO(config_freep) struct config *c = config_create(w->spec.space);
    c->entries[0].value.choice = method;
    for (size_t i = 1; i < c->n; i++)
        c->entries[i].value.real = fmod(u + 0.13 * (double)i, 1);
    config_settle(w->spec.space, c);
    sweep_add(w, c, value);
}

START_TEST(its_values_are_tuned_while_the_sweep_gains)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two_methods);
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    struct branch b;
    bool found;
    sweep_init(&w, s, 1, false);
    for (int i = 0; i < 20; i++)
        add(&w, 0, 0.03 * i, 5 - 0.2 * i);
    for (int i = 0; i < 4; i++)
        add(&w, 1, 0.1 * i, 9);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    ck_assert(!set->stalled);
    ck_ok(branch_choose(set, 0, &found, &b, &err), err);
    ck_assert(found && b.param == 0 && b.level == 1 && b.is_own);
    ck_assert_uint_eq(b.n_missing, 2 + 8 - 4); /* two, and one for each number */
    for (int i = 0; i < 6; i++)
        add(&w, 1, 0.05 + 0.1 * i, 9);
    AS_AUTO(training_set_freep) struct training_set *after = sweep_training_set(&w);
    ck_ok(branch_choose(after, 0, &found, &b, &err), err);
    ck_assert(!found); /* flat, and far behind */
}
END_TEST

/* Three methods of four numbers each. The better a method, the narrower its funnel: with numbers
 * that are not right, c looks worst, and it is the best. */
static double methods(const struct sweep *w, size_t trial)
{
    static const double base[] = {0.2, 0.12, 0}, height[] = {0.15, 0.35, 0.7},
                        width[] = {0.9, 0.6, 0.5};
    size_t m = (size_t)sweep_number(w, trial, 0);
    double sum = 0;
    for (size_t i = 0; i < 4; i++) {
        double off = sweep_number(w, trial, 1 + 4 * m + i) - (0.25 + 0.15 * (double)i);
        sum += off * off;
    }
    return base[m] + height[m] * (1 - exp(-sqrt(sum) / width[m]));
}

#define TRIALS 100

START_TEST(the_best_value_is_found_though_it_looks_worst)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(three_methods);
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    double best = INFINITY;
    size_t n_own = 0;
    sweep_init(&w, s, (uint64_t)_i, true);
    for (size_t t = 0; t < TRIALS; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        const json_t *branch = json_object_get(w.reason, "branch");
        n_own += json_is_true(json_object_get(branch, "own_model"));
        double v = methods(&w, t);
        sweep_tell(&w, t, v);
        best = fmin(best, v);
    }
    ck_assert_msg(n_own >= 5 && best < 0.12, "seed %d: %zu by own models, best %g", _i, n_own,
                  best);
}
END_TEST

/* The few trials of a value say nothing alone of 21 numbers. */
START_TEST(values_of_large_spaces_have_no_models_of_their_own)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(many_numbers);
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    size_t n_branch = 0;
    sweep_init(&w, s, 3, true);
    for (size_t t = 0; t < 50; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        const json_t *branch = json_object_get(w.reason, "branch");
        n_branch += branch != NULL;
        ck_assert(!json_object_get(branch, "own_model"));
        double off = sweep_number(&w, t, 1) - 0.3, method = sweep_number(&w, t, 0);
        sweep_tell(&w, t, 2 * method + off * off);
    }
    ck_assert_uint_ge(n_branch, 3);
}
END_TEST

START_TEST(a_cache_changes_nothing)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(three_methods);
    AS_AUTO(sweep_done) struct sweep w;
    AS_AUTO(sweep_done) struct sweep cold;
    struct as_err err = {0};
    size_t n_own = 0;
    sweep_init(&w, s, 2, true);
    sweep_init(&cold, s, 2, false);
    for (size_t t = 0; t < 40; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        ck_ok(sweep_ask(&cold, &err), err);
        ck_assert(config_equal(s, w.trials[t].config, cold.trials[t].config));
        ck_assert(json_equal(w.reason, cold.reason) && json_equal(w.state, cold.state));
        const json_t *branch = json_object_get(w.reason, "branch");
        n_own += json_is_true(json_object_get(branch, "own_model"));
        sweep_tell(&w, t, methods(&w, t));
        sweep_tell(&cold, t, methods(&cold, t));
    }
    ck_assert_uint_ge(n_own, 3);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp/leading_choice");
    TCase *t = tcase_create("leading_choice");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_choice_leads_that_stands_out);
    tcase_add_test(t, the_order_of_a_choice_counts_for_its_distance);
    tcase_add_test(t, its_values_are_tuned_while_the_sweep_gains);
    tcase_add_loop_test(t, the_best_value_is_found_though_it_looks_worst, 0, 4);
    tcase_add_test(t, values_of_large_spaces_have_no_models_of_their_own);
    tcase_add_test(t, a_cache_changes_nothing);
    suite_add_tcase(s, t);
    return s;
}
