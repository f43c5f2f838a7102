/* Suggestions that change few numbers of a large space: which ones are drawn, where, and whole
 * sweeps where three of 27 numbers matter. */
#include "search/gp/free_numbers.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"
#define NINE(letter)                                                                               \
    UNIT(letter "1")                                                                               \
    UNIT(letter "2")                                                                               \
    UNIT(letter "3")                                                                               \
    UNIT(letter "4")                                                                               \
    UNIT(letter "5") UNIT(letter "6") UNIT(letter "7") UNIT(letter "8") UNIT(letter "9")
#define KIND "kind: {type: categorical, values: [a, b, c, d]}\n"
static const char large[] = KIND NINE("f") NINE("g") NINE("h");
static const char small[] = KIND NINE("f") NINE("g");
static const char of_numbers[] = NINE("f") NINE("g") NINE("h");
static const char conditional[] =
    KIND NINE("f") NINE("g") NINE("h") "j: {type: float, min: 0, max: 1, when: {kind: a}}\n";

#define NUMBERS 27
#define DRAWS 1000
#define SHORT 11 /* a parameter; numbers begin with parameter 1 */

/* How often parameter i is free in DRAWS suggestions of an empty sweep; returns how many of them
 * leave some numbers free alone. */
static unsigned count_draws(const char *yaml, const json_t *theta, bool in_branch, unsigned *of)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(yaml);
    AS_AUTO(sweep_done) struct sweep w;
    unsigned n = 0;
    sweep_init(&w, s, 7, false);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    memset(of, 0, SPACE_MAX_PARAMS * sizeof *of);
    for (uint64_t t = 0; t < DRAWS; t++) {
        struct free_numbers f = free_numbers_draw(set, theta, t, in_branch);
        n += f.n > 0;
        for (size_t i = 0; i < f.n; i++) {
            of[f.params[i]]++;
            for (size_t j = 0; j < i; j++)
                ck_assert_uint_ne(f.params[i], f.params[j]);
        }
    }
    return n;
}

/* Of a share p of DRAWS, five deviations off are chance in one of 1.7 million. */
static void check_share(unsigned n, unsigned of, double p)
{
    double sd = sqrt((double)of * p * (1 - p));
    ck_assert_msg(fabs(n - of * p) <= 5 * sd + 1, "%u of %u, not %g", n, of, p);
}

START_TEST(half_of_the_suggestions_of_a_large_flat_space_have_three)
{
    unsigned of[SPACE_MAX_PARAMS];
    unsigned n = count_draws(large, NULL, false, of);
    check_share(n, DRAWS, 0.5);
    ck_assert_uint_eq(of[0], 0); /* the choice */
    for (size_t i = 1; i <= NUMBERS; i++)
        check_share(of[i], n, (double)FREE_NUMBERS / NUMBERS); /* no fit yet: all alike */
    ck_assert_uint_eq(count_draws(small, NULL, false, of), 0);
    ck_assert_uint_eq(count_draws(of_numbers, NULL, false, of), 0);
    ck_assert_uint_eq(count_draws(conditional, NULL, false, of), 0);
}
END_TEST

START_TEST(short_length_scales_are_drawn_more_often)
{
    unsigned of[SPACE_MAX_PARAMS];
    JSON_AUTO theta = json_array();
    for (size_t i = 1; i <= NUMBERS; i++)
        ck_assert_int_eq(json_array_append_new(theta, json_real(i == SHORT ? 0 : log(10))), 0);
    unsigned n = count_draws(large, theta, false, of), other = of[SHORT + 1];
    ck_assert_uint_ge(of[SHORT], n * 9 / 10); /* weights 1 and 26 of 0.01: 0.98 */
    ck_assert_uint_gt(other, n / 40);         /* 2 of the other 26: 0.08 */
    n = count_draws(large, theta, true, of);
    ck_assert_uint_le(of[SHORT], n * 8 / 10); /* 1 and 26 of 0.1: 0.64 */
    ck_assert_uint_ge(of[SHORT], n / 2);
}
END_TEST

START_TEST(the_box_holds_all_other_numbers)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(large);
    AS_AUTO(sweep_done) struct sweep w;
    AS_AUTO(config_freep) struct config *c = config_create(s);
    double lower[NUMBERS + 1], upper[NUMBERS + 1];
    struct free_numbers f = {FREE_NUMBERS, {2, 5, 27}};
    sweep_init(&w, s, 1, false);
    for (size_t i = 1; i <= NUMBERS; i++)
        c->entries[i].value.real = 0.03 * (double)i;
    config_settle(s, c);
    sweep_add(&w, c, 1);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    free_numbers_box(&f, set, 0, lower, upper);
    for (size_t i = 1; i <= NUMBERS; i++) {
        bool is_free = i == 2 || i == 5 || i == 27;
        ck_assert_double_eq_tol(lower[i], is_free ? 0 : 0.03 * (double)i, 1e-12);
        ck_assert_double_eq_tol(upper[i], is_free ? 1 : 0.03 * (double)i, 1e-12);
    }
}
END_TEST

