/* Parameters: their domains, levels, unit interval, JSON. test_space.c covers the invalid
 * documents. */
#include "search/space/param.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/yaml_reader.h"
#include "search/space/space.h"
#include "tests/support/check_main.h"
#include "tests/support/spaces.h"

#define MUST(yaml, s)                                                                              \
    do {                                                                                           \
        struct as_err must_err = {0};                                                              \
        ck_ok(space_from_yaml(yaml, s, &must_err), must_err);                                      \
    } while (0)

/* ---- one parameter, parsed alone ---- */

static as_status parse(const char *yaml, struct space_param *ret, const json_t **ret_when,
                       json_t **ret_tree, struct as_err *err)
{
    ck_ok(yaml_parse(yaml, strlen(yaml), ret_tree, err), *err);
    return param_parse("x", *ret_tree, "/parameters/x", NULL, ret, ret_when, err);
}

static void must_parse(const char *yaml, struct space_param *ret)
{
    JSON_AUTO tree = NULL;
    const json_t *when;
    struct as_err err = {0};
    ck_ok(parse(yaml, ret, &when, &tree, &err), err);
}

START_TEST(fills_in_defaults)
{
    AS_AUTO(param_done) struct space_param f = {0};
    AS_AUTO(param_done) struct space_param i = {0};
    AS_AUTO(param_done) struct space_param b = {0};
    AS_AUTO(param_done) struct space_param c = {0};
    must_parse("{type: float, min: -0.0, max: 2}", &f);
    ck_assert_str_eq(f.name, "x");
    ck_assert(f.kind == PARAM_FLOAT && f.scale == SCALE_LINEAR && f.real.step == 0 &&
              f.points == 0);
    ck_assert(f.real.min == 0 && !signbit(f.real.min) && f.real.max == 2);
    must_parse("{type: int, min: 1, max: 9, scale: log, points: 4}", &i);
    ck_assert(i.kind == PARAM_INT && i.scale == SCALE_LOG && i.integer.step == 1 && i.points == 4);
    must_parse("{type: bool}", &b);
    ck_assert(b.kind == PARAM_BOOL && b.n_values == 2 &&
              json_is_false(json_array_get(b.values, 0)));
    must_parse("{type: constant, value: 1}", &c);
    ck_assert(c.kind == PARAM_CONSTANT && c.n_values == 1);
    ck_assert(!param_is_choice(&f) && !param_is_choice(&i));
    ck_assert(param_is_choice(&b) && param_is_choice(&c));
}
END_TEST

START_TEST(hands_out_when_and_keeps_no_part_of_the_tree)
{
    AS_AUTO(param_done) struct space_param p = {0};
    const json_t *when = NULL;
    struct as_err err = {0};
    json_t *tree = NULL;
    ck_ok(parse("{type: ordinal, values: [s, m, l], when: {a: 1}}", &p, &when, &tree, &err), err);
    ck_assert_ptr_eq(when, json_object_get(tree, "when"));
    ck_assert_uint_eq(p.n_conds, 0);
    json_array_clear(json_object_get(tree, "values"));
    json_decref(tree);
    ck_assert_str_eq(json_string_value(json_array_get(p.values, 2)), "l");
}
END_TEST

START_TEST(leaves_the_result_alone_on_failure)
{
    JSON_AUTO tree = NULL;
    struct space_param p = {.n_values = 77};
    const json_t *when = (const json_t *)&p;
    struct as_err err = {0};
    ck_fails(parse("{type: categorical, values: [a, a]}", &p, &when, &tree, &err), AS_E_INVAL, err,
             "twice");
    ck_assert_str_eq(err.pointer, "/parameters/x/values/1");
    ck_assert(p.n_values == 77 && when == (const json_t *)&p && !p.name);
}
END_TEST

