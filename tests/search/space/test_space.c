/* Parsing of spaces.
 *
 * One table holds invalid documents with the pointer and message of the error. Random spaces check
 * that every parameter can be made active, that the canonical document parses to an equal space,
 * and that parsing survives a failure of any single allocation. */
#include <string.h>

#include "base/json.h"
#include "base/yaml_reader.h"
#include "search/space/config.h"
#include "search/space/param_prior.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define MUST(yaml, s)                                                                              \
    do {                                                                                           \
        struct as_err must_err = {0};                                                              \
        ck_ok(space_from_yaml(yaml, s, &must_err), must_err);                                      \
    } while (0)

struct refusal {
    const char *yaml;
    const char *pointer;
    const char *part;
};

static const struct refusal refusals[] = {
    {"[]", "/parameters", "expected an object"},
    {"{}", "/parameters", "no parameter"},
    {"x: 3", "/parameters/x", "expected an object"},
    {"x: {min: 0, max: 1}", "/parameters/x/type", "missing"},
    {"x: {type: real, min: 0, max: 1}", "/parameters/x/type", "one of float, int"},
    {"x: {type: float, max: 1}", "/parameters/x/min", "missing"},
    {"x: {type: float, min: 0}", "/parameters/x/max", "missing"},
    {"x: {type: float, min: 0, max: 1, stepp: 1}", "/parameters/x/stepp", "did you mean 'step'"},
    {"x: {type: float, min: 2, max: 1}", "/parameters/x/min", "min (2) is above max (1)"},
    {"x: {type: float, min: a, max: 1}", "/parameters/x/min", "found \"a\", expected a number"},
    {"x: {type: float, min: 0, max: 1, scale: log}", "/parameters/x/min", "above 0"},
    {"x: {type: float, min: -1, max: 1, scale: log}", "/parameters/x/min", "above 0"},
    {"x: {type: float, min: 0, max: 1, scale: exp}", "/parameters/x/scale", "one of linear, log"},
    {"x: {type: float, min: 0, max: 1, step: 0}", "/parameters/x/step", "above 0"},
    {"x: {type: float, min: 0, max: 1, step: -0.1}", "/parameters/x/step", "above 0"},
    {"x: {type: float, min: 0, max: 1, step: 1.5}", "/parameters/x/step", "larger than the range"},
    {"x: {type: float, min: 0, max: 1, step: 1e-14}", "/parameters/x/step", "too fine"},
    {"x: {type: float, min: 1e9, max: 1000000001, step: 1e-7}", "/parameters/x/step", "too fine"},
    {"x: {type: float, min: 0, max: 1, step: 0.1, points: 3}", "/parameters/x/points", "not both"},
    {"x: {type: float, min: 0, max: 1, points: 1}", "/parameters/x/points", "from 2 to"},
    {"x: {type: float, min: 0, max: 1, values: [1]}", "/parameters/x/values", "not a known field"},
    {"x: {type: int, min: 5, max: 1}", "/parameters/x/min", "min (5) is above max (1)"},
    {"x: {type: int, min: 0.5, max: 1}", "/parameters/x/min", "whole number"},
    {"x: {type: int, min: 0, max: 9, scale: log}", "/parameters/x/min", "above 0"},
    {"x: {type: int, min: 0, max: 9, step: 0}", "/parameters/x/step", "above 0"},
    {"x: {type: int, min: 0, max: 9, step: 10}", "/parameters/x/step", "larger than the range"},
    {"x: {type: int, min: -9223372036854775808, max: 9223372036854775807}", "/parameters/x/max",
     "wider than"},
    {"x: {type: categorical}", "/parameters/x/values", "missing"},
    {"x: {type: categorical, values: []}", "/parameters/x/values", "empty"},
    {"x: {type: categorical, values: [a, b, a]}", "/parameters/x/values/2", "twice"},
    {"x: {type: categorical, values: [1, 1.0]}", "/parameters/x/values/1", "twice"},
    {"x: {type: categorical, values: [null, a, null]}", "/parameters/x/values/2", "twice"},
    {"x: {type: categorical, values: [[1, [a]], [1.0, [a]]]}", "/parameters/x/values/1", "twice"},
    {"x: {type: categorical, values: [{a: 1}]}", "/parameters/x/values/0",
     "null or a list of these"},
    {"x: {type: categorical, values: [[1, {a: 1}]]}", "/parameters/x/values/0", "expected a list"},
    {"x: {type: categorical, values: [[[[[[1]]]]]]}", "/parameters/x/values/0", "4 lists deep"},
    {"x: {type: ordinal, values: [[1], [2]]}", "/parameters/x/values/0", "a string or a number"},
    {"x: {type: ordinal, values: [1, null]}", "/parameters/x/values/1", "a string or a number"},
    {"x: {type: constant, value: [{a: 1}]}", "/parameters/x/value", "expected a list"},
    {"l: {type: categorical, values: [[64], null]}\nx: {type: bool, when: {l: [64]}}",
     "/parameters/x/when/l/0", "found 64, expected one of [[64],null]"},
    {"l: {type: categorical, values: [[64], a]}\nx: {type: bool, when: {l: null}}",
     "/parameters/x/when/l", "found null, expected one of"},
    {"x: {type: float, min: 0, max: 1, prior: 0.5}", "/parameters/x/prior", "expected an object"},
    {"x: {type: float, min: 0, max: 1, prior: {deviation: 1}}", "/parameters/x/prior/mean",
     "missing"},
    {"x: {type: float, min: 0, max: 1, prior: {mean: 0.5}}", "/parameters/x/prior/deviation",
     "missing"},
    {"x: {type: float, min: 0, max: 1, prior: {mean: 1.5, deviation: 1}}",
     "/parameters/x/prior/mean", "found 1.5, expected a number from 0 to 1"},
    {"x: {type: int, min: 2, max: 9, prior: {mean: 1, deviation: 1}}", "/parameters/x/prior/mean",
     "from 2 to 9"},
    {"x: {type: float, min: 0, max: 1, prior: {mean: 0.5, deviation: 0}}",
     "/parameters/x/prior/deviation", "above 0"},
    {"x: {type: float, min: 0, max: 1, prior: {mean: 0.5, deviation: -1}}",
     "/parameters/x/prior/deviation", "found -1, expected a number above 0"},
    {"x: {type: float, min: 0, max: 1, prior: {mean: 0.5, sigma: 1, deviation: 1}}",
     "/parameters/x/prior/sigma", "not a known field"},
    {"x: {type: float, min: 0, max: 1, prior: {weights: {a: 1}}}", "/parameters/x/prior/mean",
     "missing"},
    {"x: {type: bool, prior: {mean: 0, deviation: 1}}", "/parameters/x/prior/weights", "missing"},
    {"x: {type: bool, prior: {weights: [1, 2]}}", "/parameters/x/prior/weights",
     "expected an object"},
    {"x: {type: categorical, values: [a, b], prior: {weights: {c: 2}}}",
     "/parameters/x/prior/weights/c", "no value"},
    {"x: {type: categorical, values: [a, b], prior: {weights: {a: 0}}}",
     "/parameters/x/prior/weights/a", "from 1e-06"},
    {"x: {type: ordinal, values: [a, b], prior: {weights: {a: many}}}",
     "/parameters/x/prior/weights/a", "expected a number"},
    {"x: {type: categorical, values: ['1', 1], prior: {weights: {'1': 2}}}",
     "/parameters/x/prior/weights/1", "two values"},
    {"x: {type: constant, value: 1, prior: {weights: {'1': 2}}}", "/parameters/x/prior",
     "one value"},
    {"x: {type: bool, values: [1]}", "/parameters/x/values", "not a known field"},
    {"x: {type: constant}", "/parameters/x/value", "missing"},
    {"x: {type: constant, value: {a: 1}}", "/parameters/x/value", "a string, a number"},
    {"2x: {type: bool}", "/parameters/2x", "no name"},
    {"'': {type: bool}", "/parameters/", "no name"},
    {"'a:b': {type: bool}", "/parameters/a:b", "no name"},
    {"'a ': {type: bool}", "/parameters/a ", "single blanks inside"},
    {"opt/lr: {type: bool, when: {opt lr: true}}", "/parameters/opt~1lr/when/opt lr",
     "no parameter 'opt lr'"},
    {"x: {type: bool, when: yes}", "/parameters/x/when", "expected an object"},
    {"x: {type: bool, when: {}}", "/parameters/x/when", "empty"},
    {"x: {type: bool, when: {y: 1}}", "/parameters/x/when/y", "no parameter 'y'"},
    {"x: {type: bool, when: {x: true}}", "/parameters/x/when/x", "itself"},
    {"x: {type: bool, when: {y: true}}\ny: {type: bool, when: {x: true}}", "/parameters/x/when",
     "loop"},
    {"a: {type: bool}\nx: {type: bool, when: {z: true}}\ny: {type: bool, when: {x: true}}\n"
     "z: {type: bool, when: {y: true}}",
     "/parameters/x/when", "loop"},
    {"f: {type: float, min: 0, max: 1}\nx: {type: bool, when: {f: 1}}", "/parameters/x/when/f",
     "is a float"},
    {"c: {type: categorical, values: [a, b]}\nx: {type: bool, when: {c: z}}",
     "/parameters/x/when/c", "never takes"},
    {"c: {type: categorical, values: [a, b]}\nx: {type: bool, when: {c: [a, z]}}",
     "/parameters/x/when/c/1", "never takes"},
    {"c: {type: categorical, values: [a, b]}\nx: {type: bool, when: {c: []}}",
     "/parameters/x/when/c", "empty"},
    {"c: {type: categorical, values: [a, b]}\nx: {type: bool, when: {c: [a, a]}}",
     "/parameters/x/when/c", "twice"},
    {"i: {type: int, min: 0, max: 8, step: 2}\nx: {type: bool, when: {i: 3}}",
     "/parameters/x/when/i", "never takes"},
    {"x: {type: ordinal, values: [a, true]}", "/parameters/x/values/1", "a string or a number"},
    {"x: {type: ordinal, values: []}", "/parameters/x/values", "empty"},
    {"x: {type: ordinal, values: [a, a]}", "/parameters/x/values/1", "twice"},
    {"f: {type: float, min: 0, max: 1}\nx: {type: bool, when: {f: {}}}", "/parameters/x/when/f",
     "expected min, max or both"},
    {"f: {type: float, min: 0, max: 1}\nx: {type: bool, when: {f: {mim: 0}}}",
     "/parameters/x/when/f/mim", "did you mean 'min'"},
    {"f: {type: float, min: 0, max: 1}\nx: {type: bool, when: {f: {min: 1.5}}}",
     "/parameters/x/when/f/min", "never takes a value in this range"},
    {"f: {type: float, min: 0, max: 1}\nx: {type: bool, when: {f: {max: -0.5}}}",
     "/parameters/x/when/f/max", "never takes a value in this range"},
    {"f: {type: float, min: 0, max: 1}\nx: {type: bool, when: {f: {min: 0.6, max: 0.5}}}",
     "/parameters/x/when/f", "never takes a value in this range"},
    {"f: {type: float, min: 0, max: 1, step: 0.5}\nx: {type: bool, when: {f: {min: 0.1, max: "
     "0.4}}}",
     "/parameters/x/when/f", "never takes a value in this range"},
    {"i: {type: int, min: 0, max: 9}\nx: {type: bool, when: {i: {min: a}}}",
     "/parameters/x/when/i/min", "expected a number"},
    {"i: {type: int, min: 0, max: 8, step: 4}\nx: {type: bool, when: {i: {min: 5, max: 7}}}",
     "/parameters/x/when/i", "never takes a value in this range"},
    {"o: {type: ordinal, values: [s, m, l]}\nx: {type: bool, when: {o: {min: xl}}}",
     "/parameters/x/when/o/min", "never takes"},
    {"o: {type: ordinal, values: [s, m, l]}\nx: {type: bool, when: {o: {min: l, max: s}}}",
     "/parameters/x/when/o", "never takes a value in this range"},
    {"c: {type: categorical, values: [1, 2]}\nx: {type: bool, when: {c: {min: 1}}}",
     "/parameters/x/when/c", "have no order"},
    {"b: {type: bool}\nx: {type: bool, when: {b: {min: 0}}}", "/parameters/x/when/b",
     "have no order"},
    /* y needs f below 0.4, so that x, above 0.5, never is */
    {"f: {type: float, min: 0, max: 1}\ny: {type: bool, when: {f: {max: 0.4}}}\n"
     "x: {type: bool, when: {y: true, f: {min: 0.5}}}",
     "/parameters/x/when", "leave 'f' no value"},
    /* y needs 3 or 7, x 4 to 6 */
    {"i: {type: int, min: 0, max: 9}\ny: {type: bool, when: {i: [3, 7]}}\n"
     "x: {type: bool, when: {y: true, i: {min: 4, max: 6}}}",
     "/parameters/x/when", "leave 'i' no value"},
    /* x needs c = a through y, and c = b itself */
    {"c: {type: categorical, values: [a, b]}\ny: {type: bool, when: {c: a}}\n"
     "x: {type: bool, when: {y: true, c: b}}",
     "/parameters/x/when", "can never hold"},
};

