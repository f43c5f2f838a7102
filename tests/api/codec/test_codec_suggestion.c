/* Ask and tell: decoders with the input that they must refuse and the field that their error names;
 * encoders against the schemas of api/openapi.yaml. Also the fields that the search adds to sweeps
 * and trials. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/codec/wire.h"
#include "base/json.h"
#include "tests/api/codec/decode_check.h"
#include "tests/support/nth.h"
#include "tests/support/schema_check.h"
#include "tests/support/check_main.h"

/* Each allocation of an encoder fails before its value is looked at. */
#define ck_schema(schema, call) ck_schema(schema, nth_json(call))

static as_status try_ask(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct ask_request r;
    int64_t wait = 0;
    (void)a;
    return ask_decode(doc, &r, &wait, err);
}

static as_status try_measure(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct ask_ref ref = {0};
    struct measurement_list list;
    return tell_measurements_decode(doc, a, &ref, &list, err);
}

static as_status try_complete(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct ask_ref ref = {0};
    struct completion c;
    return tell_complete_decode(doc, a, &ref, &c, err);
}

static as_status try_beat(const json_t *doc, struct arena *a, struct as_err *err)
{
    struct ask_ref ref = {0};
    int64_t lease = 0;
    (void)a;
    return tell_heartbeat_decode(doc, &ref, &lease, err);
}

#define NAME_64 "a123456789012345678901234567890123456789012345678901234567890123"

static const struct decode_case cases[] = {
    {try_ask, "{\"client\":\"me\"}", NULL},
    {try_ask, "{\"client\":\"Box-1.lab:3@x_y\",\"count\":64,\"lease_ms\":1000,\"wait_ms\":0}",
     NULL},
    {try_ask, "{\"client\":\"" NAME_64 "\",\"count\":null}", NULL},
    {try_ask, "{\"client\":\"" NAME_64 "4\"}", "/client"},
    {try_ask, "{}", "/client"},
    {try_ask, "{\"client\":\"\"}", "/client"},
    {try_ask, "{\"client\":7}", "/client"},
    {try_ask, "{\"client\":\"a b\"}", "/client"},
    {try_ask, "{\"client\":\"-a\"}", "/client"},
    {try_ask, "{\"client\":\"caf\u00e9\"}", "/client"},
    {try_ask, "{\"client\":\"me\",\"count\":0}", "/count"},
    {try_ask, "{\"client\":\"me\",\"count\":65}", "/count"},
    {try_ask, "{\"client\":\"me\",\"count\":1.5}", "/count"},
    {try_ask, "{\"client\":\"me\",\"lease_ms\":999}", "/lease_ms"},
    {try_ask, "{\"client\":\"me\",\"lease_ms\":604800001}", "/lease_ms"},
    {try_ask, "{\"client\":\"me\",\"wait_ms\":60001}", "/wait_ms"},
    {try_ask, "{\"client\":\"me\",\"wait_ms\":-1}", "/wait_ms"},
    {try_ask, "{\"client\":\"me\",\"cuont\":1}", "/cuont"},
    {try_measure, "{\"client\":\"me\",\"items\":[]}", NULL},
    {try_measure,
     "{\"client\":\"me\",\"attempt\":2,\"items\":[{\"step\":0,\"metrics\":{\"loss\":\"NaN\"}}]}",
     NULL},
    {try_measure, "{\"client\":\"me\"}", "/items"},
    {try_measure, "{\"items\":[]}", "/client"},
    {try_measure, "{\"client\":\"me\",\"attempt\":0,\"items\":[]}", "/attempt"},
    {try_measure, "{\"client\":\"me\",\"items\":[{\"step\":0,\"metrics\":{\"a/b\":\"x\"}}]}",
     "/items/0/metrics/a~1b"},
    {try_measure, "{\"client\":\"me\",\"items\":[{\"metrics\":{}}]}", "/items/0/step"},
    {try_measure, "{\"client\":\"me\",\"items\":[],\"step\":1}", "/step"},
    {try_complete, "{\"client\":\"me\"}", NULL},
    {try_complete, "{\"client\":\"me\",\"metrics\":{\"loss\":0.3}}", NULL},
    {try_complete,
     "{\"client\":\"me\",\"attempt\":3,\"outcome\":\"failed\",\"metrics\":{},\"step\":7,"
     "\"reason\":\"r\"}",
     NULL},
    {try_complete, "{\"client\":\"me\",\"outcome\":\"released\",\"reason\":null}", NULL},
    {try_complete, "{\"metrics\":{\"loss\":0.3}}", "/client"},
    {try_complete, "{\"client\":\"me\",\"outcome\":\"paused\"}", NULL},
    {try_complete, "{\"client\":\"me\",\"outcome\":\"pruned\",\"reason\":\"r\"}", NULL},
    {try_complete, "{\"client\":\"me\",\"outcome\":\"retry\"}", "/outcome"},
    {try_complete, "{\"client\":\"me\",\"outcome\":\"timeout\"}", "/outcome"},
    {try_complete, "{\"client\":\"me\",\"metrics\":{\"loss\":\"0.3\"}}", "/metrics/loss"},
    {try_complete, "{\"client\":\"me\",\"metrics\":[0.3]}", "/metrics"},
    {try_complete, "{\"client\":\"me\",\"metrics\":{\"loss\":null}}", "/metrics/loss"},
    {try_complete, "{\"client\":\"me\",\"step\":-1}", "/step"},
    {try_complete, "{\"client\":\"me\",\"exit_code\":0}", "/exit_code"},
    {try_beat, "{\"client\":\"me\"}", NULL},
    {try_beat, "{\"client\":\"me\",\"attempt\":1,\"lease_ms\":604800000}", NULL},
    {try_beat, "{\"client\":\"me\",\"lease_ms\":0}", "/lease_ms"},
    {try_beat, "{\"client\":\"me\",\"lease\":1}", "/lease"},
    {try_beat, "[]", ""},
};