/* One of each kind, with every field. */
static const char *const kinds[] = {
    "{\"type\":\"float\",\"min\":-1.5,\"max\":2.0,\"scale\":\"linear\"}",
    "{\"type\":\"float\",\"min\":0.5,\"max\":2.0,\"step\":0.25,\"scale\":\"log\"}",
    "{\"type\":\"float\",\"min\":0.5,\"max\":2.0,\"scale\":\"log\",\"points\":7}",
    "{\"type\":\"int\",\"min\":-3,\"max\":9,\"step\":4,\"scale\":\"linear\"}",
    "{\"type\":\"int\",\"min\":1,\"max\":9,\"scale\":\"log\",\"points\":2}",
    "{\"type\":\"categorical\",\"values\":[\"a\",1,2.5,true]}",
    "{\"type\":\"categorical\",\"values\":[[64],[128,64],[],[[1,\"a\"],[null,true]],\"64\",64]}",
    "{\"type\":\"ordinal\",\"values\":[\"s\",\"m\",3]}",
    "{\"type\":\"bool\"}",
    "{\"type\":\"constant\",\"value\":\"adam\"}",
    "{\"type\":\"constant\",\"value\":null}",
    "{\"type\":\"constant\",\"value\":[0.5,null]}",
};

START_TEST(every_kind_writes_what_it_read)
{
    AS_AUTO(param_done) struct space_param p = {0};
    must_parse(kinds[_i], &p);
    JSON_AUTO j = param_to_json(&p);
    AS_AUTO(as_freep) char *text = json_dumps(j, JSON_COMPACT);
    ck_assert_str_eq(text, kinds[_i]);
}
END_TEST

/* Each level as JSON and back; places that are not levels are refused. */
START_TEST(every_value_survives_json)
{
    AS_AUTO(param_done) struct space_param p = {0};
    struct as_err err = {0};
    must_parse(kinds[_i], &p);
    uint64_t n = param_levels(&p);
    for (uint64_t k = 0; k < (n ? n : 9); k++) {
        union param_value back, v = n ? param_level(&p, k) : param_decode(&p, (double)k / 8);
        JSON_AUTO j = param_value_to_json(&p, v);
        ck_ok(param_value_from_json(&p, j, "/v", &back, &err), err);
        ck_assert_int_eq(param_compare(&p, v, back), 0);
        ck_assert(k == 0 || param_compare(&p, v, n ? param_level(&p, 0) : param_decode(&p, 0)) > 0);
    }
    JSON_AUTO nothing = json_object();
    union param_value v = {.integer = 5};
    ck_fails(param_value_from_json(&p, nothing, "/v", &v, &err), AS_E_INVAL, err,
             "/v: found an object, expected");
    ck_assert_str_eq(err.pointer, "/v");
    ck_assert_int_eq(v.integer, 5);
}
END_TEST

struct refused_value {
    const char *param, *value, *part;
};

static const struct refused_value refused_values[] = {
    {"{type: float, min: 0, max: 1}", "1.5", "found 1.5, expected a number from 0 to 1"},
    {"{type: float, min: 0, max: 1}", "'a'", "found \"a\", expected a number"},
    {"{type: float, min: 0, max: 1, step: 0.25}", "0.3", "from 0 to 1 in steps of 0.25"},
    {"{type: float, min: 0, max: 1, step: 0.3}", "1", "in steps of 0.3"},
    {"{type: int, min: 2, max: 9}", "1", "found 1, expected a whole number from 2 to 9"},
    {"{type: int, min: 2, max: 9}", "2.5", "found 2.5, expected a whole number"},
    {"{type: int, min: 2, max: 9, step: 3}", "9", "from 2 to 9 in steps of 3"},
    {"{type: int, min: 2, max: 9}", "true", "found true, expected"},
    {"{type: categorical, values: [a, 1]}", "'1'", "expected one of [\"a\",1]"},
    {"{type: ordinal, values: [s, m]}", "[s]", "found a list, expected one of"},
    {"{type: categorical, values: [[64], [128, 64], null]}", "[64, 128]",
     "expected one of [[64],[128,64],null]"},
    {"{type: categorical, values: [[64]]}", "64", "found 64, expected one of [[64]]"},
    {"{type: categorical, values: [[64]]}", "[[64]]", "expected one of [[64]]"},
    {"{type: categorical, values: [[1]]}", "[true]", "expected one of [[1]]"},
    {"{type: categorical, values: [[1, 2]]}", "[1]", "expected one of [[1,2]]"},
    {"{type: categorical, values: ['null']}", "null", "found null, expected one of"},
    {"{type: bool}", "1", "expected one of [false,true]"},
    {"{type: constant, value: 3}", "4", "expected one of [3]"},
};

