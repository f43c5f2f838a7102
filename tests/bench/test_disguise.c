/* A disguised space has every value of the other one, once, at another place. */
#include "bench/search/disguise.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "bench/search/problems.h"
#include "tests/support/check_main.h"

#define NUMBERS 12

static struct as_err err;

static const char parameters[] = "kind: {type: categorical, values: [a, b, c, d, e]}\n"
                                 "count: {type: int, min: 3, max: 7}\n"
                                 "flag: {type: bool}\n"
                                 "size: {type: ordinal, values: [s, m, l]}\n"
                                 "rate: {type: float, min: 0.001, max: 10, scale: log}\n"
                                 "share: {type: float, min: 0, max: 1, step: 0.25}\n"
                                 "x: {type: float, min: -2, max: 6}\n";

struct disguised {
    struct space *inner, *outer;
    struct disguise *d;
};

static void disguised_done(struct disguised *x)
{
    disguise_free(x->d);
    space_free(x->outer);
    space_free(x->inner);
}

static as_status disguise_text(const char *text, unsigned number, struct disguised *ret)
{
    JSON_AUTO doc = NULL;
    JSON_AUTO other = NULL;
    *ret = (struct disguised){0};
    ck_ok(yaml_parse(text, strlen(text), &doc, &err), err);
    ck_ok(space_parse(doc, "/parameters", &ret->inner, &err), err);
    JSON_AUTO parsed = space_to_json(ret->inner);
    as_status st = disguise_create(ret->inner, parsed, number, &other, &ret->d, &err);
    if (st == AS_OK)
        ck_ok(space_parse(other, "/parameters", &ret->outer, &err), err);
    return st;
}

/* The inner configuration of the k-th level of every parameter (of a float: place k / 4). */
static struct config *inner_of(const struct disguised *x, uint64_t k)
{
    AS_AUTO(config_freep) struct config *c = config_create(x->outer);
    for (size_t i = 0; i < c->n; i++) {
        const struct space_param *p = &x->outer->params[i];
        uint64_t levels = param_levels(p);
        c->entries[i].value = levels > 0 ? param_level(p, k % levels) : param_decode(p, k / 4.0);
    }
    config_settle(x->outer, c);
    return disguise_remove(x->d, c);
}

START_TEST(every_value_is_there_once)
{
    AS_AUTO(disguised_done) struct disguised x;
    ck_ok(disguise_text(parameters, (unsigned)_i, &x), err);
    ck_assert_uint_eq(x.outer->n, x.inner->n);
    unsigned seen[7] = {0};
    for (uint64_t k = 0; k < 5; k++) {
        AS_AUTO(config_freep) struct config *c = inner_of(&x, k);
        for (size_t i = 0; i < x.inner->n; i++) {
            const struct space_param *p = &x.inner->params[i];
            ck_assert(param_contains(p, c->entries[i].value));
            double level = param_levels(p) > 0 ? (double)param_level_of(p, c->entries[i].value)
                                               : 4 * param_encode(p, c->entries[i].value);
            ck_assert_double_eq_tol(level, round(level), 1e-9);
            seen[i] |= 1U << (unsigned)round(level);
        }
    }
    for (size_t i = 0; i < x.inner->n; i++) {
        uint64_t levels = param_levels(&x.inner->params[i]);
        ck_assert_uint_eq(seen[i], (1U << (levels > 0 ? levels : 5)) - 1);
    }
}
END_TEST

START_TEST(names_orders_and_directions_differ)
{
    bool moved = false, mirrored = false, permuted = false;
    for (unsigned number = 1; number <= NUMBERS; number++) {
        AS_AUTO(disguised_done) struct disguised x;
        ck_ok(disguise_text(parameters, number, &x), err);
        for (size_t i = 0; i < x.inner->n; i++)
            ck_assert_int_eq(space_find(x.outer, x.inner->params[i].name), -1);
        AS_AUTO(config_freep) struct config *c = inner_of(&x, 0);
        moved |= x.outer->params[0].kind != PARAM_CATEGORICAL;
        permuted |= c->entries[0].value.choice != 0;
        mirrored |= c->entries[1].value.integer == 7;
    }
    ck_assert(moved && mirrored && permuted);
}
END_TEST

START_TEST(a_space_with_conditions_is_refused)
{
    AS_AUTO(disguised_done) struct disguised x;
    ck_assert_int_eq(disguise_text("a: {type: bool}\nb: {type: bool, when: {a: true}}\n", 1, &x),
                     AS_E_INVAL);
}
END_TEST

/* The optimum of `rows` in disguise is its own, and a value is that of what it stands for. */
START_TEST(a_problem_in_disguise_has_the_same_values)
{
    AS_AUTO(problem_freep) struct problem *p = NULL;
    ck_ok(problem_open_disguised(problem_find("rows-1"), 3, &p, &err), err);
    ck_assert(p->optimum == 0 && p->scale == p->declared->scale);
    AS_AUTO(config_freep) struct config *c = config_create(p->space);
    for (size_t i = 0; i < c->n; i++)
        c->entries[i].value = param_decode(&p->space->params[i], 0.3);
    config_settle(p->space, c);
    AS_AUTO(config_freep) struct config *inner = disguise_remove(p->disguise, c);
    ck_assert(problem_value(p, c) == problem_value(p->declared, inner));
    ck_assert(problem_observe(p, c, 1, 2) == problem_value(p, c));
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("bench_disguise");
    TCase *t = tcase_create("disguise");
    tcase_add_loop_test(t, every_value_is_there_once, 1, NUMBERS);
    tcase_add_test(t, names_orders_and_directions_differ);
    tcase_add_test(t, a_space_with_conditions_is_refused);
    tcase_add_test(t, a_problem_in_disguise_has_the_same_values);
    suite_add_tcase(s, t);
    return s;
}
