/* Suggestions of every method through suggest().
 *
 * The tests check promises that hold for any method: equal inputs give equal bits with and without
 * a cache, suggestions are allowed and never repeated, a finite space ends, and no history
 * (failures, NaN, duplicates, constants, foreign states) stops the search. The sweeps run in memory
 * (sweep.h). Where gp leads is in test_suggest_gp.c. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/yaml_reader.h"
#include "search/auto.h"
#include "search/cmaes/cmaes.h"
#include "search/coordinate/coordinate.h"
#include "search/evolution/evolution.h"
#include "search/forest/forest_method.h"
#include "search/mcmc/mcmc.h"
#include "search/gp/gp.h"
#include "search/prior/warm_start.h"
#include "search/sampling/grid_method.h"
#include "search/sampling/sampler.h"
#include "search/tpe/tpe.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"
#include "tests/search/sweep.h"

#define MIXED                                                                                      \
    "lr: {type: float, min: 1e-5, max: 1, scale: log}\n"                                           \
    "width: {type: int, min: 8, max: 512, scale: log}\n"                                           \
    "layers: {type: int, min: 1, max: 4}\n"                                                        \
    "opt: {type: categorical, values: [sgd, adamw, lion]}\n"                                       \
    "momentum: {type: float, min: 0, max: 0.99, when: {opt: sgd}}\n"                               \
    "norm: {type: categorical, values: [none, batch, layer], when: {layers: [2, 3, 4]}}\n"         \
    "drop: {type: float, min: 0, max: 0.5, step: 0.05}\n"                                          \
    "fixed: {type: constant, value: 7}\n"

/* Two of them right for sweep_bowl(), two wrong. */
#define BELIEVED                                                                                   \
    "lr: {type: float, min: 1e-5, max: 1, scale: log, prior: {mean: 1e-3, deviation: 1}}\n"        \
    "width: {type: int, min: 8, max: 512, scale: log, prior: {mean: 500, deviation: 0.3}}\n"       \
    "opt: {type: categorical, values: [sgd, adamw, lion], prior: {weights: {lion: 9}}}\n"          \
    "momentum: {type: float, min: 0, max: 0.99, when: {opt: sgd},\n"                               \
    "           prior: {mean: 0.9, deviation: 0.05}}\n"                                            \
    "size: {type: ordinal, values: [xs, s, m, l], prior: {weights: {s: 4}}}\n"                     \
    "drop: {type: float, min: 0, max: 0.5, step: 0.05, prior: {mean: 0.15, deviation: 0.1}}\n"

/* Methods that learn from results; loop tests run once for each. */
static const struct search_method *const learning[] = {
    &search_gp,        &search_tpe,        &search_forest, &search_cmaes,
    &search_evolution, &search_coordinate, &search_mcmc,   &search_auto};
#define LEARNING ((int)AS_ARRAY_LEN(learning))

/* An asynchronous step: some of the pending trials end, out of order; some fail, some are NaN. */
static void finish_some(struct sweep *w, struct rng *r, size_t slots)
{
    for (size_t t = w->n; t-- > 0;) {
        if (w->trials[t].state != OBSERVED_PENDING)
            continue;
        bool must = t + slots < w->n;
        if (!must && rng_below(r, 3))
            continue;
        uint64_t fate = rng_below(r, 12);
        if (fate == 0)
            w->trials[t].state = OBSERVED_FAILED;
        else
            sweep_tell(w, t, fate == 1 ? NAN : sweep_bowl(w, t));
    }
}

/* Do what a restarted server does between two suggestions. */
static void through_text(struct sweep *w)
{
    if (!w->state)
        return;
    AS_AUTO(as_freep) char *text = json_format(w->state);
    json_t *back = NULL;
    struct as_err err = {0};
    ck_ok(json_parse(text, strlen(text), &back, &err), err);
    json_decref(w->state);
    w->state = back;
}

