/* The problems that searches are compared on: what is said to be their best is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "bench/search/learners.h"
#include "bench/search/problems.h"
#include "bench/search/surrogate.h"
#include "bench/search/table.h"
#include "search/sampling/grid.h"
#include "search/sampling/sampler.h"
#include "tests/support/check_main.h"

#define SURROGATE_DRAWS 20 /* a request each */

static struct as_err err;

/* NULL: a surrogate, whose files are not on this machine. */
static struct problem *opened(size_t i)
{
    struct problem *p = NULL;
    as_status st = problem_open(problem_at(i), &p, &err);
    if (st != AS_E_UNAVAILABLE)
        ck_ok(st, err);
    ck_assert(p != NULL || problem_at(i)->fn != NULL || problem_at(i)->flat_of != NULL);
    return p;
}

/* The configuration of a row's `best`: one number for every parameter, or {name: value}. */
static struct config *best_of(const struct problem *p)
{
    const char *text = p->def->best;
    struct config *c = NULL;
    JSON_AUTO best = NULL;
    ck_ok(yaml_parse(text, strlen(text), &best, &err), err);
    if (json_is_number(best)) {
        JSON_AUTO number = as_steal(best);
        best = json_object();
        for (size_t i = 0; i < p->space->n; i++)
            json_object_set(best, p->space->params[i].name, number);
    }
    ck_ok(config_from_json(p->space, best, "", &c, &err), err);
    return c;
}

static void the_best_is_the_optimum(const struct problem *p)
{
    /* their best is read, or the best that was ever found, or the declared problem's */
    if (p->table || p->surrogate || p->declared)
        return;
    if (p->def->fn_best) {
        double x[PROBLEM_MAX_PARAMS] = {0};
        p->def->fn_best(p, x);
        double v = p->def->fn(p, x);
        ck_assert_msg(fabs(v - p->optimum) <= 1e-9, "%s: %.17g at the best", p->def->name, v);
        return;
    }
    AS_AUTO(config_freep) struct config *c = best_of(p);
    ck_assert_msg(fabs(problem_value(p, c) - p->optimum) <= 1e-9 * p->scale,
                  "%s: %.17g at the best, the optimum is %.17g", p->def->name, problem_value(p, c),
                  p->optimum);
}