START_TEST(refuses)
{
    const struct refusal *r = &refusals[_i];
    struct space *s = NULL;
    struct as_err err = {0};
    as_status st = space_from_yaml(r->yaml, &s, &err);
    ck_assert_msg(st == AS_E_INVAL, "%s: got %s", r->yaml, as_status_name(st));
    ck_assert_msg(strstr(err.msg, r->part) != NULL, "%s: '%s' is not in: %s", r->yaml, r->part,
                  err.msg);
    ck_assert_str_eq(err.pointer, r->pointer);
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(refuses_too_many)
{
    struct as_err err = {0};
    struct space *s = NULL;
    AS_AUTO(str_done) struct str b = {0};
    for (int i = 0; i <= SPACE_MAX_PARAMS; i++)
        str_printf(&b, "p%d: {type: bool}\n", i);
    ck_fails(space_from_yaml(str_cstr(&b), &s, &err), AS_E_TOO_LARGE, err, "257 parameters");
    str_clear(&b);
    str_puts(&b, "p: {type: categorical, values: [");
    for (int i = 0; i <= PARAM_MAX_VALUES; i++)
        str_printf(&b, "%d,", i);
    str_puts(&b, "]}");
    ck_fails(space_from_yaml(str_cstr(&b), &s, &err), AS_E_TOO_LARGE, err, "1001 values");
}
END_TEST

START_TEST(keeps_order_and_sorts_parents_first)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST("z: {type: bool, when: {m: [1, 3]}}\n"
         "m: {type: int, min: 0, max: 3, when: {a: true}}\n"
         "a: {type: bool}\n",
         &s);
    ck_assert_uint_eq(s->n, 3);
    ck_assert_str_eq(s->params[0].name, "z");
    ck_assert_int_eq(space_find(s, "m"), 1);
    ck_assert_int_eq(space_find(s, "none"), -1);
    ck_assert_uint_eq(s->order[0], 2);
    ck_assert_uint_eq(s->order[2], 0);
    ck_assert(s->params[1].is_parent && !s->params[0].is_parent);
    ck_assert_uint_eq(s->params[0].conds[0].n_allowed, 2);
    ck_assert_int_eq(s->params[0].conds[0].allowed[1].integer, 3);
}
END_TEST

