#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "search/grid.h"
#include "search/sampler.h"
#include "tests/check_main.h"
#include "tests/search/spaces.h"

static char *suggest(const struct space *s, search_method m, uint64_t seed, uint64_t trial)
{
    struct as_err err = {0};
    AS_AUTO(config_freep) struct config *c = NULL;
    JSON_AUTO reason = NULL;
    as_status st = sampler_suggest(s, m, seed, trial, NULL, &c, &reason, &err);
    if (st == AS_E_EXHAUSTED)
        return NULL;
    ck_ok(st, err);
    ck_assert_str_eq(json_string_value(json_object_get(reason, "method")), search_method_format(m));
    for (size_t i = 0; i < s->n; i++) {
        ck_assert_int_eq(c->entries[i].active, config_wants(s, c, i));
        ck_assert(!c->entries[i].active || param_contains(&s->params[i], c->entries[i].value));
    }
    JSON_AUTO j = config_to_json(s, c);
    return json_format(j);
}

START_TEST(parses_methods)
{
    struct as_err err = {0};
    search_method m = SEARCH_SOBOL;
    ck_ok(search_method_parse("grid", "/search/method", &m, &err), err);
    ck_assert_int_eq(m, SEARCH_GRID);
    ck_fails(search_method_parse("gp", "/search/method", &m, &err), AS_E_UNSUPPORTED, err,
             "gp is not in this version yet; use grid, random or sobol");
    ck_assert_str_eq(err.pointer, "/search/method");
    ck_fails(search_method_parse("tpe", "/search/method", &m, &err), AS_E_INVAL, err,
             "one of grid, random, sobol");
    ck_assert_int_eq(m, SEARCH_GRID);
}
END_TEST

/* Any order of asking, any number of times: the same answers. */
START_TEST(replays)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        for (int m = SEARCH_GRID; m <= SEARCH_SOBOL; m++) {
            char *first[16];
            for (uint64_t t = 0; t < 16; t++)
                first[t] = suggest(s, (search_method)m, seed, t);
            for (uint64_t t = 16; t-- > 0;) {
                AS_AUTO(as_freep) char *again = suggest(s, (search_method)m, seed, t);
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
        search_method method;
        uint64_t trial;
        const char *want;
    } golden[] = {
        {SEARCH_RANDOM, 0,
         "{\"lr\":0.17173538717791426,\"momentum\":0.7,\"opt\":\"sgd\",\"width\":49}"},
        {SEARCH_RANDOM, 1, "{\"lr\":0.7074823076253859,\"opt\":\"adamw\",\"width\":430}"},
        {SEARCH_RANDOM, 1000000, "{\"lr\":0.4141152910999327,\"opt\":\"adamw\",\"width\":30}"},
        {SEARCH_SOBOL, 0, "{\"lr\":0.7244036049814895,\"opt\":\"adamw\",\"width\":431}"},
        {SEARCH_SOBOL, 1,
         "{\"lr\":0.16685495164711028,\"momentum\":0.2,\"opt\":\"sgd\",\"width\":28}"},
        {SEARCH_SOBOL, 1000000,
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
    for (int m = SEARCH_RANDOM; m <= SEARCH_SOBOL; m++) {
        AS_AUTO(as_freep) char *a = suggest(s, (search_method)m, 1, 0);
        AS_AUTO(as_freep) char *b = suggest(s, (search_method)m, 1, 1);
        AS_AUTO(as_freep) char *c = suggest(s, (search_method)m, 2, 0);
        ck_assert_str_ne(a, b);
        ck_assert_str_ne(a, c);
    }
}
END_TEST

START_TEST(grid_ends_after_its_last_cell)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml("a: {type: int, min: 1, max: 3}\nb: {type: bool}", &s, &err), err);
    AS_AUTO(config_freep) struct config *c = NULL;
    JSON_AUTO reason = NULL;
    ck_ok(sampler_suggest(s, SEARCH_GRID, 0, 5, NULL, &c, &reason, &err), err);
    AS_AUTO(as_freep) char *text = json_format(reason);
    ck_assert_str_eq(text, "{\"cell\":5,\"cells\":6,\"method\":\"grid\"}");
    struct config *none = NULL;
    json_t *no_reason = NULL;
    ck_fails(sampler_suggest(s, SEARCH_GRID, 0, 6, NULL, &none, &no_reason, &err), AS_E_EXHAUSTED,
             err, "6 cells");
    ck_assert(!none && !no_reason);
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
        ck_ok(sampler_suggest(s, SEARCH_SOBOL, 3, t, NULL, &c, NULL, &err), err);
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
    for (int m = SEARCH_GRID; m <= SEARCH_SOBOL; m++) {
        for (size_t nth = 1;; nth++) {
            struct config *c = NULL;
            struct as_err err = {0};
            as_mem_fail_nth(nth);
            as_status st = sampler_suggest(s, (search_method)m, 1, 0, NULL, &c, NULL, &err);
            as_mem_fail_nth(0);
            if (st == AS_OK) {
                config_free(c);
                ck_assert_uint_gt(nth, 2);
                break;
            }
            ck_assert_int_eq(st, AS_E_NOMEM);
            ck_assert_ptr_null(c);
        }
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("search/sampler");
    TCase *t = tcase_create("sampler");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, parses_methods);
    tcase_add_test(t, replays);
    tcase_add_test(t, golden_suggestions);
    tcase_add_test(t, seeds_and_trials_differ);
    tcase_add_test(t, grid_ends_after_its_last_cell);
    tcase_add_test(t, sobol_balances_discrete_values);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
