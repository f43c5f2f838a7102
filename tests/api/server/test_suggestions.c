/* Ask and tell over HTTP: the loop of a client, batches, waiting, fences, added trials, fronts. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "tests/api/server/fixture.h"
#include "tests/support/raw_http.h"
#include "tests/support/check_main.h"

/* POST a body to a path under a sweep, as a user. */
static struct reply post_to_sweep(const char *body, const char *fmt, ...) AS_PRINTF(2, 3);

static struct reply post_to_sweep(const char *body, const char *fmt, ...)
{
    char path[300];
    struct rest user = as_user();
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(path, sizeof path, fmt, ap);
    va_end(ap);
    return rest_call(&user, "POST", path, body);
}

/* A sweep for ask and tell: x in [0, 1], y one of three. `more` follows the parameters. */
static void make_asked_sweep(const char *name, const char *method, int max_trials, const char *more)
{
    char body[800];
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"%s\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},"
                   "\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1},\"y\":{\"type\":"
                   "\"categorical\",\"values\":[\"a\",\"b\",\"c\"]}},\"search\":{\"method\":\"%s\","
                   "\"seed\":7},\"limits\":{\"max_trials\":%d%s}}",
                   name, method, max_trials, more);
    REPLY_AUTO r = post_to_sweep(body, "/v1/sweeps");
    ck_status(r, 201);
    ck_assert_str_eq(reply_str(&r, "id"), name);
}

static struct reply ask_trials_of(const char *sweep, const char *client, int count, int wait_ms)
{
    char body[200];
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\",\"count\":%d,\"wait_ms\":%d}", client,
                   count, wait_ms);
    return post_to_sweep(body, "/v1/sweeps/%s/suggestions", sweep);
}

/* The number of the only item. */
static long long ask_one(const char *sweep, const char *client)
{
    REPLY_AUTO r = ask_trials_of(sweep, client, 1, 20000);
    ck_status(r, 200);
    ck_assert_msg(json_array_size(reply_get(&r, "items")) == 1, "%s", str_cstr(&r.body));
    return reply_int(&r, "items.0.number");
}

static size_t n_items(const struct reply *r)
{
    return json_array_size(reply_get(r, "items"));
}

static struct reply tell_result(const char *sweep, long long number, const char *client,
                                const char *rest)
{
    char body[300];
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\"%s%s}", client, *rest ? "," : "", rest);
    return post_to_sweep(body, "/v1/sweeps/%s/suggestions/%lld/complete", sweep, number);
}

/* The twenty-line client: ask, run, complete, until done. */
START_TEST(test_loop)
{
    struct rest viewer = as_viewer();
    static const char *const methods[] = {"random", "sobol",     "gp",  "tpe",
                                          "cmaes",  "evolution", "auto"};
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

Suite *test_suite(void)
{
    Suite *s = suite_create("api_suggestions");
    TCase *tc = tcase_create("suggestions");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_loop_test(tc, test_loop, 0, 7);
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
    tcase_add_test(tc, test_added);
    tcase_add_test(tc, test_added_badly);
    tcase_add_test(tc, test_key_covers_query);
    tcase_add_test(tc, test_front);
    suite_add_tcase(s, tc);
    return s;
}