START_TEST(ranges_end_on_values)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST("f: {type: float, min: 0, max: 1, step: 0.1}\n"
         "i: {type: int, min: -9, max: 9, step: 3}\n"
         "o: {type: ordinal, values: [s, m, l]}\n"
         "c: {type: float, min: 0, max: 1}\n"
         "x: {type: bool, when: {f: {min: 0.25}, i: {min: -4.5, max: 100}, o: {max: m}, c: {max: "
         "3}}}\n",
         &s);
    const struct cond *conds = s->params[4].conds;
    ck_assert(conds[0].is_range && conds[0].low.real == 0.3 && conds[0].high.real == 1);
    ck_assert(conds[1].low.integer == -3 && conds[1].high.integer == 9);
    ck_assert(conds[2].low.choice == 0 && conds[2].high.choice == 1);
    ck_assert(conds[3].low.real == 0 && conds[3].high.real == 1);
    ck_assert(s->params[0].is_parent && s->params[3].is_parent);
    JSON_AUTO j = space_to_json(s);
    AS_AUTO(as_freep)
    char *text = json_format_ordered(json_object_get(json_object_get(j, "x"), "when"));
    ck_assert_str_eq(text, "{\"f\":{\"min\":0.3,\"max\":1.0},\"i\":{\"min\":-3,\"max\":9},"
                           "\"o\":{\"min\":\"s\",\"max\":\"m\"},\"c\":{\"min\":0.0,\"max\":1.0}}");
}
END_TEST

