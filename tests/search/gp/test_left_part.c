/* Parts of the space that a sweep has written off: a number decides whether others matter. */
#include "search/gp/left_part.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define UNIT(name) name ": {type: float, min: 0, max: 1}\n"
static const char four[] = UNIT("gate") UNIT("x") UNIT("y") UNIT("z");

/* Above 0.7 of the gate the best is at x = 0.3, y = 0.6; below it neither has an effect. */
static double gated(double gate, double x, double y, double z)
{
    double rest = 0.05 * (z - 0.4) * (z - 0.4);
    if (gate < 0.7)
        return 0.1 + 0.4 * (gate - 0.35) * (gate - 0.35) + rest;
    return 0.6 * (1 - exp(-4 * ((x - 0.3) * (x - 0.3) + (y - 0.6) * (y - 0.6)))) + rest;
}

/* Everything matters everywhere. */
static double smooth(double gate, double x, double y, double z)
{
    return 6 * (gate - 0.35) * (gate - 0.35) + (x - 0.3) * (x - 0.3) + (y - 0.6) * (y - 0.6) +
           (z - 0.4) * (z - 0.4);
}

static double value(const struct sweep *w, size_t t, double (*f)(double, double, double, double))
{
    return f(sweep_number(w, t, 0), sweep_number(w, t, 1), sweep_number(w, t, 2),
             sweep_number(w, t, 3));
}

static void add(struct sweep *w, const double *point, double (*f)(double, double, double, double))
{
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(w);
    AS_AUTO(config_freep) struct config *c = config_create(w->spec.space);
    encoding_to_config(set->enc, point, c);
    sweep_add(w, c, f(point[0], point[1], point[2], point[3]));
}

/* A sweep that stands still at a gate of 0.35, has tried three places above 0.7, and z over `span`
 * of its range. */
static void stand_still(struct sweep *w, double span, double (*f)(double, double, double, double))
{
    static const double above[][4] = {
        {0.9, 0.9, 0.1, 0.5}, {0.8, 0.8, 0.9, 0.2}, {0.95, 0.05, 0.05, 0.9}};
    add(w, (double[]){0.35, 0.3, 0.6, 0.4}, f);
    for (size_t k = 0; k < 3; k++)
        add(w, above[k], f);
    for (size_t k = 0; k < 24; k++) {
        double u = (double)k, point[] = {0.25 + fmod(0.29 * u, 0.25), fmod(0.37 * u, 1),
                                         fmod(0.61 * u, 1), 0.3 + fmod(0.17 * u, span)};
        add(w, point, f);
    }
}

static bool choose(const struct sweep *w, struct idle_numbers *idle, struct left_part *ret)
{
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(w);
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *work = NULL;
    struct as_err err = {0};
    bool is_found = false;
    ck_ok(part_choose(set, idle, &work, &is_found, ret, &err), err);
    return is_found;
}

START_TEST(the_side_of_the_gate_that_was_left_is_a_part)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(four);
    AS_AUTO(sweep_done) struct sweep w;
    struct idle_numbers idle = {0};
    struct left_part p;
    sweep_init(&w, s, 3, true);
    stand_still(&w, 0.2, gated);
    ck_assert(choose(&w, &idle, &p));
    ck_assert(p.param == 0 && p.lower > 0.5 && p.lower < 0.8 && p.upper == 1 && p.n_trials == 3);
    ck_assert(idle.n_tested == w.n && idle.n == 2 && idle.params[0] == 1 && idle.params[1] == 2);
    /* a new best trial: the sweep improves, and is left alone */
    struct observation *first = &w.trials[w.n - 1];
    first->values[0] = 0.05;
    ck_assert(!choose(&w, &idle, &p));
}
END_TEST

START_TEST(a_space_where_all_numbers_matter_has_none)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(four);
    AS_AUTO(sweep_done) struct sweep w;
    struct idle_numbers idle = {0};
    struct left_part p;
    sweep_init(&w, s, 3, true);
    stand_still(&w, 0.7, smooth);
    ck_assert(!choose(&w, &idle, &p) && idle.n_tested == w.n && idle.n == 0);
}
END_TEST

/* It gets 12 trials, four and two for each number, and goes on while the newest 12 gained. */
START_TEST(a_part_that_has_had_its_trials_is_left)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(four);
    AS_AUTO(sweep_done) struct sweep w;
    struct idle_numbers idle = {0};
    struct left_part p;
    sweep_init(&w, s, 3, true);
    stand_still(&w, 0.2, gated);
    size_t n = 0;
    for (; n < 30 && choose(&w, &idle, &p); n++)
        add(&w, (double[]){0.9, 0.95, 0.02 * (double)n, 0.5}, gated);
    ck_assert_msg(n >= 9 && n <= 13, "left after %zu trials", n);
}
END_TEST