static void run_twice_after(const struct search_method *m, const struct space *s,
                            const struct warm_start *before, uint64_t seed, size_t trials,
                            size_t slots)
{
    AS_AUTO(sweep_done) struct sweep a = {0}, b = {0};
    struct as_err err = {0};
    struct rng ra, rb;
    sweep_init(&a, s, seed, true);
    sweep_init(&b, s, seed, false);
    a.spec.method = b.spec.method = m;
    a.spec.earlier = b.spec.earlier = before;
    rng_init(&ra, seed, 1);
    rng_init(&rb, seed, 1);
    for (size_t t = 0; t < trials; t++) {
        as_status st = sweep_ask(&a, &err);
        ck_assert_int_eq(st, sweep_ask(&b, NULL));
        if (st == AS_E_EXHAUSTED)
            break;
        ck_ok(st, err);
        sweep_check(&a, t);
        ck_assert(config_equal(s, a.trials[t].config, b.trials[t].config));
        ck_assert(json_equal(a.reason, b.reason));
        through_text(&b);
        ck_assert_int_eq(a.state != NULL, b.state != NULL);
        if (a.state) {
            AS_AUTO(as_freep) char *left = json_format(a.state), *right = json_format(b.state);
            ck_assert_str_eq(left, right);
        }
        if (t % 7 == 6) { /* a server with an empty cache takes over */
            search_cache_free(a.cache);
            a.cache = search_cache_create();
        }
        finish_some(&a, &ra, slots);
        finish_some(&b, &rb, slots);
    }
    sweep_done(&b);
}

static void run_twice(const struct search_method *m, const struct space *s, uint64_t seed,
                      size_t trials, size_t slots)
{
    run_twice_after(m, s, NULL, seed, trials, slots);
}

/* Two earlier sweeps, one of which knows other parameters. The first trial is the best of the
 * first. */
START_TEST(same_bits_after_earlier_sweeps)
{
    static const char text[] =
        "{\"prior\":[{\"sweep\":\"a\",\"completed\":30,\"trials\":["
        "{\"params\":{\"lr\":0.01,\"width\":40,\"opt\":\"lion\",\"layers\":2,\"norm\":\"batch\"},"
        "\"cost\":1},"
        "{\"params\":{\"lr\":0.02,\"width\":41,\"opt\":\"sgd\",\"momentum\":0.5},\"cost\":2}]},"
        "{\"sweep\":\"b\",\"completed\":5,\"trials\":[{\"params\":{\"drop\":0.15},\"cost\":7}]}]}";
    AS_AUTO(space_freep) struct space *s = space_of_yaml(MIXED);
    AS_AUTO(warm_start_freep) struct warm_start *before = NULL;
    JSON_AUTO j = NULL;
    struct json_fields f;
    struct as_err err = {0};
    ck_ok(json_parse(text, sizeof text - 1, &j, &err), err);
    ck_ok(json_fields_init(&f, j, "/search", &err), err);
    ck_ok(warm_start_parse(&f, s, &before, &err), err);
    run_twice_after(learning[_i], s, before, 5, 50, 4);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 1, false);
    w.spec.method = learning[_i];
    w.spec.earlier = before;
    for (size_t t = 0; t < 2; t++)
        ck_ok(sweep_ask(&w, &err), err);
    ck_assert_double_eq_tol(sweep_number(&w, 0, 0), 0.01, 1e-9);
    ck_assert(sweep_number(&w, 0, 1) == 40 && sweep_number(&w, 0, 3) == 2);
    ck_assert_double_eq_tol(sweep_number(&w, 1, 6), 0.15, 1e-9);
}
END_TEST

/* A snapshot that is large enough for a model (search/gp/guide.h). */
START_TEST(same_bits_with_guides)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: -1, max: 2}\ny: {type: int, min: 0, max: 100000}\n");
    AS_AUTO(warm_start_freep) struct warm_start *before = NULL;
    JSON_AUTO trials = json_array();
    struct json_fields f;
    struct as_err err = {0};
    for (int i = 0; i < 30; i++) {
        double x = -1 + 0.1 * i;
        json_array_append_new(trials, json_pack("{s:{s:f, s:i}, s:f}", "params", "x", x, "y",
                                                i * 7919 % 100000, "cost", (x - 0.5) * (x - 0.5)));
    }
    JSON_AUTO j = json_pack("{s:[{s:s, s:i, s:O}]}", "prior", "sweep", "a", "completed", 30,
                            "trials", trials);
    ck_ok(json_fields_init(&f, j, "/search", &err), err);
    ck_ok(warm_start_parse(&f, s, &before, &err), err);
    run_twice_after(learning[_i], s, before, 5, 40, 4);
}
END_TEST

