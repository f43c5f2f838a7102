/* Trials that clients add, with and without a result, and what the server makes of several
 * objectives: the front, the best trials, the importance. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/api/server/asking.h"
#include "tests/support/check_main.h"

START_TEST(test_added)
{
    struct rest viewer = as_viewer();
    static const char doc[] =
        "{\"name\":\"added\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},\"parameters\":"
        "{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}},\"search\":{\"method\":\"sobol\"},"
        "\"limits\":{\"max_trials\":3}}";
    struct rest user = as_user();
    char buf[100];
    REPLY_AUTO made = post_to_sweep(doc, "/v1/sweeps?paused=true");
    ck_status(made, 201);
    ck_assert_str_eq(reply_str(&made, "state"), "paused");
    REPLY_AUTO known = post_to_sweep("{\"params\":{\"x\":0.25},\"metrics\":{\"loss\":0.5}}",
                                     "/v1/sweeps/added/trials");
    ck_status(known, 201);
    ck_assert_str_eq(reply_str(&known, "origin"), "known");
    ck_assert_str_eq(reply_str(&known, "state"), "completed");
    ck_assert_str_eq(reply_header(&known, "Location", buf, sizeof buf),
                     "/v1/sweeps/added/trials/0");
    REPLY_AUTO broken =
        post_to_sweep("{\"params\":{\"x\":1},\"state\":\"failed\",\"reason\":\"diverged\"}",
                      "/v1/sweeps/added/trials");
    ck_status(broken, 201);
    ck_assert_str_eq(reply_str(&broken, "state"), "failed");
    static const char queued[] = "{\"params\":{\"x\":0.75}}";
    const char *const key[] = {"Idempotency-Key: the-one", NULL};
    const struct rest_options once = {
        .headers = key, .body = queued, .len = strlen(queued), .type = "application/json"};
    REPLY_AUTO first = rest_call_with(&user, "POST", "/v1/sweeps/added/trials", &once);
    REPLY_AUTO again = rest_call_with(&user, "POST", "/v1/sweeps/added/trials", &once);
    ck_status(first, 201);
    ck_status(again, 201);
    ck_assert_int_eq(reply_int(&first, "number"), reply_int(&again, "number"));
    ck_assert_str_eq(reply_str(&first, "origin"), "enqueued");
    ck_assert_str_eq(reply_str(&first, "state"), "queued");
    REPLY_AUTO sweep = rest_get(&viewer, "/v1/sweeps/added");
    ck_assert_int_eq(reply_int(&sweep, "planned_trials"), 5); /* 3, and 2 that were known */
    ck_assert_int_eq(reply_int(&sweep, "known_trials"), 2);
    ck_assert_int_eq(reply_int(&sweep, "counts.total"), 3);
    REPLY_AUTO still = ask_trials_of("added", "me", 1, 0);
    ck_assert_uint_eq(n_items(&still), 0); /* paused */
    REPLY_AUTO resume = rest_call(&user, "PATCH", "/v1/sweeps/added", "{\"state\":\"running\"}");
    ck_status(resume, 200);
    REPLY_AUTO all = ask_trials_of("added", "me", 9, 20000);
    ck_assert_uint_eq(n_items(&all), 3);
    ck_assert_str_eq(reply_str(&all, "items.0.origin"), "enqueued");
    ck_assert(json_number_value(reply_get(&all, "items.0.params.x")) == 0.75);
    ck_assert_str_eq(reply_str(&all, "items.1.origin"), "suggested");
    REPLY_AUTO full = post_to_sweep(queued, "/v1/sweeps/added/trials");
    ck_status(full, 409);
    drop_sweep("added");
}
END_TEST

