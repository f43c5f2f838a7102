/* The scales on which numbers act: places of bent numbers, and whole sweeps that learn them. */
#include "search/gp/bend.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static const char rates[] = "rate: {type: float, min: 0, max: 1}\n"
                            "momentum: {type: float, min: 0, max: 0.9999}\n"
                            "trees: {type: int, min: 1, max: 5000}\n"
                            "share: {type: float, min: 0, max: 1}\n";

/* By logarithms; lowest at 0.003, 0.99, 60 and 0.3. */
static double training(const struct sweep *w, size_t t)
{
    double rate = log10(sweep_number(w, t, 0) + 1e-6) - log10(0.003);
    double momentum = log10(1 - sweep_number(w, t, 1)) + 2;
    double trees = log10(sweep_number(w, t, 2)) - log10(60), share = sweep_number(w, t, 3) - 0.3;
    double q = rate * rate + momentum * momentum + trees * trees + share * share;
    return 0.5 * q / (1 + q);
}

START_TEST(places_of_bent_numbers)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(rates);
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    AS_AUTO(config_freep) struct config *c = config_create(s);
    struct as_err err = {0};
    const struct bent_number bent[] = {{0, 1000}, {1, -20}, {2, 50000}};
    double point[4], u[] = {0.25, 0.5, 0.5, 0.75};
    ck_ok(encoding_create_with(s, &(struct encoding_learned){.bent = bent, .n_bent = 3}, &e, &err),
          err);
    ck_assert(e->bends != 0 && e->n_lengths == 4);
    for (uint64_t k = 0; k < 5000; k++) {
        ck_assert_uint_eq(encoding_level(e, 2, encoding_place(e, 2, k)), k);
        ck_assert(k == 0 || encoding_place(e, 2, k) > encoding_place(e, 2, k - 1));
    }
    ck_assert_double_eq(encoding_place(e, 2, 0), 0);
    ck_assert_double_eq(encoding_place(e, 2, 4999), 1);
    for (size_t k = 0; k <= 100; k++) {
        double v = pow(k / 100.0, 3);
        c->entries[0] = (struct config_entry){true, {.real = v}};
        c->entries[1] = (struct config_entry){true, {.real = 0.9999 * v}};
        c->entries[2] = (struct config_entry){true, {.integer = 1 + (int64_t)(4999 * v)}};
        c->entries[3] = (struct config_entry){true, {.real = v}};
        encoding_from_config(e, c, point);
        ck_assert_double_eq_tol(point[0], log1p(1000 * v) / log1p(1000), 1e-12);
        ck_assert_double_eq_tol(point[1], 1 - log1p(20 * (1 - v)) / log1p(20), 1e-12);
        ck_assert_double_eq_tol(point[3], v, 1e-12);
        encoding_to_config(e, point, c);
        ck_assert_double_eq_tol(c->entries[0].value.real, v, 4e-15);
        ck_assert_double_eq_tol(c->entries[1].value.real, 0.9999 * v, 4e-15);
        ck_assert_int_eq(c->entries[2].value.integer, 1 + (int64_t)(4999 * v));
    }
    /* a unit cube is even over the places */
    encoding_from_unit(e, u, point);
    ck_assert(point[0] == 0.25 && point[1] == 0.5 && point[3] == 0.75);
    ck_assert_double_eq_tol(point[2], 0.5, 0.01);
}
END_TEST

START_TEST(only_plain_numbers_bend)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("a: {type: float, min: 0, max: 1}\n"
                      "b: {type: float, min: 0.1, max: 1, scale: log}\n"
                      "c: {type: int, min: 1, max: 7}\n"
                      "d: {type: int, min: 1, max: 8}\n"
                      "e: {type: ordinal, values: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n"
                      "f: {type: float, min: 0, max: 1, when: {d: 3}}\n"
                      "g: {type: float, min: 0, max: 1, prior: {mean: 0.2, deviation: 0.1}}\n"
                      "h: {type: float, min: 0, max: 1, step: 0.01}\n"
                      "i: {type: int, min: 1, max: 100}\n");
    static const bool may[] = {true, false, false, false, false, false, false, true, true};
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    struct as_err err = {0};
    ck_ok(encoding_create(s, &e, &err), err);
    for (size_t j = 0; j < 9; j++)
        ck_assert_msg(encoding_may_bend(e, j) == may[j], "%zu", j);
}
END_TEST

