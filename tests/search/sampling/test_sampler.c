/* Random and Sobol configurations.
 *
 * The golden suggestions hold bits that must never change, because stored sweeps replay with them.
 * The other tests check that draws do not depend on the order of calls, that disallowed draws are
 * repeated deterministically, and that a rare allowed configuration of a finite space is found. */
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/sampling/grid_method.h"
#include "search/sampling/sampler.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static const struct search_method *const methods[] = {&search_grid, &search_random, &search_sobol};

/* Suggestion `index` of a method that reads no history. */
static as_status suggest_at(const struct space *s, const struct search_method *m, uint64_t seed,
                            uint64_t index, struct suggestion *ret, struct as_err *err)
{
    struct search_spec spec = {.space = s, .method = m, .seed = seed, .n_objectives = 1};
    return m->suggest(&spec, NULL, NULL, index, index, NULL, ret, err);
}

static char *suggest(const struct space *s, const struct search_method *m, uint64_t seed,
                     uint64_t trial)
{
    struct as_err err = {0};
    AS_AUTO(suggestion_done) struct suggestion made = {0};
    as_status st = suggest_at(s, m, seed, trial, &made, &err);
    if (st == AS_E_EXHAUSTED)
        return NULL;
    ck_ok(st, err);
    ck_assert_str_eq(json_string_value(json_object_get(made.reason, "method")), m->name);
    ck_assert_ptr_null(made.state);
    const struct config *c = made.config;
    for (size_t i = 0; i < s->n; i++) {
        ck_assert_int_eq(c->entries[i].active, config_wants(s, c, i));
        ck_assert(!c->entries[i].active || param_contains(&s->params[i], c->entries[i].value));
    }
    JSON_AUTO j = config_to_json(s, c);
    return json_format(j);
}

/* The answers are the same in any order of calls and for repeated calls. */
START_TEST(replays)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        for (size_t m = 0; m < AS_ARRAY_LEN(methods); m++) {
            char *first[16];
            for (uint64_t t = 0; t < 16; t++)
                first[t] = suggest(s, methods[m], seed, t);
            for (uint64_t t = 16; t-- > 0;) {
                AS_AUTO(as_freep) char *again = suggest(s, methods[m], seed, t);
                ck_assert(first[t] == again || strcmp(first[t], again) == 0);
                free(first[t]);
            }
        }
    }
}
END_TEST

/* Bits that must never change: stored sweeps replay with them. */
START_TEST(golden_suggestions)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    struct as_err err = {0};
    ck_ok(
        space_from_yaml("lr: {type: float, min: 0, max: 1}\n"
                        "width: {type: int, min: 16, max: 512, scale: log}\n"
                        "opt: {type: categorical, values: [sgd, adamw]}\n"
                        "momentum: {type: float, min: 0, max: 0.9, step: 0.1, when: {opt: sgd}}\n",
                        &s, &err),
        err);
    static const struct {
        const struct search_method *method;
        uint64_t trial;
        const char *want;
    } golden[] = {
        {&search_random, 0,
         "{\"lr\":0.17173538717791426,\"momentum\":0.7,\"opt\":\"sgd\",\"width\":49}"},
        {&search_random, 1, "{\"lr\":0.7074823076253859,\"opt\":\"adamw\",\"width\":430}"},
        {&search_random, 1000000, "{\"lr\":0.4141152910999327,\"opt\":\"adamw\",\"width\":30}"},
        {&search_sobol, 0, "{\"lr\":0.7244036049814895,\"opt\":\"adamw\",\"width\":431}"},
        {&search_sobol, 1,
         "{\"lr\":0.16685495164711028,\"momentum\":0.2,\"opt\":\"sgd\",\"width\":28}"},
        {&search_sobol, 1000000,
         "{\"lr\":0.7267230529105291,\"momentum\":0.2,\"opt\":\"sgd\",\"width\":41}"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(golden); i++) {
        AS_AUTO(as_freep) char *text = suggest(s, golden[i].method, 7, golden[i].trial);
        ck_assert_str_eq(text, golden[i].want);
    }
}
END_TEST

START_TEST(seeds_and_trials_differ)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml("x: {type: float, min: 0, max: 1}", &s, &err), err);
    for (size_t m = 1; m < AS_ARRAY_LEN(methods); m++) {
        AS_AUTO(as_freep) char *a = suggest(s, methods[m], 1, 0);
        AS_AUTO(as_freep) char *b = suggest(s, methods[m], 1, 1);
        AS_AUTO(as_freep) char *c = suggest(s, methods[m], 2, 0);
        ck_assert_str_ne(a, b);
        ck_assert_str_ne(a, c);
    }
}
END_TEST

