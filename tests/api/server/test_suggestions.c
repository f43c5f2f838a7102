/* Ask and tell over HTTP: the loop of a client, batches, waiting, fences. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "tests/api/server/asking.h"
#include "tests/support/raw_http.h"
#include "tests/support/check_main.h"

/* The twenty-line client: ask, run, complete, until done. */
START_TEST(test_loop)
{
    struct rest viewer = as_viewer();
    static const char *const methods[] = {"random", "sobol",     "gp",         "tpe",  "forest",
                                          "cmaes",  "evolution", "coordinate", "mcmc", "auto"};
    const char *name = methods[_i];
    int rounds = 0;
    make_asked_sweep(name, name, 6, "");
    for (;; rounds++) {
        char metrics[100];
        REPLY_AUTO r = post_to_sweep("{\"client\":\"me\"}", "/v1/sweeps/%s/suggestions", name);
        ck_status(r, 200);
        if (json_is_true(reply_get(&r, "done")))
            break;
        if (n_items(&r) == 0)
            continue;
        ck_assert_int_eq(reply_int(&r, "items.0.attempt"), 1);
        ck_assert_str_eq(reply_str(&r, "items.0.reason.method"),
                         as_streq(name, "auto") ? "gp" : name);
        ck_assert_str_eq(reply_str(&r, "items.0.origin"), "suggested");
        ck_assert_str_eq(reply_str(&r, "state"), "running");
        double x = json_number_value(reply_get(&r, "items.0.params.x"));
        ck_assert(x >= 0 && x <= 1);
        (void)snprintf(metrics, sizeof metrics, "\"metrics\":{\"loss\":%.17g}", (x - 0.3) * x);
        REPLY_AUTO told = tell_result(name, reply_int(&r, "items.0.number"), "me", metrics);
        ck_status(told, 200);
        ck_assert_str_eq(reply_str(&told, "state"), "completed");
        ck_assert_int_eq(reply_int(&told, "finish_seq"), rounds + 1);
        ck_assert(json_is_true(reply_get(&told, "feasible")));
    }
    ck_assert_int_eq(rounds, 6);
    REPLY_AUTO over = rest_get(&viewer, "/v1/sweeps/%s", name);
    /* no reaper runs here, so its ensemble is not computed */
    ck_assert_str_eq(reply_str(&over, "state"), "finishing");
    ck_assert_int_eq(reply_int(&over, "counts.completed"), 6);
    ck_assert(json_is_false(reply_get(&over, "for_runners")));
    int64_t begin = clock_mono_ns();
    REPLY_AUTO again = ask_trials_of(name, "other", 8, 60000);
    ck_assert(json_is_true(reply_get(&again, "done")));
    ck_assert_str_eq(reply_str(&again, "state"), "finishing");
    ck_assert_int_lt((clock_mono_ns() - begin) / NS_PER_S, 60); /* it did not wait */
    drop_sweep(name);
}
END_TEST