START_TEST(same_bits_with_and_without_cache)
{
    AS_AUTO(space_freep) struct space *mixed = space_of_yaml(MIXED);
    run_twice(learning[_i], mixed, 1, 60, 4);
    AS_AUTO(space_freep) struct space *believed = space_of_yaml(BELIEVED);
    run_twice(learning[_i], believed, 3, 60, 4);
    AS_AUTO(space_freep)
    struct space *plane =
        space_of_yaml("x: {type: float, min: -1, max: 2}\ny: {type: float, min: 0, max: 1}\n");
    run_twice(learning[_i], plane, 2, 60, 8);
    for (uint64_t seed = 0; seed < 6; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        run_twice(learning[_i], s, seed, 24, 3);
    }
}
END_TEST

/* Past 200 rows the factor grows row by row, and fits happen only sometimes. */
START_TEST(same_bits_when_the_factor_grows)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: -1, max: 2}\ny: {type: int, min: 0, max: 100000}\n");
    AS_AUTO(sweep_done) struct sweep a = {0}, b = {0};
    struct as_err err = {0};
    sweep_init(&a, s, 3, true);
    sweep_init(&b, s, 3, false);
    for (uint64_t t = 0; t < 205; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(sampler_draw(s, SAMPLER_RANDOM, 9, t, &c, NULL, &err), err);
        sweep_add(&a, c, 0);
        sweep_tell(&a, t, sweep_bowl(&a, t));
        sweep_add(&b, c, sweep_bowl(&a, t));
    }
    size_t fits = 0;
    for (size_t t = 205; t < 240; t++) {
        ck_ok(sweep_ask(&a, &err), err);
        ck_ok(sweep_ask(&b, &err), err);
        sweep_check(&a, t);
        ck_assert(config_equal(s, a.trials[t].config, b.trials[t].config));
        ck_assert(json_equal(a.reason, b.reason));
        ck_assert(json_equal(a.state, b.state));
        through_text(&b);
        fits += json_is_true(json_object_get(json_object_get(a.reason, "fit"), "refitted"));
        if (t % 3 == 2) { /* three at a time, reported in reverse order */
            for (size_t k = 0; k < 3; k++) {
                sweep_tell(&a, t - k, sweep_bowl(&a, t - k));
                sweep_tell(&b, t - k, sweep_bowl(&b, t - k));
            }
        }
    }
    ck_assert_uint_gt(fits, 1);
    ck_assert_uint_lt(fits, 25);
    sweep_done(&b);
}
END_TEST

START_TEST(finite_spaces_end_exactly)
{
    static const struct {
        const char *space;
        size_t cells;
    } cases[] = {
        {"a: {type: int, min: 1, max: 4}\nb: {type: bool}\n", 8},
        {"a: {type: constant, value: x}\n", 1},
        {"a: {type: int, min: 3, max: 3}\n", 1},
        {"o: {type: categorical, values: [p, q]}\n"
         "k: {type: int, min: 0, max: 9, when: {o: q}}\n"
         "d: {type: ordinal, values: [1, 4, 16]}\n",
         33},
        {"a: {type: int, min: 0, max: 35}\nb: {type: int, min: 0, max: 35, when: {a: 1}}\n", 71},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        AS_AUTO(space_freep) struct space *s = space_of_yaml(cases[i].space);
        AS_AUTO(sweep_done) struct sweep w = {0};
        struct as_err err = {0};
        sweep_init(&w, s, i, true);
        w.spec.method = learning[_i];
        for (size_t t = 0; t < cases[i].cells; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            sweep_check(&w, t);
            if (t % 3) /* some stay pending: they count as tried */
                sweep_tell(&w, t, sweep_bowl(&w, t));
        }
        ck_fails(sweep_ask(&w, &err), AS_E_EXHAUSTED, err, "every configuration");
    }
}
END_TEST