START_TEST(test_decode)
{
    decode_check(&cases[_i], true);
}
END_TEST

START_TEST(test_ask_values)
{
    struct ask_request r;
    struct as_err err;
    int64_t wait = 0;
    JSON_AUTO least = decode_parse("{\"client\":\"me\"}");
    ck_ok(ask_decode(least, &r, &wait, &err), err);
    ck_assert_str_eq(r.client, "me");
    ck_assert_int_eq(r.count, 1);
    ck_assert_int_eq(r.lease_ms, 600000);
    ck_assert_int_eq(wait, 30000);
    JSON_AUTO full =
        decode_parse("{\"client\":\"me\",\"count\":8,\"lease_ms\":7200000,\"wait_ms\":0}");
    ck_ok(ask_decode(full, &r, &wait, &err), err);
    ck_assert_int_eq(r.count, 8);
    ck_assert_int_eq(r.lease_ms, 7200000);
    ck_assert_int_eq(wait, 0);
}
END_TEST

START_TEST(test_tell_values)
{
    struct arena a = {0};
    struct ask_ref ref = {.sweep = "s", .number = 7};
    struct completion c;
    struct measurement_list m;
    struct as_err err;
    int64_t lease = -1;
    JSON_AUTO end =
        decode_parse("{\"client\":\"me\",\"metrics\":{\"loss\":0.3,\"acc\":\"-Infinity\"}}");
    ck_ok(tell_complete_decode(end, &a, &ref, &c, &err), err);
    ck_assert_str_eq(ref.client, "me");
    ck_assert(ref.number == 7 && ref.attempt == 0 && strcmp(ref.sweep, "s") == 0);
    ck_assert_int_eq(c.outcome, OUTCOME_COMPLETED);
    ck_assert_uint_eq(c.n_metrics, 2);
    ck_assert_str_eq(c.metrics[0].metric, "loss");
    ck_assert_double_eq(c.metrics[0].value, 0.3);
    ck_assert_int_lt(c.metrics[0].step, 0); /* the step after the latest one */
    ck_assert(isinf(c.metrics[1].value));
    JSON_AUTO given = decode_parse("{\"client\":\"me\",\"attempt\":2,\"outcome\":\"released\","
                                   "\"step\":5,\"metrics\":{\"loss\":1}}");
    ck_ok(tell_complete_decode(given, &a, &ref, &c, &err), err);
    ck_assert_int_eq(c.outcome, OUTCOME_RELEASED);
    ck_assert_int_eq(c.metrics[0].step, 5);
    ck_assert_int_eq(ref.attempt, 2);
    JSON_AUTO failed =
        decode_parse("{\"client\":\"me\",\"outcome\":\"failed\",\"reason\":\"oom\"}");
    ck_ok(tell_complete_decode(failed, &a, &ref, &c, &err), err);
    ck_assert(c.outcome == OUTCOME_FAILED && c.n_metrics == 0 && strcmp(c.reason, "oom") == 0);
    JSON_AUTO batch =
        decode_parse("{\"client\":\"you\",\"items\":[{\"step\":3,\"metrics\":{\"a\":1}},"
                     "{\"step\":4,\"metrics\":{\"a\":2,\"b\":3}}]}");
    ck_ok(tell_measurements_decode(batch, &a, &ref, &m, &err), err);
    ck_assert_str_eq(ref.client, "you");
    ck_assert(m.n == 3 && m.rows[2].step == 4 && m.rows[2].value == 3);
    JSON_AUTO beat = decode_parse("{\"client\":\"me\"}");
    ck_ok(tell_heartbeat_decode(beat, &ref, &lease, &err), err);
    ck_assert_int_eq(lease, 0);
    arena_done(&a);
}
END_TEST