START_TEST(refuses_values)
{
    const struct refused_value *r = &refused_values[_i];
    AS_AUTO(param_done) struct space_param p = {0};
    JSON_AUTO j = NULL;
    AS_AUTO(str_done) struct str list = {0};
    struct as_err err = {0};
    union param_value v;
    must_parse(r->param, &p);
    str_printf(&list, "[%s]", r->value);
    ck_ok(yaml_parse(str_cstr(&list), strlen(str_cstr(&list)), &j, &err), err);
    ck_fails(param_value_from_json(&p, json_array_get(j, 0), "/v", &v, &err), AS_E_INVAL, err,
             r->part);
}
END_TEST

/* Other ways to write a value: other number types, and sums that miss a step by rounding. */
START_TEST(takes_values_that_mean_the_same)
{
    AS_AUTO(param_done) struct space_param f = {0};
    AS_AUTO(param_done) struct space_param i = {0};
    AS_AUTO(param_done) struct space_param c = {0};
    struct as_err err = {0};
    union param_value v;
    must_parse("{type: float, min: 0, max: 1, step: 0.1}", &f);
    must_parse("{type: int, min: 0, max: 10}", &i);
    must_parse("{type: categorical, values: [1, 2.0, [3, [4.0, a]], null]}", &c);
    JSON_AUTO nested = json_pack("[f, [i, s]]", 3.0, 4, "a");
    JSON_AUTO nothing = json_null();
    JSON_AUTO sum = json_real(0.1 + 0.2);
    JSON_AUTO one = json_integer(1);
    JSON_AUTO three = json_real(3.0);
    JSON_AUTO two = json_integer(2);
    JSON_AUTO minus_zero = json_real(-0.0);
    ck_ok(param_value_from_json(&f, sum, "/v", &v, &err), err);
    ck_assert(v.real == 0.3);
    ck_ok(param_value_from_json(&f, one, "/v", &v, &err), err);
    ck_assert(v.real == 1.0);
    ck_ok(param_value_from_json(&f, minus_zero, "/v", &v, &err), err);
    ck_assert(v.real == 0 && !signbit(v.real));
    ck_ok(param_value_from_json(&i, three, "/v", &v, &err), err);
    ck_assert_int_eq(v.integer, 3);
    ck_ok(param_value_from_json(&c, two, "/v", &v, &err), err);
    ck_assert_uint_eq(v.choice, 1);
    ck_ok(param_value_from_json(&c, nested, "/v", &v, &err), err);
    ck_assert_uint_eq(v.choice, 2);
    ck_ok(param_value_from_json(&c, nothing, "/v", &v, &err), err);
    ck_assert_uint_eq(v.choice, 3);
}
END_TEST

START_TEST(contains_its_domain_alone)
{
    AS_AUTO(param_done) struct space_param f = {0};
    AS_AUTO(param_done) struct space_param g = {0};
    AS_AUTO(param_done) struct space_param i = {0};
    AS_AUTO(param_done) struct space_param c = {0};
    must_parse("{type: float, min: -1, max: 1}", &f);
    must_parse("{type: float, min: 0, max: 1, step: 0.1}", &g);
    must_parse("{type: int, min: -4, max: 5, step: 3}", &i);
    must_parse("{type: categorical, values: [a, b]}", &c);
    static const double outside[] = {-1.0000001, 1.0000001, INFINITY, -INFINITY, NAN};
    for (size_t k = 0; k < AS_ARRAY_LEN(outside); k++)
        ck_assert(!param_contains(&f, (union param_value){.real = outside[k]}));
    ck_assert(param_contains(&f, (union param_value){.real = -1}));
    ck_assert(param_contains(&f, (union param_value){.real = 1}));
    ck_assert(param_contains(&g, (union param_value){.real = 0.3}));
    ck_assert(!param_contains(&g, (union param_value){.real = 0.1 + 0.2}));
    for (int64_t v = -6; v <= 7; v++)
        ck_assert_int_eq(param_contains(&i, (union param_value){.integer = v}),
                         v == -4 || v == -1 || v == 2 || v == 5);
    ck_assert(param_contains(&c, (union param_value){.choice = 1}));
    ck_assert(!param_contains(&c, (union param_value){.choice = 2}));
}
END_TEST