static size_t count_scales(const json_t *reason)
{
    return json_array_size(json_object_get(reason, "scales"));
}

START_TEST(a_sweep_learns_scales)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(rates);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    double best = INFINITY;
    sweep_init(&w, s, (uint64_t)_i, true);
    for (size_t t = 0; t < 80; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        sweep_tell(&w, t, training(&w, t));
        best = fmin(best, training(&w, t));
    }
    ck_assert_msg(count_scales(w.reason) >= 3 && best < 0.005, "seed %d: %zu scales, best %g", _i,
                  count_scales(w.reason), best);
}
END_TEST

/* The first number that these trials bend, where none was bent before. */
static size_t first_bent(const struct sweep *w, const struct idle_numbers *idle)
{
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(w);
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *work = NULL;
    struct bends b = {.may_learn = true};
    struct as_err err = {0};
    bool changed = false;
    ck_ok(bends_learn(set, idle, &work, &b, &changed, &err), err);
    ck_assert(changed == (b.n_bent > 0));
    return changed ? b.bent[0].param : SIZE_MAX;
}

/* Trials over five decades above the lower end, or below the upper one, are told apart by the same
 * scale from that end. */
START_TEST(both_ends_have_the_same_scales)
{
    bool is_upper = _i == 1;
    AS_AUTO(space_freep) struct space *s = space_of_yaml("x: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *work = NULL;
    struct bends b = {.may_learn = true};
    struct as_err err = {0};
    bool changed = false;
    sweep_init(&w, s, 1, true);
    for (int k = 0; k < 40; k++) {
        AS_AUTO(config_freep) struct config *c = config_create(s);
        double decade = -5 * k / 39.0, x = pow(10, decade);
        c->entries[0] = (struct config_entry){true, {.real = is_upper ? 1 - x : x}};
        sweep_add(&w, c, sin(1.5 * decade));
    }
    for (int tests = 0; tests < 2; tests++) { /* from the upper end the widest comes second */
        struct history history = {w.trials, w.n};
        struct encoding_learned learned = {.bent = b.bent, .n_bent = b.n_bent};
        AS_AUTO(training_set_freep) struct training_set *set = NULL;
        ck_ok(training_set_create_with(&w.spec, &history, &learned, NULL, &set, &err), err);
        ck_ok(bends_learn(set, &(struct idle_numbers){0}, &work, &b, &changed, &err), err);
    }
    ck_assert_uint_eq(b.n_bent, 1);
    ck_assert_msg(b.bent[0].rate == (is_upper ? -50000 : 50000), "%g", b.bent[0].rate);
}
END_TEST

START_TEST(idle_numbers_keep_their_scales)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(rates);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    struct idle_numbers idle = {.n_tested = 30};
    sweep_init(&w, s, 1, true);
    for (size_t t = 0; t < 80; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        if (count_scales(w.reason))
            break;
        sweep_tell(&w, t, training(&w, t));
    }
    size_t first = first_bent(&w, &idle);
    ck_assert_uint_lt(first, 3);
    idle.params[idle.n++] = first;
    ck_assert_uint_ne(first_bent(&w, &idle), first);
    idle.n = 0;
    for (size_t i = 0; i < 4; i++)
        idle.params[idle.n++] = i;
    ck_assert_uint_eq(first_bent(&w, &idle), SIZE_MAX);
}
END_TEST

/* What is even over the range stays on its scale. */
START_TEST(an_even_function_bends_nothing)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(rates);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, (uint64_t)_i, true);
    for (size_t t = 0; t < 50; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        ck_assert_uint_eq(count_scales(w.reason), 0);
        sweep_tell(&w, t, sweep_bowl(&w, t));
    }
}
END_TEST

