/* What is learned of parameters that declare nothing: encodings with dead pairs, and whole sweeps
 * on a table like that of a support vector machine. */
#include "search/gp/relevance.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static const char kernels[] = "kernel: {type: categorical, values: [linear, rbf]}\n"
                              "cost: {type: int, min: -4, max: 12}\n"
                              "gamma: {type: int, min: -8, max: 5}\n"
                              "tol: {type: float, min: 0, max: 1}\n";

/* gamma has no effect where kernel is linear, tol nowhere. */
static double svm(const struct sweep *w, size_t trial)
{
    double cost = sweep_number(w, trial, 1) - 5, gamma = sweep_number(w, trial, 2) + 3;
    if (sweep_number(w, trial, 0) < 0.5)
        return 0.05 + 0.01 * fabs(cost);
    return 0.3 * (1 - exp(-(cost * cost + 2 * gamma * gamma) / 18));
}

START_TEST(a_dead_number_is_like_an_inactive_one)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(kernels);
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    AS_AUTO(config_freep) struct config *c = config_create(s);
    struct as_err err = {0};
    const struct dead_pair dead = {.param = 2, .choice = 0, .level = 0};
    double x[2][8], back[4];
    int32_t z[2][4];
    ck_ok(encoding_create_with(s, &(struct encoding_learned){.dead = &dead, .n_dead = 1}, &e, &err),
          err);
    ck_assert(e->params[2].is_conditional && e->params[0].is_parent && !e->has_conditions);
    double a[] = {0, 0.5, encoding_place(e, 2, 1), 0.25}, b[] = {0, 0.5, 1, 0.25};
    ck_assert(encoding_same(e, a, b, 1e-9));
    encoding_features(e, a, x[0], z[0]);
    encoding_features(e, b, x[1], z[1]);
    ck_assert_mem_eq(x[0], x[1], e->n_real * sizeof *x[0]);
    /* the configuration keeps its value, and so its point */
    encoding_to_config(e, a, c);
    ck_assert(c->entries[2].active && c->entries[2].value.integer == -7);
    encoding_from_config(e, c, back);
    ck_assert_double_eq(back[2], a[2]);
    /* where the choice has another value, the number counts */
    a[0] = b[0] = 1;
    ck_assert(!encoding_same(e, a, b, 1e-9));
}
END_TEST

START_TEST(only_free_numbers_die)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("a: {type: categorical, values: [x, y]}\n"
                                    "b: {type: float, min: 0, max: 1, when: {a: x}}\n"
                                    "c: {type: int, min: 1, max: 3}\n"
                                    "d: {type: categorical, values: [p, q], when: {c: 2}}\n"
                                    "e: {type: float, min: 0, max: 1}\n");
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    struct as_err err = {0};
    ck_ok(encoding_create(s, &e, &err), err);
    const bool die[] = {false, false, false, false, true};
    const bool kill[] = {true, false, false, false, false};
    for (size_t j = 0; j < 5; j++) {
        ck_assert_msg(encoding_may_die(e, j) == die[j], "%zu", j);
        ck_assert_msg(encoding_may_kill(e, j) == kill[j], "%zu", j);
    }
    ck_assert(e->has_conditions);
}
END_TEST

/* Is `parameter` without effect in the reason, where the first parameter is `value`? */
static bool is_learned(const json_t *reason, const char *parameter, const char *value)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(reason, "no_effect"), i, item)
    {
        const char *at =
            json_string_value(json_object_get(json_object_get(item, "where"), "kernel"));
        ck_assert_int_ge(json_integer_value(json_object_get(item, "trials")), 12);
        if (!strcmp(json_string_value(json_object_get(item, "parameter")), parameter) &&
            !strcmp(at, value))
            return true;
    }
    return false;
}

/* Has an earlier trial with kernel linear the same cost and nearly the same tol? */
static bool is_repeat(const struct sweep *w, size_t trial)
{
    for (size_t i = 0; i < trial && sweep_number(w, trial, 0) < 0.5; i++)
        if (sweep_number(w, i, 0) < 0.5 && sweep_number(w, i, 1) == sweep_number(w, trial, 1) &&
            fabs(sweep_number(w, i, 3) - sweep_number(w, trial, 3)) < 1e-9)
            return true;
    return false;
}

START_TEST(a_sweep_learns_what_has_no_effect)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(kernels);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    double best = INFINITY;
    size_t known = 0;
    sweep_init(&w, s, (uint64_t)_i, true);
    for (size_t t = 0; t < 60; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        double v = svm(&w, t);
        known += is_learned(w.reason, "gamma", "linear");
        ck_assert(!is_learned(w.reason, "gamma", "rbf") && !is_learned(w.reason, "cost", "rbf"));
        ck_assert(!is_learned(w.reason, "gamma", "linear") || !is_repeat(&w, t));
        sweep_tell(&w, t, v);
        best = fmin(best, v);
    }
    ck_assert_msg(known >= 10 && best < 0.02, "seed %d: known %zu times, best %g", _i, known, best);
}
END_TEST