/* On a linear scale each of n values owns 1/n of the unit interval. */
START_TEST(values_own_equal_shares)
{
    static const char *const params[] = {"{type: int, min: 3, max: 9, step: 2}",
                                         "{type: float, min: 0, max: 0.6, step: 0.2}",
                                         "{type: ordinal, values: [a, b, c, d]}"};
    AS_AUTO(param_done) struct space_param p = {0};
    must_parse(params[_i], &p);
    ck_assert_uint_eq(param_levels(&p), 4);
    for (int k = 0; k < 4; k++) {
        ck_assert_uint_eq(param_level_of(&p, param_decode(&p, 0.25 * k)), (uint64_t)k);
        double last = nextafter(0.25 * (k + 1), 0);
        ck_assert_uint_eq(param_level_of(&p, param_decode(&p, last)), (uint64_t)k);
        ck_assert(param_encode(&p, param_level(&p, (uint64_t)k)) == 0.25 * k + 0.125);
    }
}
END_TEST

START_TEST(spreads_over_the_range_on_its_scale)
{
    AS_AUTO(param_done) struct space_param f = {0};
    AS_AUTO(param_done) struct space_param g = {0};
    AS_AUTO(param_done) struct space_param i = {0};
    must_parse("{type: float, min: -2, max: 6}", &f);
    must_parse("{type: float, min: 1e-300, max: 1e300, scale: log}", &g);
    must_parse("{type: int, min: 1, max: 10000, scale: log}", &i);
    ck_assert(param_spread(&f, 0) == -2 && param_spread(&f, 0.25) == 0 && param_spread(&f, 1) == 6);
    ck_assert(fabs(param_spread(&g, 0.5) - 1) < 1e-12); /* max / min overflows */
    ck_assert(fabs(param_spread(&i, 0.5) - 100) < 1e-10);
    ck_assert(param_spread(&i, 1) <= 10000 && param_spread(&i, 0) >= 1);
}
END_TEST

START_TEST(rounds_to_what_people_wrote)
{
    ck_assert(param_round(0.1 + 0.2, 1e-9) == 0.3);
    ck_assert(param_round(0.1 + 0.2, 0) == 0.1 + 0.2); /* further off than the tolerance */
    ck_assert(param_round(1.0 / 3, 1e-17) == 1.0 / 3);
}
END_TEST

/* ---- as parts of a space ---- */

START_TEST(people_write_numbers_freely)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST("a: {type: int, min: 1, max: 1e6}\n"
         "b: {type: float, min: 0, max: 1, step: 0.1}\n"
         "c: {type: int, min: 7, max: 7}\n"
         "d: {type: float, min: 2, max: 2}\n",
         &s);
    ck_assert_int_eq(s->params[0].integer.max, 1000000);
    ck_assert_uint_eq(param_levels(&s->params[1]), 11);
    ck_assert(param_level(&s->params[1], 3).real == 0.3);
    ck_assert(param_level(&s->params[1], 7).real == 0.7);
    ck_assert(param_level(&s->params[1], 10).real == 1.0);
    ck_assert_uint_eq(param_levels(&s->params[2]), 1);
    ck_assert(param_decode(&s->params[3], 0.4).real == 2.0);
}
END_TEST