static bool has_failures(const char *name)
{
    static const char *const families[] = {"cliff-",  "ball-",   "disc-",    "slope-",
                                           "banana-", "chance-", "pinhole-", "niche-"};
    for (size_t i = 0; i < AS_ARRAY_LEN(families); i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            return true;
    return false;
}

static void nothing_is_below_the_optimum(const struct problem *p)
{
    const struct problem *declared = p->declared ? p->declared : p;
    ck_assert(p->scale > 0 && isfinite(p->optimum));
    for (uint64_t t = 0; t < (declared->surrogate ? SURROGATE_DRAWS : 3000); t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(sampler_draw(p->space, SAMPLER_RANDOM, 7, t, &c, NULL, &err), err);
        double v = problem_value(p, c);
        ck_assert_msg(!(v < p->optimum), "%s: %.17g is below the optimum %.17g", p->def->name, v,
                      p->optimum);
        /* only runs fail, and trials of problems that are made for it */
        ck_assert(isfinite(v) || declared->table != NULL || has_failures(p->def->name));
    }
}

static void noise_is_drawn_by_seed_and_trial(const struct problem *p)
{
    AS_AUTO(config_freep) struct config *c = NULL;
    ck_ok(sampler_draw(p->space, SAMPLER_SOBOL, 1, 3, &c, NULL, &err), err);
    double v = problem_value(p, c), sum = 0;
    for (uint64_t t = 0; t < 400; t++) {
        double seen = problem_observe(p, c, 5, t);
        if (isnan(v))
            continue;
        ck_assert(seen == problem_observe(p, c, 5, t));
        ck_assert(p->def->fn_observe != NULL || (seen == v) == (p->def->noise == 0));
        sum += (seen - v) * (seen - v);
    }
    if (p->def->noise > 0) /* the draws are fixed: no chance of a false alarm */
        ck_assert_double_eq_tol(sqrt(sum / 400) / p->def->noise, 1, 0.15);
}

/* Without its conditions a problem has every parameter always, and the values of the declared one:
 * what does not apply there changes nothing. */
static void a_flat_problem_has_dead_parameters(const struct problem *p)
{
    size_t dead = 0;
    for (uint64_t t = 0; t < 20; t++) {
        AS_AUTO(config_freep) struct config *c = NULL, *d = config_create(p->declared->space);
        ck_ok(sampler_draw(p->space, SAMPLER_RANDOM, 3, t, &c, NULL, &err), err);
        double v = problem_value(p, c);
        for (size_t j = 0; j < p->space->n; j++) {
            ck_assert(c->entries[j].active && p->space->params[j].n_conds == 0);
            d->entries[j] = c->entries[j];
        }
        config_settle(p->declared->space, d);
        for (size_t j = 0; j < p->space->n; j++) {
            struct config_entry before = c->entries[j];
            if (d->entries[j].active)
                continue;
            c->entries[j].value = param_decode(&p->space->params[j], 0.999);
            double again = problem_value(p, c);
            ck_assert(again == v || (isnan(again) && isnan(v)));
            c->entries[j] = before;
            dead++;
        }
    }
    ck_assert_uint_gt(dead, 0);
}

/* Results that depend on the place are drawn by (seed, trial), and say more or less of the value.
 * */
static void results_depend_on_the_place(const struct problem *p)
{
    size_t other = 0;
    for (uint64_t t = 0; t < 40; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(sampler_draw(p->space, SAMPLER_RANDOM, 3, t, &c, NULL, &err), err);
        double seen = problem_observe(p, c, 5, t);
        ck_assert(seen == problem_observe(p, c, 5, t) && isfinite(seen));
        other += seen != problem_value(p, c);
    }
    ck_assert_uint_ge(other, 1);
}

static void every_cell_of_a_table_is_there(const struct problem *p)
{
    AS_AUTO(grid_freep) struct grid *g = NULL;
    size_t at_lowest = 0, failed = 0;
    ck_ok(grid_create(p->space, "/parameters", &g, &err), err);
    ck_assert_uint_eq(grid_cells(g), table_cells(p->table));
    for (uint64_t i = 0; i < grid_cells(g); i++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(grid_cell(g, i, &c, &err), err);
        at_lowest += problem_value(p, c) == p->optimum;
        failed += isnan(problem_value(p, c));
    }
    ck_assert_uint_ge(at_lowest, 1);
    ck_assert_msg(at_lowest <= 4, "%s: %zu cells are best: too easy", p->def->name, at_lowest);
    ck_assert_uint_lt(failed, grid_cells(g) / 4);
}

/* All of a problem in one test: to open one may mean reading a table or starting Python. */
START_TEST(a_problem_is_as_it_says)
{
    const struct problem_def *def = problem_at((size_t)_i);
    AS_AUTO(problem_freep) struct problem *p = opened((size_t)_i);
    if (!p)
        return;
    the_best_is_the_optimum(p);
    nothing_is_below_the_optimum(p);
    noise_is_drawn_by_seed_and_trial(p);
    if (!def->fn && !def->flat_of)
        every_cell_of_a_table_is_there(p);
    if (def->flat_of)
        a_flat_problem_has_dead_parameters(p);
    if (def->fn_observe)
        results_depend_on_the_place(p);
}
END_TEST

START_TEST(names_are_found_and_differ)
{
    ck_assert_uint_ge(problem_count(), 24);
    ck_assert(problem_at(problem_count()) == NULL && problem_find("no-such") == NULL);
    for (size_t i = 0; i < problem_count(); i++)
        ck_assert(problem_find(problem_at(i)->name) == problem_at(i));
}
END_TEST

/* What a surrogate's server does is refused or right, not silently missing. */
START_TEST(a_surrogate_without_its_script_is_unavailable)
{
    struct problem *p = NULL;
    surrogate_set_path("/nonexistent/surrogate.py");
    ck_assert_int_eq(problem_open(problem_find("xgboost-3"), &p, &err), AS_E_UNAVAILABLE);
    ck_assert_ptr_null(p);
    ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent/surrogate.py"));
    surrogate_set_path("/dev/null"); /* a program that ends at once */
    ck_assert_int_eq(problem_open(problem_find("xgboost-3"), &p, &err), AS_E_UNAVAILABLE);
}
END_TEST

/* A server that answers with the number of a request's parameters shows what is sent: the active
 * parameters alone, by the surrogate's names. */
START_TEST(a_surrogate_is_sent_the_active_parameters)
{
    static const char script[] = "import json, sys\n"
                                 "for line in sys.stdin:\n"
                                 "    p = json.loads(line)\n"
                                 "    dots = p.get('num.impute.selected.cpo') == 'impute.mean'\n"
                                 "    print(len(p) / 100 + (0.5 if dots else 0), flush=True)\n";
    char path[] = "/tmp/test-surrogate-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, script, strlen(script)), (ssize_t)strlen(script));
    close(fd);
    surrogate_set_path(path);
    AS_AUTO(problem_freep) struct problem *p = NULL;
    ck_ok(problem_open(problem_find("xgboost-3"), &p, &err), err);
    unlink(path);
    double x[PROBLEM_MAX_PARAMS];
    for (size_t i = 0; i < p->space->n; i++)
        x[i] = NAN;
    x[1] = x[4] = 0; /* booster: gblinear, impute: impute.mean */
    x[3] = 100;
    ck_assert_double_eq_tol(p->def->fn(p, x), 1 - 0.53, 1e-12);
    x[4] = 1;
    x[8] = 0.5;
    ck_assert_double_eq_tol(p->def->fn(p, x), 1 - 0.04, 1e-12);
}
END_TEST

/* Two learners: one reads `rate` alone, the other the choice `how`. */
static const char learners_space[] = "learner: {type: categorical, values: [a, b]}\n"
                                     "rate: {type: float, min: 0, max: 1}\n"
                                     "how: {type: categorical, values: [x, y]}\n";
#define LEARNERS_DOC(tree)                                                                         \
    "{\"optimum\": 0.25, \"best\": {\"learner\": \"b\", \"how\": \"y\"}, \"parts\": ["             \
    "{\"when\": {\"learner\": \"a\"}, \"columns\": [\"rate\"], \"trees\": [" tree                  \
    ", [-1, 1]]}, {\"when\": {\"learner\": \"b\"}, \"columns\": [\"how\"], "                       \
    "\"trees\": [[0, 0.5, -1, 0.5, -1, 0.25]]}]}"

static as_status learners_of(const char *text, struct space **ret_space, struct learners **ret)
{
    JSON_AUTO space = NULL;
    JSON_AUTO doc = NULL;
    ck_ok(yaml_parse(learners_space, strlen(learners_space), &space, &err), err);
    ck_ok(space_parse(space, "/parameters", ret_space, &err), err);
    ck_ok(json_parse(text, strlen(text), &doc, &err), err);
    return learners_create(doc, *ret_space, ret, &err);
}

START_TEST(a_learner_has_the_sum_of_its_own_trees)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    AS_AUTO(learners_freep) struct learners *l = NULL;
    double x[3];
    ck_ok(learners_of(LEARNERS_DOC("[0, 0.5, 0, 0.2, -1, 2, -1, 4, -1, 8]"), &s, &l), err);
    /* rate, value: the left child has what is at most the threshold */
    static const double seen[][2] = {{0.2, 3}, {0.3, 5}, {0.5, 5}, {0.6, 9}};
    for (size_t i = 0; i < AS_ARRAY_LEN(seen); i++)
        for (double how = 0; how < 2; how++)
            ck_assert(learners_value(l, (double[]){0, seen[i][0], how}) == seen[i][1]);
    ck_assert(learners_value(l, (double[]){1, 0.3, 0}) == 0.5);
    ck_assert(learners_value(l, (double[]){0, NAN, 0}) == 9); /* not active: right */
    learners_best(l, x);
    ck_assert(x[0] == 1 && isnan(x[1]) && x[2] == 1);
    ck_assert(learners_value(l, x) == learners_lowest(l));
}
END_TEST