/* Every parameter of a random space can be made active, and is active exactly if its conditions
 * hold. */
START_TEST(activates_what_it_promises)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        AS_AUTO(space_freep) struct space *s = space_at_random(seed);
        AS_AUTO(config_freep) struct config *c = config_create(s);
        for (size_t i = 0; i < s->n; i++) {
            for (size_t k = 0; k < s->n; k++)
                c->entries[k].value = param_decode(&s->params[k], 0.3);
            space_activate(s, i, c);
            config_settle(s, c);
            ck_assert(c->entries[i].active);
        }
    }
}
END_TEST

static const struct {
    bool is_forbidden; /* else parameter_constraints */
    const char *list;
    as_status want;
    const char *pointer, *part;
} rule_refusals[] = {
    {false, "{}", AS_E_INVAL, "/r", "expected a list"},
    {false, "[3]", AS_E_INVAL, "/r/0", "expected a string such as"},
    {false, "['a < 3', 'a < ']", AS_E_INVAL, "/r/1", "column 5"},
    {true, "[[]]", AS_E_INVAL, "/r/0", "expected an object such as"},
    {true, "[{}]", AS_E_INVAL, "/r/0", "an empty one"},
    {true, "[{a: 3}, {z: 1}]", AS_E_INVAL, "/r/1/z", "no parameter 'z'"},
    {true, "[{a: 30}]", AS_E_INVAL, "/r/0/a", "'a' never takes this value"},
    {true, "[{c: {min: x}}]", AS_E_INVAL, "/r/0/c", "have no order"},
    {true, "[{f: {min: 2}}]", AS_E_INVAL, "/r/0/f/min", "in this range"},
};

