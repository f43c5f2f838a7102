/* The forest's predictions, its search, and the method: conditions, trials under way, plateaus. */
#include "search/forest/forest.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "search/forest/forest_method.h"
#include "search/forest/forest_search.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define METHODS                                                                                    \
    "method: {type: categorical, values: [a, b, c]}\n"                                             \
    "a1: {type: float, min: 0, max: 1, when: {method: a}}\n"                                       \
    "b1: {type: float, min: 0, max: 1, when: {method: b}}\n"                                       \
    "b2: {type: int, min: 1, max: 9, when: {method: b}}\n"                                         \
    "c1: {type: float, min: 0, max: 1, when: {method: c}}\n"                                       \
    "size: {type: int, min: 1, max: 20}\n"

/* The value of METHODS: b is the best method, and has a cliff. */
static double value(const struct sweep *w, size_t t)
{
    double size = (sweep_number(w, t, 5) - 6) / 20;
    switch ((int)sweep_number(w, t, 0)) {
    case 0:
        return 0.5 + size * size + fabs(sweep_number(w, t, 1) - 0.5);
    case 1:
        return size * size + pow(sweep_number(w, t, 2) - 0.7, 2) + (sweep_number(w, t, 3) < 6);
    default:
        return 0.4 + size * size;
    }
}

static void begin(struct sweep *w, const struct space *s, uint64_t seed)
{
    sweep_init(w, s, seed, true);
    w->spec.method = &search_forest;
}

/* A function of one number: means follow it, and deviations are small where rows are. */
START_TEST(predicts_mean_and_variance)
{
    double x[20], y[20], mean, between, at_rows = 0, off_rows = 0;
    const uint64_t number = 0;
    struct as_err err = {0};
    struct rng r;
    for (size_t i = 0; i < 20; i++) {
        x[i] = i < 10 ? 0.04 * (double)i : 0.64 + 0.04 * (double)(i - 10); /* none in the middle */
        y[i] = x[i] < 0.5 ? 0 : 1;
    }
    const struct tree_rows t = {20, 1, x, y, &number, NULL};
    AS_AUTO(forest_freep) struct forest *f = NULL;
    rng_init(&r, 5, 0);
    ck_ok(forest_grow(&t, &r, &f, &err), err);
    for (size_t i = 0; i < 20; i++) {
        forest_predict(f, &x[i], &mean, &between);
        ck_assert_double_eq_tol(mean, y[i], 0.2);
        at_rows += between / 20;
    }
    forest_predict(f, &(double){0.5}, &mean, &off_rows);
    ck_assert(mean > 0.2 && mean < 0.8);
    ck_assert_double_eq_tol(off_rows, mean * (1 - mean), 1e-12); /* pure leaves: of the trees */
    ck_assert_double_gt(off_rows, 5 * at_rows);
}
END_TEST

START_TEST(equal_values_have_a_variance)
{
    const double x[3] = {0.1, 0.5, 0.9}, y[3] = {4, 4, 4};
    const uint64_t number = 0;
    const struct tree_rows t = {3, 1, x, y, &number, NULL};
    AS_AUTO(forest_freep) struct forest *f = NULL;
    struct as_err err = {0};
    struct rng r;
    double mean, variance;
    rng_init(&r, 5, 0);
    ck_ok(forest_grow(&t, &r, &f, &err), err);
    forest_predict(f, &x[1], &mean, &variance);
    ck_assert_double_eq(mean, 4);
    ck_assert(variance > 0 && isfinite(log(variance)));
}
END_TEST

/* What is searched for with these trials: r is a stream of its own. */
static struct forest_found search(const struct training_set *s, double *ret_point)
{
    struct forest_found found = {0};
    struct as_err err = {0};
    struct rng r;
    rng_init(&r, 11, 0);
    ck_ok(forest_search(s, s->costs, NULL, &r, ret_point, &found, &err), err);
    return found;
}

/* The same trials give the same point; a trial under way there leads elsewhere. */
START_TEST(trials_under_way_count)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(METHODS);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    double point[3][6];
    begin(&w, s, 3);
    w.spec.initial_trials = 30;
    for (size_t t = 0; t < 30; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_tell(&w, t, value(&w, t));
    }
    AS_AUTO(training_set_freep) struct training_set *set = sweep_training_set(&w);
    struct forest_found first = search(set, point[0]), again = search(set, point[1]);
    ck_assert(first.is_found && again.is_found);
    ck_assert_mem_eq(point[0], point[1], sizeof point[0]);
    ck_assert_double_eq(first.value, again.value);
    ck_assert_double_gt(first.deviation, 0);
    ck_ok(sweep_ask(&w, &err), err);
    encoding_to_config(set->enc, point[0], (struct config *)w.trials[30].config);
    AS_AUTO(training_set_freep) struct training_set *with = sweep_training_set(&w);
    ck_assert_uint_eq(with->n_pending, 1);
    struct forest_found next = search(with, point[2]);
    ck_assert(next.is_found && !encoding_same(set->enc, point[0], point[2], 1e-6));
}
END_TEST

/* Ten trials at a time on a plateau: none repeats another one, and none is of the design. */
START_TEST(a_plateau_repeats_nothing)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(METHODS);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    begin(&w, s, 4);
    for (size_t t = 0; t < 60; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        if (t >= 20)
            ck_assert_str_eq(json_string_value(json_object_get(w.reason, "phase")), "search");
        if (t >= 10)
            sweep_tell(&w, t - 10, 1);
    }
}
END_TEST

static double best_of_sweep(const struct space *s, uint64_t seed, size_t design)
{
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    double best = INFINITY;
    begin(&w, s, seed);
    w.spec.initial_trials = design;
    for (size_t t = 0; t < 60; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_tell(&w, t, value(&w, t));
        best = fmin(best, w.trials[t].values[0]);
    }
    return best;
}

/* It may stay with a wrong method, as all that follows good trials. Points of the design fill the
 * space: they are chance. */
START_TEST(finds_the_method_behind_a_cliff)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(METHODS);
    size_t n_found = 0, n_chance = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        n_found += best_of_sweep(s, seed, 0) < 0.01;
        n_chance += best_of_sweep(s, seed, 60) < 0.01;
    }
    ck_assert_msg(n_found >= 8 && n_chance <= 3, "in %zu of 10 sweeps, by chance in %zu", n_found,
                  n_chance);
}
END_TEST

/* Failures are worse than all values, and several objectives have an order. */
START_TEST(failures_and_fronts)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(METHODS);
    for (size_t objectives = 1; objectives < 3; objectives++) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        struct as_err err = {0};
        size_t n_failed = 0;
        begin(&w, s, 9);
        w.spec.n_objectives = objectives;
        for (size_t t = 0; t < 50; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            sweep_check(&w, t);
            if (sweep_number(&w, t, 0) == 0) {
                w.trials[t].state = OBSERVED_FAILED;
                n_failed += t >= 20;
            } else {
                sweep_tell(&w, t, value(&w, t));
                w.trials[t].values[1] = -sweep_number(&w, t, 5);
            }
        }
        ck_assert_uint_lt(n_failed, 6);
        ck_assert_int_eq(json_object_get(w.reason, "predicted") != NULL, objectives == 1);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/forest");
    TCase *t = tcase_create("forest");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, predicts_mean_and_variance);
    tcase_add_test(t, equal_values_have_a_variance);
    tcase_add_test(t, trials_under_way_count);
    tcase_add_test(t, a_plateau_repeats_nothing);
    tcase_add_test(t, finds_the_method_behind_a_cliff);
    tcase_add_test(t, failures_and_fronts);
    suite_add_tcase(s, t);
    return s;
}