/* Each request may be repeated, and is the same the second time. */
START_TEST(test_repeats)
{
    struct rest viewer = as_viewer();
    make_asked_sweep("repeats", "sobol", 3, "");
    long long number = ask_one("repeats", "me");
    REPLY_AUTO first = ask_trials_of("repeats", "me", 1, 20000);
    REPLY_AUTO second = ask_trials_of("repeats", "me", 1, 20000);
    ck_assert_int_eq(reply_int(&first, "items.0.number"), number);
    ck_assert_int_eq(reply_int(&second, "items.0.attempt"), 1);
    ck_assert(
        json_equal(reply_get(&first, "items.0.params"), reply_get(&second, "items.0.params")));
    static const char batch[] = "{\"client\":\"me\",\"items\":[{\"step\":1,\"metrics\":{\"loss\":"
                                "0.5,\"odd\":\"NaN\"}},{\"step\":2,\"metrics\":{\"loss\":0.25}}]}";
    for (int i = 0; i < 2; i++) {
        REPLY_AUTO r =
            post_to_sweep(batch, "/v1/sweeps/repeats/suggestions/%lld/measurements", number);
        ck_status(r, 200);
        ck_assert_int_eq(reply_int(&r, "recorded"), i ? 0 : 3);
        REPLY_AUTO beat = post_to_sweep("{\"client\":\"me\",\"lease_ms\":60000}",
                                        "/v1/sweeps/repeats/suggestions/%lld/heartbeat", number);
        ck_status(beat, 200);
        ck_assert_str_ne(reply_str(&beat, "lease_until"), "");
    }
    for (int i = 0; i < 2; i++) {
        REPLY_AUTO r = tell_result("repeats", number, "me", "\"metrics\":{\"loss\":0.125}");
        ck_status(r, 200);
        ck_assert_str_eq(reply_str(&r, "state"), "completed");
        ck_assert(json_number_value(reply_get(&r, "value")) == 0.125);
        ck_assert_int_eq(reply_int(&r, "step"), 3); /* one after the latest */
    }
    REPLY_AUTO other = tell_result("repeats", number, "me", "\"metrics\":{\"loss\":0.25}");
    ck_status(other, 409);
    ck_assert_str_eq(reply_str(&other, "code"), "conflict");
    ck_assert_str_eq(reply_str(&other, "errors.0.pointer"), "/metrics/loss");
    REPLY_AUTO trial = rest_get(&viewer, "/v1/sweeps/repeats/trials/%lld", number);
    ck_assert_str_eq(reply_str(&trial, "client"), "me");
    ck_assert(json_is_null(reply_get(&trial, "runner")));
    ck_assert_str_eq(reply_str(&trial, "attempts.0.client"), "me");
    ck_assert_str_eq(reply_str(&trial, "attempts.0.outcome"), "completed");
    ck_assert_uint_eq(json_array_size(reply_get(&trial, "attempts")), 1);
    REPLY_AUTO next = ask_trials_of("repeats", "me", 1, 20000);
    ck_assert_int_ne(reply_int(&next, "items.0.number"), number);
    drop_sweep("repeats");
}
END_TEST

/* count is the number that the client wants to hold in total; limits count over all clients. */
START_TEST(test_batches)
{
    make_asked_sweep("batch", "random", 7, ",\"max_concurrent_trials\":5");
    REPLY_AUTO two = ask_trials_of("batch", "a", 2, 20000);
    ck_assert_uint_eq(n_items(&two), 2);
    REPLY_AUTO five = ask_trials_of("batch", "a", 8, 20000);
    ck_assert_uint_eq(n_items(&five), 5);
    ck_assert_int_eq(reply_int(&five, "items.0.number"), reply_int(&two, "items.0.number"));
    ck_assert_int_eq(reply_int(&five, "items.1.number"), reply_int(&two, "items.1.number"));
    REPLY_AUTO none = ask_trials_of("batch", "b", 1, 0);
    ck_status(none, 200);
    ck_assert(n_items(&none) == 0 && json_is_false(reply_get(&none, "done")));
    REPLY_AUTO fewer = ask_trials_of("batch", "a", 3, 20000);
    ck_assert_uint_eq(n_items(&fewer), 3);
    REPLY_AUTO done =
        tell_result("batch", reply_int(&five, "items.4.number"), "a", "\"metrics\":{\"loss\":1}");
    ck_status(done, 200);
    REPLY_AUTO one = ask_trials_of("batch", "b", 4, 20000);
    ck_assert_uint_eq(n_items(&one), 1);
    ck_assert_int_eq(reply_int(&one, "items.0.number"), 5);
    drop_sweep("batch");
}
END_TEST