START_TEST(refuses_rules)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST("a: {type: int, min: 0, max: 9}\nc: {type: categorical, values: [x, y]}\n"
         "f: {type: float, min: 0, max: 1}",
         &s);
    struct as_err err = {0};
    JSON_AUTO j = NULL;
    ck_ok(yaml_parse(rule_refusals[_i].list, strlen(rule_refusals[_i].list), &j, &err), err);
    as_status st = rule_refusals[_i].is_forbidden ? space_parse_forbidden(s, j, "/r", &err)
                                                  : space_parse_constraints(s, j, "/r", &err);
    ck_fails(st, rule_refusals[_i].want, err, rule_refusals[_i].part);
    ck_assert_str_eq(err.pointer, rule_refusals[_i].pointer);
}
END_TEST

START_TEST(forbids_combinations)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST("opt: {type: categorical, values: [sgd, adamw, lion]}\n"
         "lr: {type: float, min: 0, max: 1}\n"
         "mom: {type: float, min: 0, max: 1, when: {opt: sgd}}\n",
         &s);
    const char *yaml = "[{opt: [sgd, lion], lr: {min: 0.5}}, {mom: {max: 0.1}}, {lr: 0.25}]";
    JSON_AUTO j = NULL;
    struct as_err err = {0};
    ck_ok(yaml_parse(yaml, strlen(yaml), &j, &err), err);
    ck_assert(!space_is_constrained(s));
    ck_ok(space_parse_forbidden(s, j, "/forbidden", &err), err);
    ck_assert(space_is_constrained(s));
    static const struct {
        size_t opt;
        double lr, mom;
        int want;
    } cases[] = {{0, 0.4, 0.5, -1}, {0, 0.5, 0.5, 0},  {1, 0.5, 0, -1}, {2, 0.9, 0, 0},
                 {0, 0.4, 0.1, 1},  {1, 0.4, 0.1, -1}, {1, 0.25, 0, 2}};
    AS_AUTO(config_freep) struct config *c = config_create(s);
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        c->entries[0].value.choice = cases[i].opt;
        c->entries[1].value.real = cases[i].lr;
        c->entries[2].value.real = cases[i].mom;
        config_settle(s, c);
        ck_assert_int_eq(space_violation(s, c), cases[i].want);
        ck_assert_int_eq(space_allows(s, c), cases[i].want < 0);
    }
    ck_assert(space_rule_names(s, 0, 0) && space_rule_names(s, 0, 1) && !space_rule_names(s, 0, 2));
    JSON_AUTO back = space_forbidden_to_json(s);
    AS_AUTO(as_freep) char *text = json_format_ordered(back);
    ck_assert_str_eq(text, "[{\"opt\":[\"sgd\",\"lion\"],\"lr\":{\"min\":0.5,\"max\":1.0}},"
                           "{\"mom\":{\"min\":0.0,\"max\":0.1}},{\"lr\":[0.25]}]");
}
END_TEST