static struct space *constrained(const char *yaml, const char *constraint)
{
    struct space *s = NULL;
    struct as_err err = {0};
    JSON_AUTO list = json_pack("[s]", constraint);
    ck_ok(space_from_yaml(yaml, &s, &err), err);
    ck_ok(space_parse_constraints(s, list, "/parameter_constraints", &err), err);
    return s;
}

/* An allowed first draw is kept. Other draws are repeated, with the same result each time. */
START_TEST(redraws_what_is_not_allowed)
{
    const char *yaml = "x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}";
    AS_AUTO(space_freep) struct space *open = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml(yaml, &open, &err), err);
    AS_AUTO(space_freep) struct space *s = constrained(yaml, "x + y < 0.5");
    for (size_t m = 1; m < AS_ARRAY_LEN(methods); m++) {
        size_t kept = 0;
        for (uint64_t t = 0; t < 400; t++) {
            AS_AUTO(suggestion_done) struct suggestion a = {0};
            AS_AUTO(suggestion_done) struct suggestion b = {0};
            AS_AUTO(suggestion_done) struct suggestion free_one = {0};
            ck_ok(suggest_at(s, methods[m], 3, t, &a, &err), err);
            ck_ok(suggest_at(s, methods[m], 3, t, &b, &err), err);
            ck_ok(suggest_at(open, methods[m], 3, t, &free_one, &err), err);
            ck_assert(space_allows(s, a.config) && config_equal(s, a.config, b.config));
            bool first = json_object_get(a.reason, "redraws") == NULL;
            ck_assert_int_eq(first, space_allows(s, free_one.config));
            ck_assert_int_eq(first, config_equal(s, a.config, free_one.config));
            kept += first;
        }
        /* 400 draws with p = 1/8: 50, deviation 6.6; 5 deviations: 1 in 1.7 million */
        ck_assert_uint_gt(kept, 17);
        ck_assert_uint_lt(kept, 83);
    }
}
END_TEST

/* One allowed pair of a million: it is found, by listing. */
START_TEST(finds_a_needle_in_a_finite_space)
{
    AS_AUTO(space_freep)
    struct space *s =
        constrained("a: {type: int, min: 1, max: 1000}\nb: {type: int, min: 1, max: 1000}",
                    "a == 77 and b == 5");
    struct as_err err = {0};
    ck_ok(sampler_check(s, &err), err);
    AS_AUTO(config_freep) struct config *c = NULL;
    ck_ok(sampler_draw(s, SAMPLER_RANDOM, 1, 0, &c, NULL, &err), err);
    ck_assert(c->entries[0].value.integer == 77 && c->entries[1].value.integer == 5);
}
END_TEST

START_TEST(says_which_constraint_leaves_nothing)
{
    AS_AUTO(space_freep)
    struct space *s = constrained(
        "x: {type: float, min: 0, max: 1}\ny: {type: float, min: 0, max: 1}", "x + y == 0.3");
    JSON_AUTO list = json_pack("[{s:{s:f}}]", "x", "min", 0.999);
    struct as_err err = {0};
    struct config *c = NULL;
    ck_ok(space_parse_forbidden(s, list, "/forbidden", &err), err);
    ck_fails(sampler_check(s, &err), AS_E_UNSUPPORTED, err, "no configuration that is allowed");
    ck_assert_str_eq(err.pointer, "/parameter_constraints/0");
    err = (struct as_err){0};
    ck_fails(sampler_draw(s, SAMPLER_SOBOL, 1, 0, &c, NULL, &err), AS_E_UNSUPPORTED, err,
             "/parameter_constraints/0");
    ck_assert_ptr_null(c);
}
END_TEST

/* Sums, products, bands and branches that random draws do not hit. Each was refused, or refused for
 * some seeds. */