START_TEST(test_too_large)
{
    struct arena a = {0};
    struct as_err err = {0};
    JSON_AUTO items = json_pack("{s:s, s:[]}", "client", "me", "items");
    for (int i = 0; i < 1001; i++)
        (void)json_array_append_new(json_object_get(items, "items"),
                                    json_pack("{s:i, s:{}}", "step", i, "metrics"));
    ck_fails(try_measure(items, &a, &err), AS_E_TOO_LARGE, err, "at most");
    ck_assert_str_eq(err.pointer, "/items");
    JSON_AUTO metrics = json_pack("{s:s, s:{}}", "client", "me", "metrics");
    for (int i = 0; i < 101; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "m%d", i);
        (void)json_object_set_new(json_object_get(metrics, "metrics"), name, json_integer(i));
    }
    ck_fails(try_complete(metrics, &a, &err), AS_E_TOO_LARGE, err, "at most");
    ck_assert_str_eq(err.pointer, "/metrics");
    arena_done(&a);
}
END_TEST

START_TEST(test_suggestions)
{
    const char *inactive[] = {"momentum"};
    struct suggestion_row rows[] = {{.number = 0,
                                     .attempt = 1,
                                     .seed = INT64_MAX,
                                     .params = "{\"lr\":0.1,\"k\":\"a\"}",
                                     .inactive = inactive,
                                     .n_inactive = 1,
                                     .reason = "{\"method\":\"gp\",\"seen\":3}",
                                     .lease_until_ms = 1763664423123},
                                    {.number = 5,
                                     .attempt = 2,
                                     .params = "{}",
                                     .origin = ORIGIN_ENQUEUED,
                                     .reason = "{\"method\":\"enqueued\"}",
                                     .lease_until_ms = 1763664423123}};
    struct suggestion_list list = {.rows = rows, .n = 2, .state = SWEEP_RUNNING};
    JSON_AUTO two = ck_schema("AskResult", suggestions_encode("s-2", &list));
    const json_t *first = json_array_get(json_object_get(two, "items"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(first, "seed")), "9223372036854775807");
    ck_assert_str_eq(json_string_value(json_object_get(first, "origin")), "suggested");
    ck_assert_str_eq(json_string_value(json_object_get(first, "sweep")), "s-2");
    ck_assert(json_is_false(json_object_get(two, "done")));
    list = (struct suggestion_list){.state = SWEEP_COMPLETED, .done = true};
    JSON_AUTO over = ck_schema("AskResult", suggestions_encode("s-2", &list));
    ck_assert(json_is_true(json_object_get(over, "done")));
    struct directive_row pause = {
        .ref = {"s-2", 4, 1}, .reason = "at step 3 it is 7th of 9", .action = DIRECTIVE_PAUSE};
    JSON_AUTO report = ck_schema("SuggestionReport", report_encode(3, NULL));
    ck_assert_uint_eq(json_array_size(json_object_get(report, "directives")), 0);
    JSON_AUTO told = ck_schema("SuggestionReport", report_encode(3, &pause));
    const json_t *asked = json_array_get(json_object_get(told, "directives"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(asked, "action")), "pause");
    ck_assert_str_eq(json_string_value(json_object_get(asked, "reason")), pause.reason);
    JSON_AUTO lease = ck_schema("SuggestionLease", tell_lease_encode(1763664423123));
    rows[0].params = "not JSON";
    list = (struct suggestion_list){.rows = rows, .n = 1};
    ck_assert_ptr_null(suggestions_encode("s", &list));
}
END_TEST

