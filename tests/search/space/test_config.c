#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "search/space/config.h"
#include "search/sampling/sampler.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

static const char *const yaml =
    "opt: {type: categorical, values: [sgd, adamw]}\n"
    "lr: {type: float, min: 0.1, max: 1}\n"
    "momentum: {type: float, min: 0, max: 1, step: 0.1, when: {opt: sgd}}\n"
    "layers: {type: int, min: 0, max: 2}\n"
    "width: {type: int, min: 8, max: 16, when: {layers: [1, 2]}}\n";

static struct space *sample_space(void)
{
    struct space *s = NULL;
    struct as_err err = {0};
    ck_ok(space_from_yaml(yaml, &s, &err), err);
    return s;
}

static as_status read_config(const struct space *s, const char *text, struct config **ret,
                             struct as_err *err)
{
    JSON_AUTO j = NULL;
    as_status st = yaml_parse(text, strlen(text), &j, err);
    return st < 0 ? st : config_from_json(s, j, "/params", ret, err);
}

START_TEST(reads_and_writes)
{
    AS_AUTO(space_freep) struct space *s = sample_space();
    AS_AUTO(config_freep) struct config *c = NULL;
    struct as_err err = {0};
    ck_ok(read_config(s, "{layers: 0, momentum: 0.30000000000000004, lr: 1, opt: sgd}", &c, &err),
          err);
    JSON_AUTO j = config_to_json(s, c);
    AS_AUTO(as_freep) char *text = json_format_pretty(j);
    ck_assert_str_eq(text, "{\n  \"opt\": \"sgd\",\n  \"lr\": 1.0,\n  \"momentum\": 0.3,\n"
                           "  \"layers\": 0\n}");
    ck_assert(!c->entries[4].active);
}
END_TEST

static const struct {
    const char *text, *pointer, *part;
} refusals[] = {
    {"[]", "/params", "expected an object"},
    {"{opt: adamw, lr: 0.5, layers: 0, extra: 1}", "/params/extra", "no parameter"},
    {"{opt: adamw, layers: 0}", "/params/lr", "missing"},
    {"{opt: sgd, lr: 0.5, layers: 0}", "/params/momentum", "missing"},
    {"{opt: adamw, lr: 0.5, layers: 0, momentum: 0.5}", "/params/momentum", "not active"},
    {"{opt: adam, lr: 0.5, layers: 0}", "/params/opt", "one of [\"sgd\",\"adamw\"]"},
    {"{opt: adamw, lr: 2, layers: 0}", "/params/lr", "from 0.1 to 1"},
    {"{opt: adamw, lr: fast, layers: 0}", "/params/lr", "found \"fast\""},
    {"{opt: sgd, lr: 1, layers: 0, momentum: 0.25}", "/params/momentum", "in steps of 0.1"},
    {"{opt: adamw, lr: 0.5, layers: 1.5}", "/params/layers", "whole number from 0 to 2"},
    {"{opt: adamw, lr: 0.5, layers: 1, width: 7}", "/params/width", "from 8 to 16"},
};

START_TEST(refuses)
{
    AS_AUTO(space_freep) struct space *s = sample_space();
    struct config *c = NULL;
    struct as_err err = {0};
    ck_fails(read_config(s, refusals[_i].text, &c, &err), AS_E_INVAL, err, refusals[_i].part);
    ck_assert_str_eq(err.pointer, refusals[_i].pointer);
    ck_assert_ptr_null(c);
}
END_TEST

START_TEST(random_configurations_survive_json)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        for (uint64_t trial = 0; trial < 20; trial++) {
            AS_AUTO(config_freep) struct config *a = NULL;
            AS_AUTO(config_freep) struct config *b = NULL;
            struct as_err err = {0};
            ck_ok(sampler_draw(s, SAMPLER_RANDOM, seed, trial, &a, NULL, &err), err);
            JSON_AUTO j = config_to_json(s, a);
            ck_ok(config_from_json(s, j, "", &b, &err), err);
            ck_assert(config_equal(s, a, b));
        }
    }
}
END_TEST

START_TEST(inactive_entries_are_zero)
{
    AS_AUTO(space_freep) struct space *s = sample_space();
    AS_AUTO(config_freep) struct config *c = config_create(s);
    c->entries[0].value.choice = 1; /* adamw */
    c->entries[2].value.real = 0.5;
    c->entries[3].value.integer = 2;
    c->entries[4].value.integer = 9;
    config_settle(s, c);
    ck_assert(!c->entries[2].active && c->entries[2].value.real == 0);
    ck_assert(c->entries[4].active && c->entries[4].value.integer == 9);
    space_activate(s, 2, c);
    config_settle(s, c);
    ck_assert(c->entries[2].active);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/config");
    TCase *t = tcase_create("config");
    tcase_add_test(t, reads_and_writes);
    tcase_add_loop_test(t, refuses, 0, AS_ARRAY_LEN(refusals));
    tcase_add_test(t, random_configurations_survive_json);
    tcase_add_test(t, inactive_entries_are_zero);
    suite_add_tcase(s, t);
    return s;
}