START_TEST(narrow_spaces_are_drawn_for_every_seed)
{
    static const struct {
        const char *kind, *constraint;
        size_t n;
    } cases[] = {
        {"{type: float, min: 0, max: 1}", "p0 + p1 + p2 + p3 + p4 + p5 + p6 <= 1", 7},
        {"{type: float, min: 0, max: 1}", "p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7 + p8 <= 0.1", 9},
        {"{type: float, min: 0, max: 1}", "abs(p0 + p1 + p2 - 1) < 1e-6", 3},
        {"{type: float, min: 0.001, max: 1000, scale: log}",
         "p0 * p1 * p2 < 1e-8 and p0 > p1 and p1 > p2", 3},
        {"{type: int, min: 0, max: 100000}", "p0 + 2 * p1 == 77777 and p1 > p2 and p2 > p3", 4},
        {"{type: int, min: 1, max: 1000000}", "p0 == p1 and p1 == p2", 3},
        {"{type: float, min: -5, max: 5}", "p0 ** 2 + p1 ** 2 + p2 ** 2 + p3 ** 2 + p4 ** 2 < 0.01",
         5},
    };
    char yaml[2000] = "";
    for (size_t i = 0; i < cases[_i].n; i++)
        snprintf(yaml + strlen(yaml), sizeof yaml - strlen(yaml), "p%zu: %s\n", i, cases[_i].kind);
    AS_AUTO(space_freep) struct space *s = constrained(yaml, cases[_i].constraint);
    struct as_err err = {0};
    ck_ok(sampler_check(s, &err), err);
    for (uint64_t seed = 0; seed < 20; seed++) {
        AS_AUTO(config_freep) struct config *before = NULL;
        for (uint64_t t = 0; t < 2; t++) {
            AS_AUTO(config_freep) struct config *c = NULL;
            sampler_kind kind = seed % 2 ? SAMPLER_RANDOM : SAMPLER_SOBOL;
            ck_ok(sampler_draw(s, kind, seed, t, &c, NULL, &err), err);
            ck_assert(space_allows(s, c));
            ck_assert(!before || !config_equal(s, before, c));
            config_free(before);
            before = as_steal(c);
        }
    }
}
END_TEST

START_TEST(random_constraints_are_kept)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        struct as_err err = {0};
        space_constrain_at_random(s, seed);
        if (sampler_check(s, &err) < 0)
            continue;
        for (uint64_t t = 0; t < 20; t++) {
            AS_AUTO(config_freep) struct config *c = NULL;
            ck_ok(sampler_draw(s, t % 2 ? SAMPLER_RANDOM : SAMPLER_SOBOL, 2, t, &c, NULL, &err),
                  err);
            ck_assert(space_allows(s, c));
        }
    }
}
END_TEST

START_TEST(grid_ends_after_its_last_cell)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml("a: {type: int, min: 1, max: 3}\nb: {type: bool}", &s, &err), err);
    AS_AUTO(suggestion_done) struct suggestion made = {0};
    ck_ok(suggest_at(s, &search_grid, 0, 5, &made, &err), err);
    AS_AUTO(as_freep) char *text = json_format(made.reason);
    ck_assert_str_eq(text, "{\"cell\":5,\"cells\":6,\"method\":\"grid\"}");
    struct suggestion none = {0};
    ck_fails(suggest_at(s, &search_grid, 0, 6, &none, &err), AS_E_EXHAUSTED, err, "6 cells");
    ck_assert(!none.config && !none.reason);
}
END_TEST

/* 2^k Sobol trials give each of 2^k equally likely values exactly once. */
START_TEST(sobol_balances_discrete_values)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml("a: {type: int, min: 0, max: 63}\nb: {type: bool}", &s, &err), err);
    unsigned seen[64] = {0}, yes = 0;
    for (uint64_t t = 0; t < 64; t++) {
        AS_AUTO(config_freep) struct config *c = NULL;
        ck_ok(sampler_draw(s, SAMPLER_SOBOL, 3, t, &c, NULL, &err), err);
        seen[c->entries[0].value.integer]++;
        yes += c->entries[1].value.choice == 1;
    }
    for (size_t i = 0; i < 64; i++)
        ck_assert_uint_eq(seen[i], 1);
    ck_assert_uint_eq(yes, 32);
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    AS_AUTO(space_freep) struct space *s = space_at_random(11);
    for (size_t m = 0; m < AS_ARRAY_LEN(methods); m++) {
        for (size_t nth = 1;; nth++) {
            struct suggestion made = {0};
            struct as_err err = {0};
            as_mem_fail_nth(nth);
            as_status st = suggest_at(s, methods[m], 1, 0, &made, &err);
            as_mem_fail_nth(0);
            if (st == AS_OK) {
                suggestion_done(&made);
                ck_assert_uint_gt(nth, 2);
                break;
            }
            ck_assert_int_eq(st, AS_E_NOMEM);
            ck_assert_ptr_null(made.config);
        }
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/sampler");
    TCase *t = tcase_create("sampler");
    tcase_add_test(t, replays);
    tcase_add_test(t, golden_suggestions);
    tcase_add_test(t, seeds_and_trials_differ);
    tcase_add_test(t, redraws_what_is_not_allowed);
    tcase_add_test(t, finds_a_needle_in_a_finite_space);
    tcase_add_test(t, says_which_constraint_leaves_nothing);
    tcase_add_loop_test(t, narrow_spaces_are_drawn_for_every_seed, 0, 7);
    tcase_add_test(t, random_constraints_are_kept);
    tcase_add_test(t, grid_ends_after_its_last_cell);
    tcase_add_test(t, sobol_balances_discrete_values);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