START_TEST(test_outcomes)
{
    make_asked_sweep("ends", "sobol", 6, "");
    REPLY_AUTO nan =
        tell_result("ends", ask_one("ends", "me"), "me", "\"metrics\":{\"loss\":\"NaN\"}");
    ck_status(nan, 200);
    ck_assert_str_eq(reply_str(&nan, "state"), "failed");
    ck_assert_str_ne(reply_str(&nan, "reason"), "");
    long long forgotten = ask_one("ends", "me");
    REPLY_AUTO nothing = tell_result("ends", forgotten, "me", "\"metrics\":{\"lost\":1}");
    ck_status(nothing, 422);
    ck_assert_str_eq(reply_str(&nothing, "errors.0.pointer"), "/metrics/loss");
    ck_assert_int_eq(ask_one("ends", "me"), forgotten); /* it is still the client's */
    REPLY_AUTO failed =
        tell_result("ends", forgotten, "me", "\"outcome\":\"failed\",\"reason\":\"out of memory\"");
    ck_assert_str_eq(reply_str(&failed, "state"), "failed");
    ck_assert_str_eq(reply_str(&failed, "reason"), "out of memory");
    char told[2 * 2000 + 1], body[sizeof told + 50]; /* as many characters as a reason may have */
    for (size_t i = 0; i + 2 < sizeof told; i += 2)
        memcpy(told + i, "\xc3\xa9", 3);
    snprintf(body, sizeof body, "\"outcome\":\"failed\",\"reason\":\"%s\"", told);
    REPLY_AUTO foreign = tell_result("ends", ask_one("ends", "me"), "me", body);
    ck_status(foreign, 200);
    ck_assert_str_eq(reply_str(&foreign, "reason"), told);
    long long number = ask_one("ends", "me");
    REPLY_AUTO released = tell_result("ends", number, "me", "\"outcome\":\"released\"");
    ck_status(released, 200);
    ck_assert_str_eq(reply_str(&released, "state"), "queued");
    ck_assert_int_eq(reply_int(&released, "restarts"), 0);
    REPLY_AUTO taken = ask_trials_of("ends", "you", 1, 20000);
    ck_assert_int_eq(reply_int(&taken, "items.0.number"), number);
    ck_assert_int_eq(reply_int(&taken, "items.0.attempt"), 2);
    REPLY_AUTO late = tell_result("ends", number, "me", "\"metrics\":{\"loss\":1}");
    ck_status(late, 409); /* another client began it */
    ck_assert_str_eq(reply_str(&late, "code"), "stale_attempt");
    REPLY_AUTO old = tell_result("ends", number, "you", "\"attempt\":1,\"metrics\":{\"loss\":1}");
    ck_status(old, 409);
    REPLY_AUTO future =
        tell_result("ends", number, "you", "\"attempt\":3,\"metrics\":{\"loss\":1}");
    ck_status(future, 409);
    REPLY_AUTO given = tell_result("ends", number, "you", "\"attempt\":2,\"metrics\":{\"loss\":1}");
    ck_status(given, 200);
    drop_sweep("ends");
}
END_TEST

/* Every write to a trial that the client does not hold any more is refused as stale. */
START_TEST(test_not_held)
{
    static const char *const verbs[] = {"heartbeat", "measurements", "complete"};
    static const char *const bodies[] = {"{\"client\":\"me\"}", "{\"client\":\"me\",\"items\":[]}",
                                         "{\"client\":\"me\",\"metrics\":{\"loss\":1}}"};
    make_asked_sweep("fence", "random", 4, "");
    long long number = ask_one("fence", "me");
    struct rest user = as_user(), runner = as_runner(), viewer = as_viewer();
    char path[200];
    (void)snprintf(path, sizeof path, "/v1/sweeps/fence/trials/%lld/cancel", number);
    REPLY_AUTO cancelled = rest_call(&user, "POST", path, NULL);
    ck_status(cancelled, 200);
    for (size_t i = 0; i < AS_ARRAY_LEN(verbs); i++) {
        REPLY_AUTO gone =
            post_to_sweep(bodies[i], "/v1/sweeps/fence/suggestions/%lld/%s", number, verbs[i]);
        ck_status(gone, 409);
        ck_assert_str_eq(reply_str(&gone, "code"), "stale_attempt");
        REPLY_AUTO trial = post_to_sweep(bodies[i], "/v1/sweeps/fence/suggestions/99/%s", verbs[i]);
        ck_status(trial, 404);
        REPLY_AUTO sweep =
            post_to_sweep(bodies[i], "/v1/sweeps/nothing/suggestions/0/%s", verbs[i]);
        ck_status(sweep, 404);
        (void)snprintf(path, sizeof path, "/v1/sweeps/fence/suggestions/0/%s", verbs[i]);
        REPLY_AUTO as_a_viewer = rest_call(&viewer, "POST", path, bodies[i]);
        ck_status(as_a_viewer, 403);
        REPLY_AUTO as_a_runner = rest_call(&runner, "POST", path, bodies[i]);
        ck_status(as_a_runner, 403);
    }
    REPLY_AUTO nowhere = ask_trials_of("nothing", "me", 1, 1000);
    ck_status(nowhere, 404);
    drop_sweep("fence");
}
END_TEST