START_TEST(test_trial_fields)
{
    struct trial_row r = {.sweep = "s",
                          .state = TRIAL_COMPLETED,
                          .attempt = 1,
                          .params = "{}",
                          .metrics = "{}",
                          .suggestion = "{\"method\":\"gp\"}",
                          .origin = ORIGIN_SUGGESTED,
                          .has_index = true,
                          .index = 4,
                          .has_seen = true,
                          .seen = 0,
                          .finish_seq = 9,
                          .has_feasible = true,
                          .feasible = false,
                          .client = "me",
                          .created_ms = 1};
    JSON_AUTO full = ck_schema("Trial", trial_encode(&r));
    ck_assert_int_eq(json_integer_value(json_object_get(full, "index")), 4);
    ck_assert(json_is_integer(json_object_get(full, "seen")));
    ck_assert(json_is_false(json_object_get(full, "feasible")));
    ck_assert(json_is_null(json_object_get(full, "runner")));
    ck_assert_str_eq(json_string_value(json_object_get(full, "client")), "me");
    r = (struct trial_row){.sweep = "s",
                           .params = "{}",
                           .metrics = "{}",
                           .origin = ORIGIN_KNOWN,
                           .suggestion = "{\"method\":\"known\"}",
                           .created_ms = 1};
    JSON_AUTO bare = ck_schema("Trial", trial_encode(&r));
    ck_assert_str_eq(json_string_value(json_object_get(bare, "origin")), "known");
    ck_assert(json_is_null(json_object_get(bare, "index")));
    ck_assert(json_is_null(json_object_get(bare, "seen")));
    ck_assert(json_is_null(json_object_get(bare, "finish_seq")));
    ck_assert(json_is_null(json_object_get(bare, "feasible")));
    struct attempt_row attempt = {.attempt = 1, .client = "me", .started_ms = 1};
    struct trial_detail d = {.trial = r, .attempts = &attempt, .n_attempts = 1};
    JSON_AUTO detail = ck_schema("TrialDetail", trial_detail_encode(&d));
}
END_TEST

START_TEST(test_sweep_fields)
{
    struct sweep_row r = {.id = "s",
                          .name = "s",
                          .tags = "[]",
                          .document =
                              "{\"name\":\"s\",\"metric\":{\"name\":\"a\",\"goal\":\"minimize\"},"
                              "\"parameters\":{\"x\":{\"type\":\"bool\"}}}",
                          .objectives = "[{\"name\":\"a\",\"goal\":\"minimize\"},"
                                        "{\"name\":\"b\",\"goal\":\"maximize\"}]",
                          .outcomes = "[{\"metric\":\"c\",\"max\":20}]",
                          .metric = "a",
                          .method = "gp",
                          .planned = 12,
                          .known = 2,
                          .created_ms = 1};
    JSON_AUTO two = ck_schema("Sweep", sweep_encode(&r));
    ck_assert_uint_eq(json_array_size(json_object_get(two, "metrics")), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(two, "constraints")), 1);
    ck_assert_str_eq(json_string_value(json_object_get(json_object_get(two, "metric"), "name")),
                     "a");
    ck_assert_int_eq(json_integer_value(json_object_get(two, "known_trials")), 2);
    ck_assert(json_is_false(json_object_get(two, "for_runners")));
    r.objectives = r.outcomes = NULL;
    JSON_AUTO one = ck_schema("Sweep", sweep_encode(&r));
    ck_assert_uint_eq(json_array_size(json_object_get(one, "metrics")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(one, "constraints")), 0);
    r.document = NULL; /* as in a list */
    JSON_AUTO summary = ck_schema("SweepSummary", sweep_encode(&r));
    ck_assert_ptr_null(json_object_get(summary, "document"));
}
END_TEST