/* Constraints leave few of many configurations: the sweep ends when those are used up, also if the
 * space is too large to enumerate. */
START_TEST(few_are_used_up)
{
    static const struct {
        int max; /* of the third */
        size_t cells;
        const char *rule, *message;
    } cases[] = {
        {99, 3, "a == 37 and b == 12 and c >= 97", "every configuration of the space was tried"},
        {101, 125, "a < 5 and b < 5 and c < 5", "every configuration that was found"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char yaml[200];
        (void)snprintf(yaml, sizeof yaml,
                       "a: {type: int, min: 0, max: 99}\nb: {type: int, min: 0, max: 99}\n"
                       "c: {type: int, min: 0, max: %d}\n",
                       cases[i].max);
        AS_AUTO(space_freep) struct space *s = space_of_yaml(yaml);
        AS_AUTO(sweep_done) struct sweep w = {0};
        struct as_err err = {0};
        JSON_AUTO rules = json_pack("[s]", cases[i].rule);
        ck_ok(space_parse_constraints(s, rules, "/parameter_constraints", &err), err);
        sweep_init(&w, s, 4, true);
        w.spec.method = learning[_i];
        for (size_t t = 0; t < cases[i].cells; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            sweep_check(&w, t);
            sweep_tell(&w, t, sweep_bowl(&w, t));
        }
        ck_fails(sweep_ask(&w, &err), AS_E_EXHAUSTED, err, cases[i].message);
    }
}
END_TEST

START_TEST(constraints_hold)
{
    AS_AUTO(space_freep)
    struct space *s = space_of_yaml("batch: {type: int, min: 1, max: 512, scale: log}\n"
                                    "steps: {type: int, min: 1, max: 64}\n"
                                    "x: {type: float, min: 0, max: 1}\n"
                                    "y: {type: float, min: 0, max: 1}\n"
                                    "o: {type: categorical, values: [a, b]}\n");
    struct as_err err = {0};
    JSON_AUTO rules = json_pack("[s,s]", "batch * steps <= 256", "x + y < 0.5");
    JSON_AUTO never = json_pack("[{s:s,s:{s:f}}]", "o", "b", "x", "max", 0.1);
    ck_ok(space_parse_constraints(s, rules, "/parameter_constraints", &err), err);
    ck_ok(space_parse_forbidden(s, never, "/forbidden", &err), err);
    AS_AUTO(sweep_done) struct sweep w = {0};
    sweep_init(&w, s, 4, true);
    w.spec.method = learning[_i];
    double best = INFINITY;
    for (size_t t = 0; t < 40; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        sweep_check(&w, t);
        /* the best allowed place is on the border x + y = 0.5 */
        double x = sweep_number(&w, t, 2), y = sweep_number(&w, t, 3);
        double v = (x - 0.6) * (x - 0.6) + (y - 0.6) * (y - 0.6);
        sweep_tell(&w, t, v);
        best = fmin(best, v);
    }
    bool is_exact = learning[_i] == &search_gp || learning[_i] == &search_auto;
    ck_assert_msg(best < (is_exact ? 0.26 : 0.5), "best is %g, 0.245 is possible", best);
}
END_TEST

/* No content of a history stops the search. */
START_TEST(odd_histories_never_break_it)
{
    static const double odd[] = {0, 1e300, -1e300, 5e-324, INFINITY, -INFINITY, NAN, 1};
    AS_AUTO(space_freep) struct space *s = space_of_yaml(MIXED);
    for (int kind = 0; kind < 6; kind++) {
        AS_AUTO(sweep_done) struct sweep w = {0};
        struct as_err err = {0};
        sweep_init(&w, s, (uint64_t)kind, true);
        w.spec.method = learning[_i];
        for (size_t t = 0; t < 18; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            sweep_check(&w, t);
            switch (kind) {
            case 0: /* all the same */
                sweep_tell(&w, t, 3);
                break;
            case 1: /* all failed */
                w.trials[t].state = OBSERVED_FAILED;
                break;
            case 2:
                sweep_tell(&w, t, odd[t % AS_ARRAY_LEN(odd)]);
                break;
            case 3: /* nothing ends */
                break;
            case 4: /* one value, then failures */
                sweep_tell(&w, t, t ? NAN : 1);
                break;
            default: /* enormous and tiny */
                sweep_tell(&w, t, t % 2 ? 1e300 * sweep_bowl(&w, t) : 1e-300 * sweep_bowl(&w, t));
            }
        }
    }
}
END_TEST

/* The same configuration observed often with different values, as users may add it. */
START_TEST(repeated_rows_never_break_it)
{
    AS_AUTO(space_freep)
    struct space *s =
        space_of_yaml("x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}\n");
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 1, true);
    w.spec.method = learning[_i];
    AS_AUTO(config_freep) struct config *c = NULL;
    ck_ok(sampler_draw(s, SAMPLER_SOBOL, 1, 0, &c, NULL, &err), err);
    for (size_t i = 0; i < 30; i++)
        sweep_add(&w, c, (double)(i % 5));
    for (size_t t = 30; t < 40; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        for (size_t k = 0; k < t; k++)
            ck_assert(!config_equal(s, w.trials[t].config, w.trials[k].config));
        sweep_tell(&w, t, sweep_bowl(&w, t));
    }
    ck_assert_str_ne(json_string_value(json_object_get(w.reason, "phase")), "initial");
}
END_TEST