/* Wrong and hostile requests of a client: the answer is below 500, and the sweep continues. */
START_TEST(test_hostile)
{
    static const struct {
        const char *verb, *body;
        int status;
        const char *part;
    } cases[] = {
        {"complete", "{\"client\":\"me\",\"metrics\":{\"a b\":1}}", 400, "/metrics/a b"},
        {"complete", "{\"client\":\"me\",\"metrics\":{\"\":1}}", 400, "/metrics/"},
        {"complete", "{\"client\":\"me\",\"metrics\":{\"loss\":1,\"loss\":2}}", 400, "uplicate"},
        {"complete", "{\"client\":\"m\\u0000e\"}", 400, ""},
        {"complete", "{\"client\":\"me\",\"step\":9223372036854775808}", 400, "/step"},
        {"complete", "{\"client\":\"me\",\"metrics\":{\"loss\":NaN}}", 400, "send it as text"},
        {"complete", "{\"client\":\"me\",\"metrics\":{\"loss\":null}}", 400, "/metrics/loss"},
        {"complete", "{\"client\":\"me\",\"metrics\":{}}", 422, "/metrics/loss"},
        {"measurements",
         "{\"client\":\"me\",\"items\":[{\"step\":1,\"metrics\":{\"x\":99999999999999999999}}]}",
         200, "recorded"},
        {"measurements", "{\"client\":\"me\",\"items\":[{\"step\":1,\"metrics\":{\"x;y\":1}}]}",
         400, "x;y"},
        {"measurements", "{\"client\":\"me\",\"items\":{}}", 400, "/items"},
        {"heartbeat", "{\"client\":\"me\",\"lease_ms\":1e3}", 400, "/lease_ms"},
        {"heartbeat", "{\"client\":[\"me\"]}", 400, "/client"},
        {"heartbeat", "{\"client\":\"you\"}", 409, "stale_attempt"},
    };
    make_asked_sweep("hostile", "random", 5, "");
    long long number = ask_one("hostile", "me");
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        REPLY_AUTO r = post_to_sweep(cases[i].body, "/v1/sweeps/hostile/suggestions/%lld/%s",
                                     number, cases[i].verb);
        ck_assert_msg(r.status == cases[i].status && strstr(str_cstr(&r.body), cases[i].part),
                      "%s: %d %s", cases[i].body, r.status, str_cstr(&r.body));
    }
    /* the step after the largest possible one */
    REPLY_AUTO far = post_to_sweep("{\"client\":\"me\",\"items\":[{\"step\":9223372036854775807,"
                                   "\"metrics\":{\"loss\":1e308}}]}",
                                   "/v1/sweeps/hostile/suggestions/%lld/measurements", number);
    ck_assert_int_lt(far.status, 500);
    REPLY_AUTO end = tell_result("hostile", number, "me", "\"metrics\":{\"loss\":-1e308}");
    ck_assert_int_lt(end.status, 500);
    REPLY_AUTO next = ask_trials_of("hostile", "me", 1, 20000);
    ck_status(next, 200);
    ck_assert_uint_eq(n_items(&next), 1);
    drop_sweep("hostile");
}
END_TEST

/* Runners never get the trials of a sweep without `trial`; clients get those of one with it. */
START_TEST(test_runners_and_clients)
{
    make_asked_sweep("asked", "random", 3, "");
    long long epoch = make_runner("outsider", 2);
    REPLY_AUTO none = claim("outsider", epoch, 2, 400);
    ck_status(none, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&none, "trials")), 0);
    drop_sweep("asked");
    (void)make_sweep("both", 2);
    REPLY_AUTO mine = ask_trials_of("both", "me", 1, 20000);
    ck_assert_uint_eq(n_items(&mine), 1);
    REPLY_AUTO theirs = claim("outsider", epoch, 2, 5000);
    ck_assert_uint_eq(json_array_size(reply_get(&theirs, "trials")), 1);
    ck_assert_int_ne(reply_int(&theirs, "trials.0.number"), reply_int(&mine, "items.0.number"));
    drop_sweep("both");
}
END_TEST