START_TEST(test_added_badly)
{
    static const struct {
        const char *body, *pointer;
    } cases[] = {
        {"{}", "/params"},
        {"{\"params\":{}}", "/params/x"},
        {"{\"params\":{\"x\":2,\"y\":\"a\"}}", "/params/x"},
        {"{\"params\":{\"x\":0.5,\"y\":\"d\"}}", "/params/y"},
        {"{\"params\":{\"x\":0.5,\"y\":\"a\",\"z\":1}}", "/params/z"},
        {"{\"params\":{\"x\":\"0.5\",\"y\":\"a\"}}", "/params/x"},
        {"{\"params\":{\"x\":0.5,\"y\":\"a\"},\"metrics\":{\"loss\":\"x\"}}", "/metrics/loss"},
        {"{\"params\":{\"x\":0.5,\"y\":\"a\"},\"state\":\"running\"}", "/state"},
        {"{\"params\":{\"x\":0.5,\"y\":\"a\"},\"value\":1}", "/value"},
    };
    struct rest viewer = as_viewer();
    make_asked_sweep("badly", "sobol", 3, "");
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        REPLY_AUTO r = post_to_sweep(cases[i].body, "/v1/sweeps/badly/trials");
        ck_status(r, 400);
        ck_assert_msg(strcmp(reply_str(&r, "errors.0.pointer"), cases[i].pointer) == 0, "%s: %s",
                      cases[i].body, str_cstr(&r.body));
    }
    REPLY_AUTO nowhere = post_to_sweep("{\"params\":{\"x\":0.5}}", "/v1/sweeps/nothing/trials");
    ck_status(nowhere, 404);
    REPLY_AUTO denied = rest_call(&viewer, "POST", "/v1/sweeps/badly/trials", cases[0].body);
    ck_status(denied, 403);
    REPLY_AUTO none = rest_get(&viewer, "/v1/sweeps/badly/trials");
    ck_assert_uint_eq(n_items(&none), 0);
    drop_sweep("badly");
    static const char grid[] =
        "{\"name\":\"cells\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},\"parameters\":"
        "{\"x\":{\"type\":\"int\",\"min\":0,\"max\":3}},\"search\":{\"method\":\"grid\"}}";
    REPLY_AUTO cells = post_to_sweep(grid, "/v1/sweeps");
    ck_status(cells, 201);
    REPLY_AUTO refused = post_to_sweep("{\"params\":{\"x\":1}}", "/v1/sweeps/cells/trials");
    ck_status(refused, 409);
    REPLY_AUTO result =
        post_to_sweep("{\"params\":{\"x\":1},\"metrics\":{\"loss\":1}}", "/v1/sweeps/cells/trials");
    ck_status(result, 409);
    drop_sweep("cells");
}
END_TEST