/* The same with a cache and without, also across the changes of the encoding. */
START_TEST(a_cache_changes_nothing)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(kernels);
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(sweep_done) struct sweep cold = {0};
    struct as_err err = {0};
    bool any = false;
    sweep_init(&w, s, 3, true);
    sweep_init(&cold, s, 3, false);
    for (size_t t = 0; t < 45; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        ck_ok(sweep_ask(&cold, &err), err);
        ck_assert(config_equal(s, w.trials[t].config, cold.trials[t].config));
        ck_assert(json_equal(w.reason, cold.reason) && json_equal(w.state, cold.state));
        any |= json_object_get(w.reason, "no_effect") != NULL;
        sweep_tell(&w, t, svm(&w, t));
        sweep_tell(&cold, t, svm(&cold, t));
    }
    ck_assert(any);
}
END_TEST

/* In a small space what is dead leaves repeats alone; they are suggested at last, and all. */
START_TEST(a_small_space_is_used_up)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("kernel: {type: categorical, values: [linear, rbf]}\n"
                                    "cost: {type: int, min: 1, max: 6}\n"
                                    "gamma: {type: int, min: 1, max: 5}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    bool any = false;
    sweep_init(&w, s, 1, true);
    for (size_t t = 0; t < 60; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        any |= is_learned(w.reason, "gamma", "linear");
        double cost = sweep_number(&w, t, 1) - 2, gamma = sweep_number(&w, t, 2) - 4;
        bool is_linear = sweep_number(&w, t, 0) < 0.5;
        sweep_tell(&w, t, is_linear ? 0.1 * cost * cost : 1 + cost * cost + gamma * gamma);
    }
    ck_assert(any);
    ck_assert_int_eq(sweep_ask(&w, &err), AS_E_EXHAUSTED);
}
END_TEST

/* ---- two choices ---- */

static const char two_choices[] = "kernel: {type: categorical, values: [linear, rbf]}\n"
                                  "fill: {type: categorical, values: [mean, median]}\n"
                                  "cost: {type: float, min: 0, max: 1}\n"
                                  "gamma: {type: float, min: 0, max: 1}\n";
enum { KERNEL, FILL, COST, GAMMA };

/* Trials of which all with the median are linear, and few of the others: gamma has no effect where
 * kernel is linear; fill has none at all. */
static void tell_two_choices(struct sweep *w)
{
    static const double share[] = {0.2, 1}; /* of trials that are linear, by fill */
    AS_AUTO(config_freep) struct config *c = config_create(w->spec.space);
    double point[4];
    AS_AUTO(encoding_freep) struct encoding *e = NULL;
    struct as_err err = {0};
    struct rng r;
    rng_init(&r, 5, 0);
    ck_ok(encoding_create(w->spec.space, &e, &err), err);
    for (size_t t = 0; t < 64; t++) {
        point[FILL] = (double)(t % 2);
        point[KERNEL] = rng_uniform(&r) < share[t % 2] ? 0 : 1;
        point[COST] = rng_uniform(&r);
        point[GAMMA] = rng_uniform(&r);
        double off = point[COST] - 0.4, wide = point[GAMMA] - 0.7;
        encoding_to_config(e, point, c);
        sweep_add(w, c, off * off + (point[KERNEL] == 0 ? 0.5 : 3 * wide * wide));
    }
}

/* Every value is tested until none is due. Length scales: of cost and gamma, then of the choices as
 * given, then the variance and the noise. Returns the pairs as text. */
static char *learn_two_choices(const struct sweep *w, double kernel, double fill, const char *state)
{
    AS_AUTO(relevance_done) struct relevance r = {0};
    AS_AUTO(gp_fit_work_freep) struct gp_fit_work *work = NULL;
    JSON_AUTO before = json_loads(state, 0, NULL);
    JSON_AUTO theta =
        json_pack("[f,f,f,f,f,f]", log(0.5), log(0.5), log(kernel), log(fill), 0.0, log(1e-4));
    struct training_set *set = sweep_training_set(w);
    struct as_err err = {0};
    ck_ok(relevance_read(&w->spec, before, &r, &err), err);
    for (size_t i = 0; i < 8; i++) {
        bool changed;
        ck_ok(relevance_learn(set, theta, &work, &r, &changed, &err), err);
    }
    training_set_free(set);
    JSON_AUTO after = relevance_write(&r);
    char *text = json_dumps(json_object_get(after, "dead"), JSON_COMPACT);
    return text ? text : strdup("[]"); /* nothing was tested */
}