/* An ask for one trial in a thread of its own. */
static void start_ask(struct rest_request *r, const char *sweep, const char *client)
{
    char path[100], body[100];
    struct rest user = as_user();
    (void)snprintf(path, sizeof path, "/v1/sweeps/%s/suggestions", sweep);
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\",\"count\":1,\"wait_ms\":60000}", client);
    rest_start(r, &user, "POST", path, body);
}

static void end_ask(struct rest_request *r, size_t items, bool done)
{
    rest_join(r);
    ck_status(r->reply, 200);
    ck_assert_msg(n_items(&r->reply) == items, "%s", str_cstr(&r->reply.body));
    ck_assert(json_is_true(reply_get(&r->reply, "done")) == done);
    ck_assert_int_lt(r->took_ms, 60000); /* woken, not out of patience */
    reply_done(&r->reply);
}

/* Clients wait for different sweeps: for a free place, for a resumption, for the end. */
START_TEST(test_waiting)
{
    struct rest_request place, resumed, ended;
    struct rest user = as_user();
    make_asked_sweep("w-full", "random", 9, ",\"max_concurrent_trials\":1");
    make_asked_sweep("w-paused", "random", 9, "");
    make_asked_sweep("w-last", "random", 1, "");
    long long full = ask_one("w-full", "first"), last = ask_one("w-last", "first");
    REPLY_AUTO pause = rest_call(&user, "PATCH", "/v1/sweeps/w-paused", "{\"state\":\"paused\"}");
    ck_status(pause, 200);
    start_ask(&place, "w-full", "second");
    start_ask(&resumed, "w-paused", "second");
    start_ask(&ended, "w-last", "second");
    await_figure(WAITING_ONE_SWEEP, 3);
    REPLY_AUTO resume = rest_call(&user, "PATCH", "/v1/sweeps/w-paused", "{\"state\":\"running\"}");
    ck_status(resume, 200);
    end_ask(&resumed, 1, false);
    await_figure(WAITING_ONE_SWEEP, 2);
    REPLY_AUTO told = tell_result("w-last", last, "first", "\"metrics\":{\"loss\":1}");
    ck_status(told, 200);
    end_ask(&ended, 0, true);
    await_figure(WAITING_ONE_SWEEP, 1);
    REPLY_AUTO left = tell_result("w-full", full, "first", "\"metrics\":{\"loss\":1}");
    ck_status(left, 200);
    end_ask(&place, 1, false);
    drop_sweep("w-full");
    drop_sweep("w-paused");
    drop_sweep("w-last");
}
END_TEST

/* A client that left while it waited gets no trial: the next client gets attempt 1. */
START_TEST(test_client_gone)
{
    struct rest user = as_user();
    make_asked_sweep("w-ghost", "gp", 1, "");
    REPLY_AUTO pause = rest_call(&user, "PATCH", "/v1/sweeps/w-ghost", "{\"state\":\"paused\"}");
    ck_status(pause, 200);
    int fd = open_post(ROLE_USER, "/v1/sweeps/w-ghost/suggestions",
                       "{\"client\":\"ghost\",\"wait_ms\":60000}");
    await_figure(WAITING_ONE_SWEEP, 1);
    raw_leave(fd);
    await_figure(WAITING_ONE_SWEEP, 0);
    REPLY_AUTO resume = rest_call(&user, "PATCH", "/v1/sweeps/w-ghost", "{\"state\":\"running\"}");
    ck_status(resume, 200);
    REPLY_AUTO r = ask_trials_of("w-ghost", "living", 1, 60000);
    ck_assert_uint_eq(n_items(&r), 1);
    ck_assert_int_eq(reply_int(&r, "items.0.attempt"), 1);
    drop_sweep("w-ghost");
}
END_TEST