START_TEST(a_tree_that_is_not_complete_is_refused)
{
    static const char *const docs[] = {LEARNERS_DOC("[]"), LEARNERS_DOC("[0, 0.5, -1, 1]"),
                                       LEARNERS_DOC("[-1, 1, -1, 1]"),
                                       LEARNERS_DOC("[1, 0.5, -1, 1, -1, 2]")};
    for (size_t i = 0; i < AS_ARRAY_LEN(docs); i++) {
        AS_AUTO(space_freep) struct space *s = NULL;
        AS_AUTO(learners_freep) struct learners *l = NULL;
        ck_assert_int_eq(learners_of(docs[i], &s, &l), AS_E_INVAL);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("bench_problems");
    TCase *t = tcase_create("problems");
    tcase_add_loop_test(t, a_problem_is_as_it_says, 0, (int)problem_count());
    tcase_add_test(t, names_are_found_and_differ);
    tcase_add_test(t, a_surrogate_without_its_script_is_unavailable);
    tcase_add_test(t, a_surrogate_is_sent_the_active_parameters);
    tcase_add_test(t, a_learner_has_the_sum_of_its_own_trees);
    tcase_add_test(t, a_tree_that_is_not_complete_is_refused);
    suite_add_tcase(s, t);
    return s;
}