/* The same with a cache and without, also across the changes of the encoding. */
START_TEST(a_cache_changes_nothing)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(rates);
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(sweep_done) struct sweep cold = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 3, true);
    sweep_init(&cold, s, 3, false);
    for (size_t t = 0; t < 50; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        ck_ok(sweep_ask(&cold, &err), err);
        ck_assert(config_equal(s, w.trials[t].config, cold.trials[t].config));
        ck_assert(json_equal(w.reason, cold.reason) && json_equal(w.state, cold.state));
        sweep_tell(&w, t, training(&w, t));
        sweep_tell(&cold, t, training(&cold, t));
    }
    ck_assert_uint_gt(count_scales(w.reason), 0);
}
END_TEST

/* A repeat of the best trial is that trial's configuration to the last bit. */
START_TEST(a_repeat_is_exact)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(rates);
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(config_freep) struct config *best = config_create(s);
    struct as_err err = {0};
    size_t n = 0;
    sweep_init(&w, s, 5, true);
    best->entries[0] = (struct config_entry){true, {.real = 2.0 / 3}};
    best->entries[1] = (struct config_entry){true, {.real = 0.9999 / 7}};
    best->entries[2] = (struct config_entry){true, {.integer = 1000}};
    best->entries[3] = (struct config_entry){true, {.real = 11.0 / 13}};
    sweep_add(&w, best, -0.2); /* a user's, with all digits */
    w.state = json_loads("{\"models\": {}, \"bends\": {\"bent\": [[0, 50000], [1, -1000], [3, "
                         "20]], \"tested\": 1000}}",
                         0, NULL);
    for (size_t t = 1; t < 60 && !n; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        const json_t *number = json_object_get(w.reason, "repeat");
        double noise = 0.1 * sin(1e4 * (double)(t * t + 1));
        if (number) {
            n++;
            ck_assert_uint_eq(count_scales(w.reason), 3);
            ck_assert(
                config_equal(s, w.trials[t].config, w.trials[json_integer_value(number)].config));
        }
        sweep_tell(&w, t, sweep_bowl(&w, t) + noise);
    }
    ck_assert_uint_eq(n, 1);
}
END_TEST

/* States that are damaged or of another space are as none; there is nothing to learn where the
 * document says more. */
START_TEST(strange_states_are_ignored)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(rates);
    AS_AUTO(space_freep)
    struct space *declared = space_of_yaml("kind: {type: categorical, values: [p, q]}\n"
                                           "x: {type: float, min: 0, max: 1, when: {kind: p}}\n"
                                           "y: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    JSON_AUTO strange = json_loads("{\"bent\": [[0], [9, 20], [-1, 20], [0, 3], [1, 0], 7], "
                                   "\"tested\": -3}",
                                   0, NULL);
    JSON_AUTO good =
        json_loads("{\"bent\": [[3, 20], [0, -1000], [3, 1000]], \"tested\": 14}", 0, NULL);
    struct bends b;
    struct as_err err = {0};
    sweep_init(&w, s, 1, false);
    ck_ok(bends_read(&w.spec, strange, &b, &err), err);
    ck_assert(b.may_learn && b.n_bent == 0 && b.n_trials == 0);
    ck_ok(bends_read(&w.spec, good, &b, &err), err);
    ck_assert(b.n_bent == 2 && b.n_trials == 14);
    ck_assert(b.bent[0].param == 0 && b.bent[0].rate == -1000);
    ck_assert(b.bent[1].param == 3 && b.bent[1].rate == 1000);
    w.spec.space = declared;
    ck_ok(bends_read(&w.spec, good, &b, &err), err);
    ck_assert(!b.may_learn && b.n_bent == 0);
    JSON_AUTO state = bends_write(&b);
    ck_assert(json_is_null(state));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp/bend");
    TCase *t = tcase_create("bend");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, places_of_bent_numbers);
    tcase_add_test(t, only_plain_numbers_bend);
    tcase_add_loop_test(t, a_sweep_learns_scales, 1, 5);
    tcase_add_loop_test(t, both_ends_have_the_same_scales, 0, 2);
    tcase_add_test(t, idle_numbers_keep_their_scales);
    tcase_add_loop_test(t, an_even_function_bends_nothing, 1, 4);
    tcase_add_test(t, a_cache_changes_nothing);
    tcase_add_test(t, a_repeat_is_exact);
    tcase_add_test(t, strange_states_are_ignored);
    suite_add_tcase(s, t);
    return s;
}