START_TEST(test_pareto)
{
    struct trial_row row = {.sweep = "s",
                            .state = TRIAL_COMPLETED,
                            .params = "{}",
                            .metrics = "{}",
                            .suggestion = "{\"method\":\"random\"}",
                            .created_ms = 1};
    const char *metrics[] = {"error", "throughput"};
    bool maximize[] = {false, true};
    double reference[] = {0.5, -INFINITY};
    struct pareto_row p = {.rows = &row,
                           .n = 1,
                           .metrics = metrics,
                           .maximize = maximize,
                           .n_metrics = 2,
                           .has_reference = true,
                           .reference = reference,
                           .hypervolume = 0.1};
    JSON_AUTO full = ck_schema("Pareto", pareto_encode(&p));
    ck_assert_uint_eq(json_array_size(json_object_get(full, "reference")), 2);
    ck_assert(json_real_value(json_object_get(full, "hypervolume")) == 0.1);
    p = (struct pareto_row){.metrics = metrics, .maximize = maximize, .n_metrics = 2};
    JSON_AUTO empty = ck_schema("Pareto", pareto_encode(&p));
    ck_assert(json_is_null(json_object_get(empty, "reference")));
    ck_assert(json_is_null(json_object_get(empty, "hypervolume")));
}
END_TEST

START_TEST(test_regret)
{
    struct regret_row r = {
        .metric = "loss", .finish_seq = 60, .is_enough = true, .bound = 0.25, .relative = 0.5};
    JSON_AUTO full = ck_schema("RegretBound", regret_encode(&r));
    ck_assert(json_real_value(json_object_get(full, "bound")) == 0.25);
    ck_assert(json_real_value(json_object_get(full, "relative")) == 0.5);
    ck_assert(json_is_true(json_object_get(full, "enough")));
    r = (struct regret_row){.metric = "loss", .is_stale = true, .bound = NAN, .relative = NAN};
    JSON_AUTO none = ck_schema("RegretBound", regret_encode(&r));
    ck_assert(json_is_null(json_object_get(none, "bound")));
    ck_assert(json_is_true(json_object_get(none, "stale")));
}
END_TEST

START_TEST(test_surface)
{
    struct surface_row r = {.metric = "loss",
                            .trials = 60,
                            .r2 = 0.5,
                            .surfaces = "[{\"x\":{\"name\":\"k\",\"values\":[\"a\",1]},\"y\":null,"
                                        "\"base\":{\"k\":1},\"base_trial\":3,\"mean\":[0.5,null],"
                                        "\"deviation\":[0.1,null],\"reason\":null}]"};
    JSON_AUTO full = ck_schema("Surfaces", surface_encode(&r));
    ck_assert_uint_eq(json_array_size(json_object_get(full, "surfaces")), 1);
    r = (struct surface_row){.metric = "loss", .r2 = NAN, .reason = "few", .surfaces = "[]"};
    JSON_AUTO none = ck_schema("Surfaces", surface_encode(&r));
    ck_assert_str_eq(json_string_value(json_object_get(none, "reason")), "few");
}
END_TEST

START_TEST(test_preview)
{
    struct preview_suggestion suggestions[] = {{"{\"x\": 0.5}", "the first"}};
    struct faults none = {0};
    struct preview_row r = {.is_valid = true,
                            .name = "a",
                            .method = "grid",
                            .seed = 7,
                            .planned = 4,
                            .n_cells = 12,
                            .suggestions = suggestions,
                            .n = 1};
    JSON_AUTO full = ck_schema("SweepPreview", preview_encode(&r, &none));
    ck_assert_int_eq(json_integer_value(json_object_get(full, "cells")), 12);
    ck_assert_str_eq(json_string_value(json_object_get(full, "seed")), "7");
    struct as_err cut = {.pointer = "/name", .msg = "not \xc3"};
    struct faults faults = {.list = &cut, .n = 1};
    r = (struct preview_row){0};
    JSON_AUTO bad = ck_schema("SweepPreview", preview_encode(&r, &faults));
    const json_t *fault = json_array_get(json_object_get(bad, "errors"), 0);
    ck_assert_str_eq(json_string_value(json_object_get(fault, "pointer")), "/name");
    ck_assert_str_eq(json_string_value(json_object_get(fault, "detail")), "not ?");
    ck_assert(json_is_null(json_object_get(bad, "seed")));
}
END_TEST

