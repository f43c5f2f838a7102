/* The order of trials, and that each method that follows it gets better than chance. */
#include "search/population/population.h"

#include <math.h>

#include "base/json.h"
#include "search/cmaes/cmaes.h"
#include "search/evolution/evolution.h"
#include "search/sampling/sampler.h"
#include "search/tpe/tpe.h"
#include "tests/search/sweep.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define LINE "x: {type: float, min: 0, max: 1}\n"

/* Trials at 0, 0.1, …; n of them. */
static void add_line(struct sweep *w, const struct space *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        AS_AUTO(config_freep) struct config *c = config_create(s);
        c->entries[0].value.real = (double)i / 10;
        config_settle(s, c);
        sweep_add(w, c, 0);
    }
}

static void check_order(const struct sweep *w, const size_t *want, size_t n)
{
    AS_AUTO(population_done) struct population p = {0};
    struct as_err err = {0};
    const struct history h = {w->trials, w->n};
    ck_ok(population_read(&w->spec, &h, NULL, &p, &err), err);
    ck_assert_uint_eq(p.n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(p.order[i] == want[i], "place %zu: row %zu, not %zu", i, p.order[i], want[i]);
}

START_TEST(one_objective)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 1, false);
    add_line(&w, s, 7);
    static const double values[] = {3, 1, NAN, 2, 1, 0, 5};
    for (size_t i = 0; i < 7; i++)
        w.trials[i].values[0] = values[i];
    w.trials[5].state = OBSERVED_PENDING;
    w.trials[6].state = OBSERVED_FAILED;
    check_order(&w, (size_t[]){1, 4, 3, 0, 2, 6}, 6); /* NaN counts as failed */
    w.spec.maximize[0] = true;
    check_order(&w, (size_t[]){0, 3, 1, 4, 2, 6}, 6);
}
END_TEST

/* Trials that stopped at a rung come after the completed ones and before failures: the higher the
 * step the better, then by the value there; a pending one that has reached a rung has no place. */
START_TEST(rungs)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 1, false);
    add_line(&w, s, 8);
    w.spec.max_step = 27;
    static const double values[] = {3, 1, NAN, 2, 1, 0, 5, NAN};
    static const double steps[] = {3, 3, 3, 9, 0, 3, 0, 0};
    struct trial_rung reached[8];
    for (size_t i = 0; i < 8; i++) {
        reached[i] = (struct trial_rung){.step = steps[i], .values = {values[i]}};
        w.trials[i].rungs = &reached[i];
        w.trials[i].n_rungs = steps[i] > 0;
        w.trials[i].values[0] = NAN;
        w.trials[i].state = OBSERVED_PARTIAL;
    }
    w.trials[4].state = OBSERVED_COMPLETED;
    w.trials[4].values[0] = values[4];
    w.trials[5].state = OBSERVED_PENDING;
    w.trials[6].state = OBSERVED_FAILED;
    check_order(&w, (size_t[]){4, 3, 1, 0, 2, 7, 6}, 7);
    w.spec.maximize[0] = true;
    check_order(&w, (size_t[]){4, 3, 0, 1, 2, 7, 6}, 7);
}
END_TEST

/* Who breaks a bound comes after all who do not, by how much it is broken. */
START_TEST(broken_bounds)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 1, false);
    add_line(&w, s, 5);
    w.spec.n_outcomes = 1;
    w.spec.outcomes[0] = (struct outcome_bound){-INFINITY, 10};
    static const double values[] = {0, 5, 1, 4, 2}, outcomes[] = {30, 9, 11, 10, 12};
    for (size_t i = 0; i < 5; i++) {
        w.trials[i].values[0] = values[i];
        w.trials[i].outcomes[0] = outcomes[i];
    }
    check_order(&w, (size_t[]){3, 1, 2, 4, 0}, 5);
}
END_TEST