/* A sweep is deleted while clients wait for it. */
START_TEST(test_deleted_while_waiting)
{
    struct rest_request r;
    make_asked_sweep("w-gone", "random", 9, ",\"max_concurrent_trials\":1");
    (void)ask_one("w-gone", "first");
    start_ask(&r, "w-gone", "second");
    await_figure(WAITING_ONE_SWEEP, 1);
    drop_sweep("w-gone"); /* cancelled, then deleted */
    rest_join(&r);
    ck_assert_msg(r.reply.status == 404 || json_is_true(reply_get(&r.reply, "done")), "%s",
                  str_cstr(&r.reply.body));
    ck_assert_int_lt(r.took_ms, 60000);
    reply_done(&r.reply);
}
END_TEST

/* Many at once on a sweep that learns: no trial twice, never more than max_trials. */
struct crowd {
    pthread_t thread;
    char client[16];
    bool seen[24]; /* numbers that it completed */
};

static void *run_crowd(void *arg)
{
    struct crowd *c = arg;
    for (;;) {
        char metrics[100];
        REPLY_AUTO r = ask_trials_of("crowd", c->client, 1, 20000);
        ck_status(r, 200);
        if (json_is_true(reply_get(&r, "done")))
            return NULL;
        if (n_items(&r) == 0)
            continue;
        long long number = reply_int(&r, "items.0.number");
        ck_assert(number >= 0 && number < 24 && !c->seen[number]);
        c->seen[number] = true;
        double x = json_number_value(reply_get(&r, "items.0.params.x"));
        (void)snprintf(metrics, sizeof metrics, "\"metrics\":{\"loss\":%.17g}", (x - 0.3) * x);
        REPLY_AUTO told = tell_result("crowd", number, c->client, metrics);
        ck_status(told, 200);
    }
}

START_TEST(test_crowd)
{
    struct rest viewer = as_viewer();
    struct crowd crowd[6] = {0};
    make_asked_sweep("crowd", "gp", 24, "");
    REPLY_AUTO one = ask_trials_of("crowd", "batch", 1, 20000);
    REPLY_AUTO batch = ask_trials_of("crowd", "batch", 5, 20000); /* comes whole */
    ck_assert_uint_eq(n_items(&batch), 5);
    ck_assert_int_eq(reply_int(&batch, "items.0.number"), reply_int(&one, "items.0.number"));
    for (size_t i = 0; i < 5; i++) {
        const json_t *item = json_array_get(reply_get(&batch, "items"), i);
        REPLY_AUTO released =
            tell_result("crowd", json_integer_value(json_object_get(item, "number")), "batch",
                        "\"outcome\":\"released\"");
        ck_status(released, 200);
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++) {
        (void)snprintf(crowd[i].client, sizeof crowd[i].client, "c%zu", i);
        ck_assert_int_eq(pthread_create(&crowd[i].thread, NULL, run_crowd, &crowd[i]), 0);
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++)
        ck_assert_int_eq(pthread_join(crowd[i].thread, NULL), 0);
    for (size_t n = 0; n < 24; n++) {
        int holders = 0;
        for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++)
            holders += crowd[i].seen[n];
        ck_assert_int_eq(holders, 1);
    }
    REPLY_AUTO sweep = rest_get(&viewer, "/v1/sweeps/crowd");
    ck_assert_int_eq(reply_int(&sweep, "counts.completed"), 24);
    ck_assert_int_eq(reply_int(&sweep, "counts.total"), 24);
    REPLY_AUTO metrics = rest_get(&viewer, "/metrics");
    ck_assert_ptr_nonnull(strstr(str_cstr(&metrics.body), "\nassay_suggestion_seconds_count "));
    ck_assert_ptr_nonnull(strstr(str_cstr(&metrics.body), "\nassay_suggestions_taken_total "));
    drop_sweep("crowd");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_suggestions");
    TCase *tc = tcase_create("suggestions");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_loop_test(tc, test_loop, 0, 10);
    tcase_add_test(tc, test_repeats);
    tcase_add_test(tc, test_batches);
    tcase_add_test(tc, test_outcomes);
    tcase_add_test(tc, test_not_held);
    tcase_add_test(tc, test_hostile);
    tcase_add_test(tc, test_runners_and_clients);
    tcase_add_test(tc, test_waiting);
    tcase_add_test(tc, test_client_gone);
    tcase_add_test(tc, test_deleted_while_waiting);
    tcase_add_test(tc, test_crowd);
    suite_add_tcase(s, tc);
    return s;
}