START_TEST(step_grid_is_anchored_at_min)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST("i: {type: int, min: 1, max: 10, step: 4}\n"
         "f: {type: float, min: 0.5, max: 2, step: 0.4}\n",
         &s);
    ck_assert_uint_eq(param_levels(&s->params[0]), 3);
    ck_assert_int_eq(param_level(&s->params[0], 2).integer, 9);
    ck_assert(!param_contains(&s->params[0], (union param_value){.integer = 10}));
    ck_assert_uint_eq(param_levels(&s->params[1]), 4);
    ck_assert(param_level(&s->params[1], 3).real == 1.7);
    ck_assert(!param_contains(&s->params[1], (union param_value){.real = 2}));
}
END_TEST

static void check_levels(const struct space_param *p)
{
    uint64_t n = param_levels(p), stride = n / 3000 + 1;
    for (uint64_t k = 0; k < n; k += stride) {
        union param_value v = param_level(p, k);
        ck_assert(param_contains(p, v));
        ck_assert_uint_eq(param_level_of(p, v), k);
        double u = param_encode(p, v);
        ck_assert(u >= 0 && u <= 1);
        ck_assert_uint_eq(param_level_of(p, param_decode(p, u)), k);
    }
    ck_assert_uint_eq(param_level_of(p, param_decode(p, 0)), 0);
    ck_assert_uint_eq(param_level_of(p, param_decode(p, 1)), n - 1);
    /* the last level too, whatever the stride */
    union param_value last = param_level(p, n - 1);
    ck_assert_uint_eq(param_level_of(p, param_decode(p, param_encode(p, last))), n - 1);
}

static const char *const discrete[] = {
    "x: {type: int, min: -3, max: 100}",
    "x: {type: int, min: 1, max: 1000000, scale: log}",
    "x: {type: int, min: 1, max: 1099511627776, scale: log}",
    "x: {type: int, min: 1000000000000000, max: 1000000000000900, scale: log}",
    "x: {type: int, min: 5, max: 4000, scale: log, step: 100}",
    "x: {type: int, min: -549755813888, max: 549755813887}",
    "x: {type: float, min: 0, max: 1, step: 1e-6}",
    "x: {type: float, min: -1e5, max: 1e5, step: 0.3}",
    "x: {type: float, min: 0.001, max: 50, step: 0.007, scale: log}",
    "x: {type: float, min: 0.1, max: 0.7, step: 0.1}",
    "x: {type: float, min: 5e-324, max: 2.7, step: 0.9, scale: log}",
    "x: {type: float, min: 1e-300, max: 1e300, step: 1e290, scale: log}",
    "x: {type: categorical, values: [a, b, 3, true, 4.5]}",
    "x: {type: bool}",
    "x: {type: constant, value: 3}",
};

START_TEST(discrete_values_survive_the_unit_interval)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST(discrete[_i], &s);
    check_levels(&s->params[0]);
}
END_TEST

START_TEST(random_discrete_ranges_survive_too)
{
    struct rng r;
    rng_init(&r, 5, 0);
    for (int round = 0; round < 300; round++) {
        char yaml[160];
        bool log_scale = rng_below(&r, 2);
        int64_t min = 1 + (int64_t)(rng_u64(&r) >> (24 + rng_below(&r, 40)));
        int64_t range = (int64_t)(rng_u64(&r) >> (24 + rng_below(&r, 40)));
        int64_t step = 1 + (int64_t)rng_below(&r, (uint64_t)range / 7 + 1);
        (void)snprintf(yaml, sizeof yaml,
                       "x: {type: int, min: %" PRId64 ", max: %" PRId64 ", step: %" PRId64
                       ", scale: %s}",
                       min, min + range, range ? step : 1, log_scale ? "log" : "linear");
        AS_AUTO(space_freep) struct space *s = NULL;
        MUST(yaml, &s);
        check_levels(&s->params[0]);
    }
}
END_TEST