START_TEST(many_parameters_and_few)
{
    AS_AUTO(str_done) struct str many = {0};
    for (int i = 0; i < 200; i++)
        str_printf(&many, "p%d: {type: %s}\n", i,
                   i % 4 == 3 ? "categorical, values: [a, b, c]" : "float, min: 0, max: 1");
    AS_AUTO(str_done) struct str wide = {0};
    str_puts(&wide, "c: {type: categorical, values: [0");
    for (int i = 1; i < 1000; i++)
        str_printf(&wide, ", %d", i);
    str_puts(&wide, "]}\nb: {type: bool}\n");
    const char *texts[] = {str_cstr(&many), str_cstr(&wide), "x: {type: float, min: 0, max: 1}\n",
                           "n: {type: int, min: 0, max: 9000000000000000000}\n"};
    for (size_t k = 0; k < AS_ARRAY_LEN(texts); k++) {
        AS_AUTO(space_freep) struct space *s = space_of_yaml(texts[k]);
        AS_AUTO(sweep_done) struct sweep w = {0};
        struct as_err err = {0};
        sweep_init(&w, s, k, true);
        w.spec.method = learning[_i];
        for (size_t t = 0; t < 14; t++) {
            ck_ok(sweep_ask(&w, &err), err);
            sweep_check(&w, t);
            sweep_tell(&w, t, sweep_bowl(&w, t));
        }
    }
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    AS_AUTO(space_freep) struct space *s = space_of_yaml(MIXED);
    AS_AUTO(sweep_done) struct sweep w = {0};
    struct as_err err = {0};
    sweep_init(&w, s, 1, false);
    for (size_t t = 0; t < 12; t++) {
        ck_ok(sweep_ask(&w, &err), err);
        if (t == 4)
            w.trials[t].state = OBSERVED_FAILED;
        else
            sweep_tell(&w, t, sweep_bowl(&w, t));
    }
    struct history h = {w.trials, w.n};
    for (size_t nth = 1;; nth++) {
        struct suggestion got = {0};
        as_mem_fail_nth(nth);
        as_status st = suggest(&w.spec, &h, w.state, 12, 12, NULL, &got, &err);
        as_mem_fail_nth(0);
        if (st == AS_OK) {
            suggestion_done(&got);
            ck_assert_uint_gt(nth, 20);
            break;
        }
        ck_assert_int_eq(st, AS_E_NOMEM);
        ck_assert_ptr_null(got.config);
    }
}
END_TEST