/* Three numbers matter, and their best places depend on the choice. The best value of the choice
 * looks worst until they are right. */
static double crowd(const struct sweep *w, size_t trial)
{
    static const double base[] = {0.14, 0.2, 0.3, 0}, depth[] = {0.3, 0.25, 0.2, 0.8};
    static const size_t matter[] = {4, 13, 22};
    size_t v = (size_t)sweep_number(w, trial, 0);
    double sum = 0, rest = 0;
    for (size_t i = 1; i <= NUMBERS; i++) {
        double off = sweep_number(w, trial, i) - 0.5;
        rest += 0.004 * off * off;
    }
    for (size_t i = 0; i < 3; i++) {
        double place = v == 3 ? (i == 1 ? 0.1 : 0.88) : 0.4 + 0.05 * (double)v;
        double off = sweep_number(w, trial, matter[i]) - place;
        sum += off * off;
    }
    return base[v] + depth[v] * (1 - exp(-3 * sum)) + rest;
}

/* Does the trial differ from trial `from` in numbers that were not free? */
static void check_kept(const struct sweep *w, size_t trial, size_t from)
{
    const json_t *free_ones = json_object_get(w->reason, "free");
    for (size_t i = 1; i <= NUMBERS; i++) {
        bool is_free = false;
        for (size_t k = 0; k < json_array_size(free_ones); k++)
            is_free |= strcmp(json_string_value(json_array_get(free_ones, k)),
                              w->spec.space->params[i].name) == 0;
        ck_assert(is_free || sweep_number(w, trial, i) == sweep_number(w, from, i));
    }
}

#define TRIALS 100
#define SWEEPS 5

static double run_sweep(uint64_t seed, size_t *n_free)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(large);
    AS_AUTO(sweep_done) struct sweep w;
    struct as_err err = {0};
    double best = INFINITY;
    size_t at = 0;
    sweep_init(&w, s, seed, true);
    for (size_t t = 0; t < TRIALS; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        if (json_object_get(w.reason, "free")) {
            ck_assert_uint_eq(json_array_size(json_object_get(w.reason, "free")), FREE_NUMBERS);
            if (!json_object_get(w.reason, "branch"))
                check_kept(&w, t, at);
            (*n_free)++;
        }
        double v = crowd(&w, t);
        sweep_tell(&w, t, v);
        if (v < best) {
            best = v;
            at = t;
        }
    }
    return best;
}

START_TEST(the_numbers_that_matter_are_set_right)
{
    size_t n_free = 0, n_found = 0;
    double sum = 0;
    for (uint64_t seed = 0; seed < SWEEPS; seed++) {
        double best = run_sweep(seed, &n_free);
        n_found += best < 0.03;
        sum += best;
    }
    ck_assert_msg(n_found >= 4 && n_free >= (size_t)SWEEPS * TRIALS / 5,
                  "%zu of %d below 0.03, mean %g, %zu suggestions with free numbers", n_found,
                  SWEEPS, sum / SWEEPS, n_free);
}
END_TEST

START_TEST(a_cache_changes_nothing)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(large);
    AS_AUTO(sweep_done) struct sweep w;
    AS_AUTO(sweep_done) struct sweep cold;
    struct as_err err = {0};
    size_t n_free = 0;
    sweep_init(&w, s, 2, true);
    sweep_init(&cold, s, 2, false);
    for (size_t t = 0; t < 36; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        ck_ok(sweep_ask(&cold, &err), err);
        ck_assert(config_equal(s, w.trials[t].config, cold.trials[t].config));
        ck_assert(json_equal(w.reason, cold.reason) && json_equal(w.state, cold.state));
        n_free += json_object_get(w.reason, "free") != NULL;
        sweep_tell(&w, t, crowd(&w, t));
        sweep_tell(&cold, t, crowd(&cold, t));
    }
    ck_assert_uint_ge(n_free, 3);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp/free_numbers");
    TCase *t = tcase_create("free_numbers");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, half_of_the_suggestions_of_a_large_flat_space_have_three);
    tcase_add_test(t, short_length_scales_are_drawn_more_often);
    tcase_add_test(t, the_box_holds_all_other_numbers);
    tcase_add_test(t, the_numbers_that_matter_are_set_right);
    tcase_add_test(t, a_cache_changes_nothing);
    suite_add_tcase(s, t);
    return s;
}