START_TEST(continuous_values_survive_closely)
{
    static const char *const spaces[] = {
        "x: {type: float, min: -5, max: 3}",
        "x: {type: float, min: 1e-8, max: 100, scale: log}",
        "x: {type: float, min: -1e300, max: 1e300}",
        "x: {type: float, min: 3, max: 3}",
        "x: {type: float, min: 1e-300, max: 1e300, scale: log}",
    };
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST(spaces[_i], &s);
    const struct space_param *p = &s->params[0];
    ck_assert_uint_eq(param_levels(p), 0);
    ck_assert(param_decode(p, 0).real == p->real.min);
    ck_assert(param_decode(p, 1).real == p->real.max);
    double before = p->real.min;
    for (int i = 0; i <= 1000; i++) {
        union param_value v = param_decode(p, i / 1000.0);
        ck_assert(param_contains(p, v) && v.real >= before);
        before = v.real;
        double back = param_decode(p, param_encode(p, v)).real;
        double scale = p->scale == SCALE_LOG ? v.real : p->real.max - p->real.min;
        ck_assert(fabs(back - v.real) <= 1e-13 * scale);
    }
}
END_TEST

START_TEST(whole_int64_ranges_stay_exact)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST("x: {type: int, min: -4611686018427387904, max: 4611686018427387903}", &s);
    const struct space_param *p = &s->params[0];
    ck_assert_uint_eq(param_levels(p), UINT64_C(1) << 63);
    ck_assert_int_eq(param_level(p, (UINT64_C(1) << 63) - 1).integer, INT64_MAX / 2);
    ck_assert_int_eq(param_decode(p, 1).integer, INT64_MAX / 2);
    union param_value v = {.integer = 1234567890123456789};
    ck_assert_int_eq(param_level(p, param_level_of(p, v)).integer, v.integer);
}
END_TEST

START_TEST(log_scale_gives_each_decade_its_share)
{
    AS_AUTO(space_freep) struct space *s = NULL;
    MUST("f: {type: float, min: 1e-4, max: 1, scale: log}\n"
         "i: {type: int, min: 1, max: 1000, scale: log}\n",
         &s);
    ck_assert(fabs(param_decode(&s->params[0], 0.5).real - 1e-2) < 1e-14);
    /* from 0.5 to 1000.5: the middle is the geometric mean, 22.4 */
    ck_assert_int_eq(param_decode(&s->params[1], 0.5).integer, 22);
    ck_assert_int_eq(param_decode(&s->params[1], 0).integer, 1);
    ck_assert_int_eq(param_decode(&s->params[1], 1).integer, 1000);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("search/param");
    TCase *t = tcase_create("param");
    tcase_add_test(t, fills_in_defaults);
    tcase_add_test(t, hands_out_when_and_keeps_no_part_of_the_tree);
    tcase_add_test(t, leaves_the_result_alone_on_failure);
    tcase_add_loop_test(t, every_kind_writes_what_it_read, 0, AS_ARRAY_LEN(kinds));
    tcase_add_loop_test(t, every_value_survives_json, 0, AS_ARRAY_LEN(kinds));
    tcase_add_loop_test(t, refuses_values, 0, AS_ARRAY_LEN(refused_values));
    tcase_add_test(t, takes_values_that_mean_the_same);
    tcase_add_test(t, contains_its_domain_alone);
    tcase_add_loop_test(t, values_own_equal_shares, 0, 3);
    tcase_add_test(t, spreads_over_the_range_on_its_scale);
    tcase_add_test(t, rounds_to_what_people_wrote);
    tcase_add_test(t, people_write_numbers_freely);
    tcase_add_test(t, step_grid_is_anchored_at_min);
    tcase_add_loop_test(t, discrete_values_survive_the_unit_interval, 0, AS_ARRAY_LEN(discrete));
    tcase_add_test(t, random_discrete_ranges_survive_too);
    tcase_add_loop_test(t, continuous_values_survive_closely, 0, 5);
    tcase_add_test(t, whole_int64_ranges_stay_exact);
    tcase_add_test(t, log_scale_gives_each_decade_its_share);
    suite_add_tcase(s, t);
    return s;
}