/* Two fronts: (0,3) (1,1) (3,0), then (2,4) (4,2). In the first the ends come before the middle. */
START_TEST(fronts)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(LINE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 1, false);
    add_line(&w, s, 5);
    w.spec.n_objectives = 2;
    static const double values[][2] = {{2, 4}, {1, 1}, {0, 3}, {4, 2}, {3, 0}};
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 2; k++)
            w.trials[i].values[k] = values[i][k];
    check_order(&w, (size_t[]){2, 4, 1, 0, 3}, 5);
}
END_TEST

/* ---- better than chance ---- */

#define TREE                                                                                       \
    "kind: {type: categorical, values: [a, b, c]}\n"                                               \
    "lr: {type: float, min: 1e-5, max: 1, scale: log}\n"                                           \
    "depth: {type: int, min: 1, max: 12, when: {kind: b}}\n"                                       \
    "rate: {type: float, min: 0, max: 1, when: {kind: [a, c]}}\n"                                  \
    "mode: {type: categorical, values: [p, q, r, s]}\n"

/* The best is 0 at kind b, lr 1e-2, depth 7, mode r. */
static double tree_value(const struct sweep *w, size_t t)
{
    double lr = log10(sweep_number(w, t, 1)) + 2, depth = sweep_number(w, t, 2);
    double rate = sweep_number(w, t, 3);
    double sum = lr * lr + (sweep_number(w, t, 4) == 2 ? 0 : 0.5);
    if (sweep_number(w, t, 0) == 1)
        return sum + (depth - 7) * (depth - 7) / 16;
    return sum + 1 + fabs(rate - 0.3);
}

/* The mean over some seeds of the best value. */
static double mean_best(const struct search_method *m, const struct space *s, size_t trials)
{
    double sum = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        struct as_err err = {0};
        double best = INFINITY;
        sweep_init(&w, s, seed, true);
        w.spec.method = m;
        for (size_t t = 0; t < trials; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            sweep_tell(&w, t, tree_value(&w, t));
            best = fmin(best, w.trials[t].values[0]);
        }
        sum += best / 8;
    }
    return sum;
}

/* Each leaves less than half of what random search does, so a method that ignored what it is told
 * would not pass. */
START_TEST(better_than_chance)
{
    static const struct {
        const struct search_method *method;
        size_t trials;
    } cases[] = {{&search_tpe, 60}, {&search_evolution, 60}, {&search_cmaes, 200}};
    AS_AUTO(space_freep) struct space *s = space_of_yaml(TREE);
    double left = mean_best(cases[_i].method, s, cases[_i].trials);
    double chance = mean_best(&search_random, s, cases[_i].trials);
    ck_assert_msg(left < chance / 2, "%s leaves %g, random search %g", cases[_i].method->name, left,
                  chance);
}
END_TEST

/* A reason says where a suggestion comes from: the parent is a trial, and differs where it says. */
START_TEST(evolution_names_the_parent)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(TREE);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 3, true);
    w.spec.method = &search_evolution;
    for (size_t t = 0; t < 40; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_tell(&w, t, tree_value(&w, t));
        const json_t *parent = json_object_get(w.reason, "parent");
        if (!parent)
            continue;
        const struct config *from = w.trials[json_integer_value(parent)].config;
        const struct config *to = w.trials[t].config;
        const json_t *changed = json_object_get(w.reason, "changed"), *name;
        size_t i;
        ck_assert_uint_ge(json_array_size(changed), 1);
        json_array_foreach(changed, i, name)
        {
            size_t j = 0;
            while (!as_streq(s->params[j].name, json_string_value(name)))
                j++;
            ck_assert(from->entries[j].active || to->entries[j].active);
        }
        ck_assert(!config_equal(s, from, to));
    }
    ck_assert_ptr_nonnull(json_object_get(w.reason, "parent"));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/population");
    TCase *t = tcase_create("population");
    tcase_add_test(t, one_objective);
    tcase_add_test(t, rungs);
    tcase_add_test(t, broken_bounds);
    tcase_add_test(t, fronts);
    tcase_add_loop_test(t, better_than_chance, 0, 3);
    tcase_add_test(t, evolution_names_the_parent);
    suite_add_tcase(s, t);
    return s;
}
