#include "cli/files/param_args.h"

#include <math.h>

#include "base/json.h"
#include "tests/support/check_main.h"

START_TEST(parameters_are_typed)
{
    struct as_err err = {0};
    JSON_AUTO params = NULL;
    const char *const texts[] = {"lr=1e-3",         "width=64",     "nesterov=true",
                                 "optimizer=adamw", "tag=\"64\"",   "note=a=b c?",
                                 "x=-0.5",          "l=[128, [a]]", "n=null"};
    ck_ok(param_args_read("--param", texts, 9, param_args_add_param, &params, &err), err);
    AS_AUTO(as_freep) char *text = json_format_ordered(params);
    ck_assert_str_eq(
        text, "{\"lr\":0.001,\"width\":64,\"nesterov\":true,\"optimizer\":\"adamw\","
              "\"tag\":\"64\",\"note\":\"a=b c?\",\"x\":-0.5,\"l\":[128,[\"a\"]],\"n\":null}");
}
END_TEST

START_TEST(metrics_are_numbers)
{
    struct as_err err = {0};
    JSON_AUTO metrics = NULL;
    const char *const texts[] = {"loss=0.25", "a=nan", "b=-Infinity", "c=inf", "d=-3"};
    ck_ok(param_args_read("metrics", texts, 5, param_args_add_metric, &metrics, &err), err);
    AS_AUTO(as_freep) char *text = json_format_ordered(metrics);
    ck_assert_str_eq(text, "{\"loss\":0.25,\"a\":\"NaN\",\"b\":\"-Infinity\",\"c\":\"Infinity\","
                           "\"d\":-3.0}");
}
END_TEST

START_TEST(what_is_wrong)
{
    struct as_err err = {0};
    json_t *j = NULL;
    const char *const bare[] = {"lr"}, *const nameless[] = {"=3"}, *const object[] = {"a={b: 1}"};
    const char *const twice[] = {"a=1", "a=2"}, *const word[] = {"loss=low"};
    const char *const empty[] = {"loss="}, *const nothing[] = {"a="};
    ck_fails(param_args_read("--param", bare, 1, param_args_add_param, &j, &err), AS_E_USAGE, err,
             "expected NAME=VALUE");
    ck_fails(param_args_read("--param", nameless, 1, param_args_add_param, &j, &err), AS_E_USAGE,
             err, "'=3'");
    ck_fails(param_args_read("--param", object, 1, param_args_add_param, &j, &err), AS_E_USAGE, err,
             "found an object");
    ck_fails(param_args_read("--param", nothing, 1, param_args_add_param, &j, &err), AS_E_USAGE,
             err, "a: expected a value");
    ck_fails(param_args_read("--param", twice, 2, param_args_add_param, &j, &err), AS_E_USAGE, err,
             "a is given twice");
    ck_fails(param_args_read("metrics", word, 1, param_args_add_metric, &j, &err), AS_E_USAGE, err,
             "'low'");
    ck_fails(param_args_read("metrics", empty, 1, param_args_add_metric, &j, &err), AS_E_USAGE, err,
             "expected a number");
    ck_assert_ptr_null(j);
}
END_TEST

START_TEST(limits_are_named)
{
    struct as_err err = {0};
    json_t *j = NULL;
    const char *const good[] = {"max_trials=200", "limits.wall_time=6h", "grace=1.5",
                                "max_failed_trials=none"};
    ck_ok(param_args_read("LIMIT", good, 4, param_args_add_limit, &j, &err), err);
    ck_assert_int_eq(json_integer_value(json_object_get(j, "max_trials")), 200);
    ck_assert_str_eq(json_string_value(json_object_get(j, "wall_time")), "6h");
    ck_assert(json_real_value(json_object_get(j, "grace")) == 1.5);
    ck_assert(json_is_null(json_object_get(j, "max_failed_trials")));
    json_decref(j);
    j = NULL;
    const char *const other[] = {"patience=3"}, *const bare[] = {"max_trials"};
    const char *const mistyped[] = {"max_trails=3"};
    const char *const twice[] = {"grace=1", "limits.grace=2"};
    ck_fails(param_args_read("LIMIT", other, 1, param_args_add_limit, &j, &err), AS_E_USAGE, err,
             "'patience' is no limit; expected one of max_trials");
    ck_fails(param_args_read("LIMIT", mistyped, 1, param_args_add_limit, &j, &err), AS_E_USAGE, err,
             "did you mean max_trials?");
    ck_fails(param_args_read("LIMIT", bare, 1, param_args_add_limit, &j, &err), AS_E_USAGE, err,
             "NAME=VALUE");
    ck_fails(param_args_read("LIMIT", twice, 2, param_args_add_limit, &j, &err), AS_E_USAGE, err,
             "grace is given twice");
    ck_assert_ptr_null(j);
}
END_TEST

/* A number in units of the metric, a share, or the object itself. */
START_TEST(when_to_stop_is_written_shortly)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"stop_when=0.01", "{\"regret\":0.01}"},
        {"limits.stop_when=2", "{\"regret\":2.0}"},
        {"stop_when=1%", "{\"relative\":0.01}"},
        {"stop_when={relative: 0.5, min_trials: 50}", "{\"relative\":0.5,\"min_trials\":50}"},
        {"stop_when=none", "null"}};
    static const char *const bad[] = {"stop_when=", "stop_when=%", "stop_when=soon",
                                      "stop_when={a"};
    struct as_err err = {0};
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        JSON_AUTO j = NULL;
        ck_ok(param_args_read("LIMIT", &cases[i].text, 1, param_args_add_limit, &j, &err), err);
        AS_AUTO(as_freep) char *text = json_format_ordered(json_object_get(j, "stop_when"));
        ck_assert_str_eq(text, cases[i].want);
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(bad); i++) {
        json_t *j = NULL;
        ck_fails(param_args_read("LIMIT", &bad[i], 1, param_args_add_limit, &j, &err), AS_E_USAGE,
                 err, "stop_when");
    }
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("param_args");
    TCase *t = tcase_create("param_args");
    tcase_add_test(t, parameters_are_typed);
    tcase_add_test(t, metrics_are_numbers);
    tcase_add_test(t, limits_are_named);
    tcase_add_test(t, when_to_stop_is_written_shortly);
    tcase_add_test(t, what_is_wrong);
    suite_add_tcase(s, t);
    return s;
}