#define GAMMA_WHERE_LINEAR "[[3,0,0]]"
#define GAMMA_WHERE_MEDIAN "[3,1,1]"

/* Trials of the median say nothing of gamma, because all are linear. */
START_TEST(a_choice_that_does_not_matter_silences_nothing)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two_choices);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 1, false);
    tell_two_choices(&w);
    AS_AUTO(as_freep) char *apart = learn_two_choices(&w, 0.6, 8, "{}");
    ck_assert_str_eq(apart, GAMMA_WHERE_LINEAR);
}
END_TEST

START_TEST(what_a_choice_that_matters_more_explains_is_its_alone)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(two_choices);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 1, false);
    tell_two_choices(&w);
    AS_AUTO(as_freep) char *both = learn_two_choices(&w, 0.6, 1, "{}");
    ck_assert_str_eq(both, GAMMA_WHERE_LINEAR);
    /* also if the other one was believed before */
    AS_AUTO(as_freep)
    char *revised = learn_two_choices(
        &w, 0.6, 1, "{\"dead\": [" GAMMA_WHERE_MEDIAN "], \"tested\": [0,0,0,0]}");
    ck_assert_str_eq(revised, GAMMA_WHERE_LINEAR);
    /* and a choice that matters no longer loses what was believed */
    AS_AUTO(as_freep)
    char *none =
        learn_two_choices(&w, 8, 8, "{\"dead\": [" GAMMA_WHERE_MEDIAN "], \"tested\": [0,0,0,0]}");
    ck_assert_str_eq(none, "[]");
}
END_TEST

/* States that are damaged or of another space are as none. */
START_TEST(strange_states_are_ignored)
{
    static const char *const states[] = {
        "{}",
        "{\"dead\": 3, \"tested\": [1]}",
        ("{\"dead\": [[1, 0], [9, 0, 0], [2, 0, 7], [0, 0, 0], [2, 1, 0], [-1, 0, 0]], \"tested\": "
         "[-3, 1e9]}"),
    };
    AS_AUTO(space_freep) struct space *s = space_of_yaml(kernels);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 1, false);
    for (size_t i = 0; i < 3; i++) {
        AS_AUTO(relevance_done) struct relevance r = {0};
        JSON_AUTO state = json_loads(states[i], 0, NULL);
        ck_assert_ptr_nonnull(state);
        ck_ok(relevance_read(&w.spec, state, &r, &err), err);
        ck_assert_uint_eq(r.n_dead, 0);
        ck_assert_uint_eq(r.n_values, 2);
        ck_assert_uint_eq(r.values[0].n_trials, 0);
    }
    AS_AUTO(relevance_done) struct relevance r = {0};
    JSON_AUTO state =
        json_loads("{\"dead\": [[3, 0, 0], [2, 0, 0], [2, 0, 0]], \"tested\": [20, 12]}", 0, NULL);
    ck_ok(relevance_read(&w.spec, state, &r, &err), err);
    ck_assert_uint_eq(r.n_dead, 2);
    ck_assert(r.dead[0].param == 2 && r.dead[1].param == 3);
    ck_assert_uint_eq(relevance_trials(&r, &r.dead[0]), 20);
}
END_TEST

START_TEST(declared_conditions_leave_nothing_to_learn)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("kernel: {type: categorical, values: [linear, rbf]}\n"
                                    "gamma: {type: float, min: 0, max: 1, when: {kernel: rbf}}\n"
                                    "tol: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    AS_AUTO(relevance_done) struct relevance r = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 1, false);
    ck_ok(relevance_read(&w.spec, NULL, &r, &err), err);
    ck_assert(r.n_values == 0);
    JSON_AUTO state = relevance_write(&r);
    ck_assert(json_is_null(state));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/gp/relevance");
    TCase *t = tcase_create("relevance");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_dead_number_is_like_an_inactive_one);
    tcase_add_test(t, only_free_numbers_die);
    tcase_add_loop_test(t, a_sweep_learns_what_has_no_effect, 1, 5);
    tcase_add_test(t, a_cache_changes_nothing);
    tcase_add_test(t, a_small_space_is_used_up);
    tcase_add_test(t, a_choice_that_does_not_matter_silences_nothing);
    tcase_add_test(t, what_a_choice_that_matters_more_explains_is_its_alone);
    tcase_add_test(t, strange_states_are_ignored);
    tcase_add_test(t, declared_conditions_leave_nothing_to_learn);
    suite_add_tcase(s, t);
    return s;
}