START_TEST(points_of_a_part_are_spread_over_it)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(four);
    AS_AUTO(sweep_done) struct sweep w;
    struct left_part p = {.param = 0, .lower = 0.7, .upper = 1};
    double point[4], again[4];
    sweep_init(&w, s, 3, true);
    stand_still(&w, 0.2, gated);
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    for (uint64_t t = 0; t < 20; t++) {
        ck_assert(part_spread(set, &p, t, point) && part_spread(set, &p, t, again));
        ck_assert_mem_eq(point, again, sizeof point);
        ck_assert(part_holds(&p, point) && !training_set_tried(set, point, 0.05));
    }
}
END_TEST

START_TEST(what_was_learned_is_carried)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(four);
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    struct as_err err = {0};
    ck_ok(encoding_create(s, &e, &err), err);
    JSON_AUTO state = idle_write(&(struct idle_numbers){28, 2, {1, 3}});
    struct idle_numbers back = idle_read(state, e);
    ck_assert(back.n_tested == 28 && back.n == 2 && back.params[0] == 1 && back.params[1] == 3);
    JSON_AUTO wrong = json_pack("{s:i, s:[i, s, i]}", "tested", 5, "idle", 9, "x", 2);
    back = idle_read(wrong, e);
    ck_assert(back.n == 1 && back.params[0] == 2);
    JSON_AUTO none = idle_write(&(struct idle_numbers){0});
    ck_assert(json_is_null(none) && idle_read(NULL, e).n_tested == 0);
}
END_TEST

static size_t param_index(const struct space *s, const char *name)
{
    size_t i = 0;
    while (strcmp(s->params[i].name, name) != 0)
        i++;
    return i;
}

/* The rate of a number in a state of the method; 0: it is not bent. */
static json_int_t rate_of(const json_t *state, json_int_t param)
{
    const json_t *pair, *bent = json_object_get(json_object_get(state, "bends"), "bent");
    size_t i;
    json_array_foreach((json_t *)bent, i, pair)
    {
        if (json_integer_value(json_array_get(pair, 0)) == param)
            return json_integer_value(json_array_get(pair, 1));
    }
    return 0;
}

/* Numbers that were idle keep their scales in the next suggestion. */
static void check_scales(const json_t *before, const json_t *after)
{
    const json_t *param, *idle = json_object_get(json_object_get(before, "idle"), "idle");
    size_t i;
    json_array_foreach((json_t *)idle, i, param)
    {
        json_int_t p = json_integer_value(param);
        ck_assert_int_eq(rate_of(before, p), rate_of(after, p));
    }
}

/* In 80 trials half of the sweeps find what lies behind the gate. With a cache and without,
 * suggestions and states are the same. */
START_TEST(a_sweep_finds_what_lies_behind_a_gate)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(four);
    size_t n_found = 0, n_parts = 0;
    for (uint64_t seed = 0; seed < 4; seed++) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        AS_AUTO(sweep_done) struct sweep cold = {0};
        struct as_err err = {0};
        double best = INFINITY;
        sweep_init(&w, s, seed, true);
        sweep_init(&cold, s, seed, false);
        for (size_t t = 0; t < 80; t++) {
            JSON_AUTO before = json_incref(w.state);
            ck_ok(sweep_ask(&w, &err), err);
            ck_ok(sweep_ask(&cold, &err), err);
            check_scales(before, w.state);
            ck_assert(config_equal(s, w.trials[t].config, cold.trials[t].config));
            ck_assert(json_equal(w.state, cold.state) && json_equal(w.reason, cold.reason));
            sweep_check(&w, t);
            double v = value(&w, t, gated), from;
            const json_t *part = json_object_get(w.reason, "part");
            if (part) {
                ck_assert(json_number_get(json_object_get(part, "from"), &from));
                size_t i = param_index(s, json_string_value(json_object_get(part, "parameter")));
                ck_assert(json_array_size(json_object_get(w.reason, "idle")) > 0);
                ck_assert_double_ge(sweep_number(&w, t, i), from - 1e-9);
                n_parts++;
            }
            sweep_tell(&w, t, v);
            sweep_tell(&cold, t, v);
            best = fmin(best, v);
        }
        n_found += best < 0.05;
    }
    ck_assert_msg(n_found >= 2 && n_parts >= 12, "%zu found, %zu in parts", n_found, n_parts);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/left_part");
    TCase *t = tcase_create("part");
    tcase_add_test(t, the_side_of_the_gate_that_was_left_is_a_part);
    tcase_add_test(t, a_space_where_all_numbers_matter_has_none);
    tcase_add_test(t, a_part_that_has_had_its_trials_is_left);
    tcase_add_test(t, points_of_a_part_are_spread_over_it);
    tcase_add_test(t, what_was_learned_is_carried);
    tcase_add_test(t, a_sweep_finds_what_lies_behind_a_gate);
    suite_add_tcase(s, t);
    return s;
}