START_TEST(parses_methods)
{
    static const struct search_method *const rows[] = {
        &search_grid,       &search_random, &search_sobol, &search_gp,
        &search_tpe,        &search_forest, &search_cmaes, &search_evolution,
        &search_coordinate, &search_mcmc,   &search_auto};
    struct as_err err = {0};
    const struct search_method *m = NULL;
    for (size_t i = 0; i < AS_ARRAY_LEN(rows); i++) {
        ck_ok(search_method_parse(rows[i]->name, "/search/method", &m, &err), err);
        ck_assert_ptr_eq(m, rows[i]);
        ck_assert(m->sample && m->suggest);
        ck_assert_int_eq(m->is_enumeration, m->prepare != NULL);
        ck_assert_int_eq(m->prepare != NULL, m->prepared_free != NULL);
        ck_assert(!m->cache_create == !m->cache_free && !m->cache_create == !m->cache_bytes);
    }
    ck_ok(search_method_parse("grid", "/search/method", &m, &err), err);
    ck_fails(search_method_parse("bohb", "/search/method", &m, &err), AS_E_INVAL, err,
             "/search/method: found 'bohb', expected one of grid, random, sobol, gp, tpe, forest, "
             "cmaes, evolution, coordinate, mcmc, auto");
    ck_assert_str_eq(err.pointer, "/search/method");
    ck_assert_ptr_eq(m, &search_grid);
    ck_ok(search_method_parse(NULL, "/search/method", &m, &err), err);
    ck_assert_ptr_eq(m, &search_gp);
    ck_assert(m->is_model_based && !m->is_enumeration);
}
END_TEST

/* A prepared grid gives the same cells as a grid made for each suggestion. */
START_TEST(prepared_or_not_is_the_same)
{
    AS_AUTO(space_freep) struct space *s = space_at_random(5);
    struct as_err err = {0};
    struct search_prepared *p = NULL;
    uint64_t total = 0;
    ck_ok(search_prepare(&search_grid, s, "/parameters", &p, &total, &err), err);
    struct search_spec with = {.space = s, .method = &search_grid, .prepared = p};
    struct search_spec without = {.space = s, .method = &search_grid};
    AS_AUTO(config_freep) struct config *sample = NULL;
    ck_ok(search_sample(&without, &sample, &err), err);
    for (uint64_t t = 0; t < total && t < 20; t++) {
        AS_AUTO(suggestion_done) struct suggestion a = {0};
        AS_AUTO(suggestion_done) struct suggestion b = {0};
        ck_ok(suggest(&with, NULL, NULL, t, t, NULL, &a, &err), err);
        ck_ok(suggest(&without, NULL, NULL, t, t, NULL, &b, &err), err);
        ck_assert(config_equal(s, a.config, b.config) && json_equal(a.reason, b.reason));
        ck_assert_int_eq(config_equal(s, a.config, sample), t == 0);
    }
    search_prepared_free(&search_grid, p);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/suggest");
    TCase *t = tcase_create("suggest");
    tcase_add_test(t, parses_methods);
    tcase_add_test(t, prepared_or_not_is_the_same);
    tcase_add_loop_test(t, same_bits_after_earlier_sweeps, 0, LEARNING);
    tcase_add_loop_test(t, same_bits_with_guides, 0, LEARNING);
    tcase_add_loop_test(t, same_bits_with_and_without_cache, 0, LEARNING);
    tcase_add_test(t, same_bits_when_the_factor_grows);
    tcase_add_loop_test(t, finite_spaces_end_exactly, 0, LEARNING);
    tcase_add_loop_test(t, few_are_used_up, 0, LEARNING);
    tcase_add_loop_test(t, constraints_hold, 0, LEARNING);
    tcase_add_loop_test(t, odd_histories_never_break_it, 0, LEARNING);
    tcase_add_loop_test(t, repeated_rows_never_break_it, 0, LEARNING);
    tcase_add_loop_test(t, many_parameters_and_few, 0, LEARNING);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