START_TEST(test_regret_checks)
{
    struct regret_check rows[] = {
        {.completed = 4, .seq = 5, .bound = NAN, .relative = NAN, .made_ms = 1},
        {.completed = 30,
         .seq = 33,
         .bound = 0.25,
         .relative = 0.5,
         .enough = true,
         .has_best = true,
         .best = 7,
         .best_mean = 1.5,
         .best_deviation = 0.5,
         .best_noise = 0.75,
         .made_ms = 2}};
    const struct regret_check_list l = {rows, 2};
    JSON_AUTO list = regret_checks_encode(&l);
    const json_t *items = json_object_get(list, "items");
    JSON_AUTO none = ck_schema("RegretCheck", json_incref(json_array_get(items, 0)));
    JSON_AUTO full = ck_schema("RegretCheck", json_incref(json_array_get(items, 1)));
    ck_assert(json_is_null(json_object_get(none, "bound")));
    ck_assert(json_is_false(json_object_get(none, "enough")));
    ck_assert_int_eq(json_integer_value(json_object_get(full, "completed")), 30);
    ck_assert_int_eq(json_integer_value(json_object_get(full, "finish_seq")), 33);
    ck_assert(json_real_value(json_object_get(full, "bound")) == 0.25);
    ck_assert(json_real_value(json_object_get(full, "relative")) == 0.5);
    ck_assert_ptr_null(json_object_get(none, "best"));
    const json_t *best = json_object_get(full, "best");
    ck_assert_int_eq(json_integer_value(json_object_get(best, "number")), 7);
    ck_assert(json_number_value(json_object_get(best, "mean")) == 1.5);
    ck_assert(json_number_value(json_object_get(best, "deviation")) == 0.5);
    ck_assert(json_number_value(json_object_get(best, "noise")) == 0.75);
}
END_TEST

START_TEST(test_importance)
{
    struct importance_param params[] = {{"lr", 0.7, 0.6, 0.8, 0.9, 0.8, 1.0, 0.75, false},
                                        {"width", 0.1, NAN, NAN, 0.2, NAN, NAN, 0.25, true}};
    struct importance_row r = {.metric = "loss",
                               .trials = 60,
                               .every = 2,
                               .method = "sobol",
                               .r2 = 0.93,
                               .params = params,
                               .n = 2};
    JSON_AUTO full = ck_schema("Importance", importance_encode(&r));
    const json_t *second = json_array_get(json_object_get(full, "parameters"), 1);
    ck_assert(json_is_null(json_object_get(second, "first_low")));
    ck_assert(json_real_value(json_object_get(second, "top")) == 0.25);
    ck_assert(json_is_true(json_object_get(second, "conditional")));
    ck_assert_str_eq(json_string_value(json_object_get(full, "metric")), "loss");
    ck_assert(json_is_false(json_object_get(full, "stale")));
    ck_assert_int_eq(json_integer_value(json_object_get(full, "every")), 2);
    r = (struct importance_row){.metric = "loss",
                                .trials = 1,
                                .every = 1,
                                .is_stale = true,
                                .method = "sobol",
                                .r2 = NAN,
                                .reason = "too few"};
    JSON_AUTO none = ck_schema("Importance", importance_encode(&r));
    ck_assert(json_is_true(json_object_get(none, "stale")));
    ck_assert(json_is_null(json_object_get(none, "r2")));
    ck_assert_str_eq(json_string_value(json_object_get(none, "reason")), "too few");
}
END_TEST

TEST_SUITE()
{
    json_fail_with_mem();
    Suite *s = suite_create("api_codec_suggestion");
    TCase *tc = tcase_create("codec");
    tcase_add_loop_test(tc, test_decode, 0, AS_ARRAY_LEN(cases));
    tcase_add_test(tc, test_ask_values);
    tcase_add_test(tc, test_tell_values);
    tcase_add_test(tc, test_too_large);
    tcase_add_test(tc, test_suggestions);
    tcase_add_test(tc, test_trial_fields);
    tcase_add_test(tc, test_sweep_fields);
    tcase_add_test(tc, test_pareto);
    tcase_add_test(tc, test_regret);
    tcase_add_test(tc, test_surface);
    tcase_add_test(tc, test_preview);
    tcase_add_test(tc, test_regret_checks);
    tcase_add_test(tc, test_importance);
    suite_add_tcase(s, tc);
    return s;
}