START_TEST(canonical_json_parses_to_an_equal_space)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        AS_AUTO(space_freep) struct space *a = space_at_random(seed);
        AS_AUTO(space_freep) struct space *b = NULL;
        struct as_err err = {0};
        JSON_AUTO j = space_to_json(a);
        ck_assert_ptr_nonnull(j);
        ck_ok(space_parse(j, "", &b, &err), err);
        JSON_AUTO k = space_to_json(b);
        AS_AUTO(as_freep) char *x = json_format_pretty(j);
        AS_AUTO(as_freep) char *y = json_format_pretty(k);
        ck_assert_str_eq(x, y); /* the order of the keys is part of it */
    }
}
END_TEST

START_TEST(priors_are_kept)
{
    AS_AUTO(space_freep) struct space *a = NULL, *b = NULL;
    struct as_err err = {0};
    MUST("f: {type: float, min: 1e-3, max: 1, scale: log, prior: {mean: 0.1, deviation: 0.7}}\n"
         "i: {type: int, min: 1, max: 9, prior: {mean: 2.5, deviation: 2}}\n"
         "c: {type: categorical, values: [a, null, [1, b], 2.5, '3', 3],\n"
         "    prior: {weights: {a: 3, 'null': 2, '[1,\"b\"]': 0.5, '2.5': 7}}}\n"
         "b: {type: bool, prior: {weights: {'true': 4}}}\n"
         "o: {type: ordinal, values: [16, 32], prior: {weights: {}}}\n",
         &a);
    const struct param_prior *c = a->params[2].prior, *o = a->params[4].prior;
    ck_assert(a->params[0].prior->mean == 0.1 && a->params[0].prior->deviation == 0.7);
    ck_assert(a->params[1].prior->mean == 2.5 && !a->params[1].prior->weights);
    const double weights[] = {3, 2, 0.5, 7, 1, 1};
    ck_assert_mem_eq(c->weights, weights, sizeof weights);
    ck_assert(a->params[3].prior->weights[0] == 1 && a->params[3].prior->weights[1] == 4);
    ck_assert(o->weights[0] == 1 && o->weights[1] == 1);
    JSON_AUTO j = space_to_json(a);
    ck_ok(space_parse(j, "", &b, &err), err);
    JSON_AUTO k = space_to_json(b);
    AS_AUTO(as_freep) char *x = json_format_pretty(j);
    AS_AUTO(as_freep) char *y = json_format_pretty(k);
    ck_assert_str_eq(x, y);
    ck_assert_mem_eq(b->params[2].prior->weights, weights, sizeof weights);
}
END_TEST