/* Two objectives and a constraint: the front, the best trials, and the importance. */
START_TEST(test_front)
{
    struct rest viewer = as_viewer();
    static const char doc[] =
        "{\"name\":\"front\",\"metrics\":[{\"name\":\"cost\",\"goal\":\"minimize\"},{\"name\":"
        "\"gain\",\"goal\":\"maximize\"}],\"constraints\":[{\"metric\":\"heat\",\"max\":10}],"
        "\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1},\"y\":{\"type\":\"bool\"}},"
        "\"search\":{\"method\":\"sobol\"},\"limits\":{\"max_trials\":4}}";
    static const char *const ends[] = {
        "\"metrics\":{\"cost\":1,\"gain\":1,\"heat\":5}",
        "\"metrics\":{\"cost\":2,\"gain\":3,\"heat\":10}",
        "\"metrics\":{\"cost\":3,\"gain\":2,\"heat\":5}",     /* dominated by the second */
        "\"metrics\":{\"cost\":0.5,\"gain\":9,\"heat\":10.5}" /* not feasible */
    };
    REPLY_AUTO made = post_to_sweep(doc, "/v1/sweeps");
    ck_status(made, 201);
    ck_assert_str_eq(reply_str(&made, "metrics.1.name"), "gain");
    ck_assert(json_number_value(reply_get(&made, "constraints.0.max")) == 10);
    REPLY_AUTO empty = rest_get(&viewer, "/v1/sweeps/front/pareto");
    ck_status(empty, 200);
    ck_assert_uint_eq(n_items(&empty), 0);
    ck_assert(json_is_null(reply_get(&empty, "hypervolume")));
    REPLY_AUTO importance = rest_get(&viewer, "/v1/sweeps/front/importance");
    ck_status(importance, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&importance, "parameters")), 0);
    ck_assert_str_ne(reply_str(&importance, "reason"), ""); /* too few trials */
    ck_assert_str_eq(reply_str(&importance, "metric"), "cost");
    for (size_t i = 0; i < AS_ARRAY_LEN(ends); i++) {
        REPLY_AUTO told = tell_result("front", ask_one("front", "me"), "me", ends[i]);
        ck_status(told, 200);
        ck_assert_str_eq(reply_str(&told, "state"), "completed");
        ck_assert(json_is_true(reply_get(&told, "feasible")) == (i < 3));
    }
    REPLY_AUTO front = rest_get(&viewer, "/v1/sweeps/front/pareto");
    ck_status(front, 200);
    ck_assert_uint_eq(n_items(&front), 2);
    ck_assert_int_eq(reply_int(&front, "items.0.number"), 0);
    ck_assert_int_eq(reply_int(&front, "items.1.number"), 1);
    ck_assert_str_eq(reply_str(&front, "metrics.1.goal"), "maximize");
    ck_assert_uint_eq(json_array_size(reply_get(&front, "reference")), 2);
    ck_assert(json_number_value(reply_get(&front, "hypervolume")) > 0);
    REPLY_AUTO best = rest_get(&viewer, "/v1/sweeps/front/best");
    ck_assert_uint_eq(n_items(&best), 3);
    ck_assert_int_eq(reply_int(&best, "items.0.number"), 0);
    REPLY_AUTO gain = rest_get(&viewer, "/v1/sweeps/front/importance?metric=gain");
    ck_status(gain, 200);
    ck_assert_str_eq(reply_str(&gain, "metric"), "gain");
    REPLY_AUTO heat =
        rest_get(&viewer, "/v1/sweeps/front/importance?metric=heat"); /* no objective */
    ck_status(heat, 400);
    ck_assert_ptr_nonnull(strstr(reply_str(&heat, "detail"), "'heat'"));
    ck_assert_ptr_nonnull(strstr(reply_str(&heat, "detail"), "cost, gain"));
    REPLY_AUTO nowhere = rest_get(&viewer, "/v1/sweeps/nothing/pareto");
    ck_status(nowhere, 404);
    REPLY_AUTO neither = rest_get(&viewer, "/v1/sweeps/nothing/importance");
    ck_status(neither, 404);
    drop_sweep("front");
}
END_TEST

/* The bound of what is left: none without results, of several metrics or of a sweep that is not
 * there; then one, which is kept until there are more results. */
START_TEST(test_regret)
{
    struct rest viewer = as_viewer();
    static const char doc[] =
        "{\"name\":\"left\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},\"parameters\":"
        "{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}},\"search\":{\"method\":\"sobol\"},"
        "\"limits\":{\"max_trials\":4}}";
    REPLY_AUTO made = post_to_sweep(doc, "/v1/sweeps");
    ck_status(made, 201);
    REPLY_AUTO none = rest_get(&viewer, "/v1/sweeps/left/regret");
    ck_status(none, 200);
    ck_assert(json_is_null(reply_get(&none, "bound")));
    ck_assert_str_eq(reply_str(&none, "metric"), "loss");
    for (int i = 0; i < 12; i++) {
        char body[120];
        double x = i / 11.0;
        (void)snprintf(body, sizeof body, "{\"params\":{\"x\":%g},\"metrics\":{\"loss\":%g}}", x,
                       (x - 0.4) * (x - 0.4));
        REPLY_AUTO known = post_to_sweep(body, "/v1/sweeps/left/trials");
        ck_status(known, 201);
    }
    REPLY_AUTO some = rest_get(&viewer, "/v1/sweeps/left/regret");
    REPLY_AUTO again = rest_get(&viewer, "/v1/sweeps/left/regret");
    ck_status(some, 200);
    double bound = json_number_value(reply_get(&some, "bound"));
    ck_assert_msg(bound >= 0 && bound < 0.05, "%g", bound);
    ck_assert(json_is_true(reply_get(&some, "enough")));
    ck_assert_int_eq(reply_int(&some, "finish_seq"), 12);
    ck_assert(json_number_value(reply_get(&again, "bound")) == bound);
    REPLY_AUTO nowhere = rest_get(&viewer, "/v1/sweeps/nothing/regret");
    ck_status(nowhere, 404);
    drop_sweep("left");
}
END_TEST