/* Each fault of a document is noted, also those of one list of weights. */
START_TEST(faults_of_priors_are_all_noted)
{
    const char *yaml = "x: {type: float, min: 0, max: 1, prior: {mean: 2, deviation: 0}}\n"
                       "c: {type: categorical, values: [a, b], prior: {weights: {z: 1, a: -1}}}\n";
    static const char *const pointers[] = {
        "/parameters/x/prior/mean", "/parameters/x/prior/deviation",
        "/parameters/c/prior/weights/z", "/parameters/c/prior/weights/a"};
    AS_AUTO(faults_done) struct faults faults = {0};
    AS_AUTO(space_freep) struct space *s = NULL;
    struct as_err err = {0};
    JSON_AUTO j = NULL;
    ck_ok(yaml_parse(yaml, strlen(yaml), &j, &err), err);
    ck_ok(space_parse_noting(j, "/parameters", &faults, &s, &err), err);
    ck_assert_uint_eq(faults.n, AS_ARRAY_LEN(pointers));
    for (size_t i = 0; i < AS_ARRAY_LEN(pointers); i++)
        ck_assert_uint_lt(faults_find(&faults, pointers[i]), faults.n);
}
END_TEST

START_TEST(runs_out_of_memory_cleanly)
{
    const char *yaml = "a: {type: categorical, values: [x, 1], prior: {weights: {x: 2, '1': 3}}}\n"
                       "b: {type: int, min: 1, max: 9, when: {a: [x, 1]}}\n"
                       "c: {type: float, min: 0, max: 1, when: {b: {min: 2}, a: x}}\n";
    JSON_AUTO rules = json_pack("[s]", "b < 3");
    JSON_AUTO pairs = json_pack("[{s:s, s:{s:i}}]", "a", "x", "b", "min", 4);
    JSON_AUTO j = NULL;
    AS_AUTO(space_freep) struct space *first = NULL;
    MUST(yaml, &first);
    j = space_to_json(first);
    int failed = 0;
    for (size_t nth = 1; nth < 100; nth++) {
        struct space *s = NULL;
        struct as_err err = {0};
        as_mem_fail_nth(nth);
        as_status st = space_parse(j, "", &s, &err);
        if (st == AS_OK)
            st = space_parse_constraints(s, rules, "", &err);
        if (st == AS_OK)
            st = space_parse_forbidden(s, pairs, "", &err);
        as_mem_fail_nth(0);
        /* some allocations only serve messages: parsing may succeed without them */
        ck_assert(st == AS_OK || st == AS_E_NOMEM);
        failed += st != AS_OK;
        space_free(s);
    }
    ck_assert_int_ge(failed, 12);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/space");
    TCase *t = tcase_create("space");
    tcase_add_loop_test(t, refuses, 0, AS_ARRAY_LEN(refusals));
    tcase_add_test(t, refuses_too_many);
    tcase_add_test(t, keeps_order_and_sorts_parents_first);
    tcase_add_test(t, ranges_end_on_values);
    tcase_add_test(t, activates_what_it_promises);
    tcase_add_loop_test(t, refuses_rules, 0, AS_ARRAY_LEN(rule_refusals));
    tcase_add_test(t, forbids_combinations);
    tcase_add_test(t, canonical_json_parses_to_an_equal_space);
    tcase_add_test(t, priors_are_kept);
    tcase_add_test(t, faults_of_priors_are_all_noted);
    tcase_add_test(t, runs_out_of_memory_cleanly);
    suite_add_tcase(s, t);
    return s;
}