/* An ask with parameters, and a name that only one of two programs gets. */
START_TEST(test_begun)
{
    struct rest viewer = as_viewer();
    make_asked_sweep("begun", "sobol", 3, "");
    static const char ask[] =
        "{\"client\":\"me\",\"params\":{\"x\":0.5,\"y\":\"a\"},\"lease_ms\":60000}";
    for (int i = 0; i < 2; i++) {
        REPLY_AUTO r = post_to_sweep(ask, "/v1/sweeps/begun/suggestions");
        ck_status(r, 200);
        ck_assert_uint_eq(n_items(&r), 1);
        ck_assert_int_eq(reply_int(&r, "items.0.number"), 0);
        ck_assert(json_number_value(reply_get(&r, "items.0.params.x")) == 0.5);
        ck_assert_str_eq(reply_str(&r, "items.0.origin"), "enqueued");
    }
    REPLY_AUTO row = rest_get(&viewer, "/v1/sweeps/begun/trials/0");
    ck_assert_str_eq(reply_str(&row, "state"), "running");
    static const struct {
        const char *body, *pointer;
    } cases[] = {
        {"{\"client\":\"you\",\"params\":{\"x\":2,\"y\":\"a\"}}", "/params/x"},
        {"{\"client\":\"you\",\"params\":{\"x\":0.5,\"y\":\"a\"},\"count\":2}", "/count"},
        {"{\"client\":\"you\",\"params\":[]}", "/params"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        REPLY_AUTO r = post_to_sweep(cases[i].body, "/v1/sweeps/begun/suggestions");
        ck_status(r, 400);
        ck_assert_str_eq(reply_str(&r, "errors.0.pointer"), cases[i].pointer);
    }
    REPLY_AUTO nowhere = post_to_sweep(ask, "/v1/sweeps/nothing/suggestions");
    ck_status(nowhere, 404);
    REPLY_AUTO taken = post_to_sweep(sweep_json("begun", 2), "/v1/sweeps?unique=true");
    ck_status(taken, 409);
    ck_assert_str_eq(reply_str(&taken, "errors.0.pointer"), "/name");
    REPLY_AUTO one = post_to_sweep(sweep_json("alone", 2), "/v1/sweeps?unique=true&paused=true");
    ck_status(one, 201);
    ck_assert_str_eq(reply_str(&one, "id"), "alone");
    drop_sweep("alone");
    drop_sweep("begun");
}
END_TEST

/* The same key with another query is another request. */
START_TEST(test_key_covers_query)
{
    struct rest user = as_user();
    const char *const key[] = {"Idempotency-Key: paused-or-not", NULL};
    const char *body = sweep_json("keyed", 2);
    const struct rest_options opts = {
        .headers = key, .body = body, .len = strlen(body), .type = "application/json"};
    REPLY_AUTO paused = rest_call_with(&user, "POST", "/v1/sweeps?paused=true", &opts);
    ck_status(paused, 201);
    REPLY_AUTO again = rest_call_with(&user, "POST", "/v1/sweeps?paused=true", &opts);
    ck_status(again, 201);
    ck_assert_str_eq(reply_str(&again, "id"), reply_str(&paused, "id"));
    REPLY_AUTO other = rest_call_with(&user, "POST", "/v1/sweeps", &opts);
    ck_status(other, 422);
    REPLY_AUTO bad = post_to_sweep(body, "/v1/sweeps?paused=maybe");
    ck_status(bad, 400);
    drop_sweep("keyed");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_added");
    TCase *tc = tcase_create("added");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, test_added);
    tcase_add_test(tc, test_added_badly);
    tcase_add_test(tc, test_regret);
    tcase_add_test(tc, test_begun);
    tcase_add_test(tc, test_key_covers_query);
    tcase_add_test(tc, test_front);
    suite_add_tcase(s, tc);
    return s;
}
