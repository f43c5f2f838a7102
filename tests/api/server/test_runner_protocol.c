/* The protocol of runners, from registration to the best trial, through every operation. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "tests/api/server/fixture.h"
#include "tests/support/check_main.h"

/* The runner r1 and the trial that it runs. */
struct protocol {
    const char *id; /* of the sweep */
    long long epoch, number;
    char at[200]; /* the path of the trial */
};

static void begin_protocol(struct protocol *p)
{
    p->id = make_sweep("protocol", 2);
    p->epoch = make_runner("r1", 2);
    REPLY_AUTO claimed = claim("r1", p->epoch, 1, 60000);
    ck_status(claimed, 200);
    ck_assert_str_eq(reply_str(&claimed, "trials.0.sweep"), p->id);
    ck_assert_int_eq(reply_int(&claimed, "trials.0.attempt"), 1);
    ck_assert_str_ne(reply_str(&claimed, "trials.0.seed"), "");
    p->number = reply_int(&claimed, "trials.0.number");
    (void)snprintf(p->at, sizeof p->at, "/v1/sweeps/%s/trials/%lld", p->id, p->number);
}

/* The runner's call about an attempt of the claimed trial. */
static struct reply call_attempt(const struct protocol *p, const char *method, int attempt,
                                 const char *what, const char *body)
{
    struct rest runner = as_runner();
    char path[300];
    (void)snprintf(path, sizeof path, "%s/attempts/%d/%s", p->at, attempt, what);
    return rest_call(&runner, method, path, body);
}

/* Without the sweep's metric it does not complete, and goes on. */
static void complete_too_early(const struct protocol *p)
{
    REPLY_AUTO early = call_attempt(p, "POST", 1, "complete",
                                    "{\"outcome\":\"completed\",\"metrics\":{\"other\":1}}");
    ck_status(early, 422);
    ck_assert_str_eq(reply_str(&early, "errors.0.pointer"), "/metrics/loss");
}

static void send_measurements(const struct protocol *p)
{
    REPLY_AUTO huge = call_attempt(p, "POST", 1, "measurements",
                                   "{\"items\":[{\"step\":18446744073709551616,\"metrics\":{}}]}");
    ck_status(huge, 400);
    ck_assert_str_eq(reply_str(&huge, "errors.0.pointer"), "/items/0/step");
    REPLY_AUTO measured =
        call_attempt(p, "POST", 1, "measurements",
                     "{\"items\":[{\"step\":1,\"metrics\":{\"loss\":0.5,\"grad\":\"NaN\"}},"
                     "{\"step\":2,\"metrics\":{\"loss\":0.25,\"grad\":\"-Infinity\"}},"
                     "{\"step\":3,\"metrics\":{\"big\":-123456789012345678901234567890}}]}");
    ck_status(measured, 200);
    ck_assert_int_eq(reply_int(&measured, "recorded"), 5);
    REPLY_AUTO again = call_attempt(p, "POST", 1, "measurements",
                                    "{\"items\":[{\"step\":2,\"metrics\":{\"loss\":0.75}}]}");
    ck_assert_int_eq(reply_int(&again, "recorded"), 0);
}

static void send_log(const struct protocol *p)
{
    REPLY_AUTO logged =
        call_attempt(p, "PUT", 1, "log", "{\"text\":\"line\\nl\u00edne 2\",\"truncated\":true}");
    ck_status(logged, 204);
}

/* A file whose content the server has, and one that it lacks. */
static void send_files(const struct protocol *p)
{
    char body[400], hex[SHA256_HEX_SIZE];
    REPLY_AUTO stored = put_blob("content", 7, hex);
    ck_assert_msg(stored.status == 201 || stored.status == 200, "%d", stored.status);
    (void)snprintf(body, sizeof body,
                   "{\"kind\":\"artifact\",\"files\":[{\"path\":\"a/b.txt\",\"size\":7,"
                   "\"sha256\":\"%s\"}]}",
                   hex);
    REPLY_AUTO filed = call_attempt(p, "PUT", 1, "files", body);
    ck_status(filed, 204);
    hex[0] = hex[0] == '0' ? '1' : '0';
    (void)snprintf(body, sizeof body,
                   "{\"kind\":\"checkpoint\",\"files\":[{\"path\":\"c\",\"size\":7,"
                   "\"sha256\":\"%s\"}]}",
                   hex);
    REPLY_AUTO missing = call_attempt(p, "PUT", 1, "files", body);
    ck_status(missing, 422);
}

static void send_heartbeat(const struct protocol *p)
{
    struct rest runner = as_runner();
    char body[400];
    (void)snprintf(body, sizeof body,
                   "{\"epoch\":%lld,\"attempts\":[{\"sweep\":\"%s\",\"number\":%lld,"
                   "\"attempt\":1,\"phase\":\"ended\",\"ran_ms\":1234},{\"sweep\":\"%s\","
                   "\"number\":%lld,\"attempt\":9}]}",
                   p->epoch, p->id, p->number, p->id, p->number);
    REPLY_AUTO beat = rest_call(&runner, "POST", "/v1/runners/r1/heartbeat", body);
    ck_status(beat, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&beat, "directives")), 1);
    ck_assert_str_eq(reply_str(&beat, "directives.0.action"), "stop");
    ck_assert_int_eq(reply_int(&beat, "directives.0.attempt"), 9);
}

/* As often as the runner likes, if it says the same. */
static void complete(const struct protocol *p)
{
    REPLY_AUTO stale = call_attempt(p, "POST", 7, "complete", "{\"outcome\":\"completed\"}");
    ck_status(stale, 409);
    ck_assert_str_eq(reply_str(&stale, "code"), "stale_attempt");

    for (int i = 0; i < 2; i++) {
        REPLY_AUTO done =
            call_attempt(p, "POST", 1, "complete", "{\"outcome\":\"completed\",\"exit_code\":0}");
        ck_status(done, 200);
        ck_assert_str_eq(reply_str(&done, "state"), "completed");
    }
    REPLY_AUTO same = call_attempt(p, "POST", 1, "complete",
                                   "{\"outcome\":\"completed\",\"metrics\":{\"loss\":0.25}}");
    ck_status(same, 200);
    REPLY_AUTO differs = call_attempt(p, "POST", 1, "complete",
                                      "{\"outcome\":\"completed\",\"metrics\":{\"loss\":0.5}}");
    ck_status(differs, 409);
    ck_assert_str_eq(reply_str(&differs, "code"), "conflict");
    ck_assert_str_eq(reply_str(&differs, "errors.0.pointer"), "/metrics/loss");
}

static void look_at_results(const struct protocol *p)
{
    struct rest viewer = as_viewer();
    REPLY_AUTO trial = rest_get(&viewer, "%s", p->at);
    ck_status(trial, 200);
    ck_assert_str_eq(reply_str(&trial, "attempts.0.outcome"), "completed");
    ck_assert_int_eq(reply_int(&trial, "attempts.0.ran_ms"), 1234);
    ck_assert_str_eq(reply_str(&trial, "metrics.grad"), "-Infinity");
    ck_assert(json_number_value(reply_get(&trial, "metrics.big")) ==
              -123456789012345678901234567890.0);
    REPLY_AUTO series = rest_get(&viewer, "%s/measurements", p->at);
    ck_assert_str_eq(reply_str(&series, "series.grad.values.0"), "NaN");
    ck_assert_int_eq(reply_int(&series, "series.loss.steps.1"), 2);
    REPLY_AUTO one = rest_get(&viewer, "%s/measurements?metric=loss", p->at);
    ck_assert_uint_eq(json_object_size(reply_get(&one, "series")), 1);
    REPLY_AUTO log = rest_get(&viewer, "%s/log", p->at);
    ck_assert_str_eq(reply_str(&log, "text"), "line\nl\u00edne 2");
    REPLY_AUTO files = rest_get(&viewer, "%s/artifacts", p->at);
    ck_assert_str_eq(reply_str(&files, "items.0.path"), "a/b.txt");
    REPLY_AUTO best = rest_get(&viewer, "/v1/sweeps/%s/best?top=5", p->id);
    ck_assert_int_eq(reply_int(&best, "items.0.number"), p->number);
    REPLY_AUTO list =
        rest_get(&viewer, "/v1/sweeps/%s/trials?state=completed&sort=value&order=desc", p->id);
    ck_assert_uint_eq(json_array_size(reply_get(&list, "items")), 1);
    REPLY_AUTO runners = rest_get(&viewer, "/v1/runners");
    ck_status(runners, 200);
}

static void cancel_the_next_trial(const struct protocol *p)
{
    struct rest viewer = as_viewer(), user = as_user();
    char path[300];
    REPLY_AUTO other = claim("r1", p->epoch, 1, 60000);
    (void)snprintf(path, sizeof path, "/v1/sweeps/%s/trials/%lld/cancel", p->id,
                   reply_int(&other, "trials.0.number"));
    REPLY_AUTO cancelled = rest_call(&user, "POST", path, NULL);
    ck_status(cancelled, 200);
    ck_assert_str_eq(reply_str(&cancelled, "state"), "cancelled");
    REPLY_AUTO ensemble = rest_get(&viewer, "/v1/sweeps/%s/ensemble", p->id);
    ck_status(ensemble, 200);
}

static void leave(const struct protocol *p)
{
    struct rest runner = as_runner();
    char body[400];
    (void)snprintf(body, sizeof body, "{\"epoch\":%lld}", p->epoch);
    REPLY_AUTO left = rest_call(&runner, "POST", "/v1/runners/r1/leave", body);
    ck_status(left, 204);
    REPLY_AUTO late = claim("r1", p->epoch, 1, 0);
    ck_status(late, 409);
    ck_assert_str_eq(reply_str(&late, "code"), "stale_epoch");
}

START_TEST(test_runner_protocol)
{
    struct protocol p;
    begin_protocol(&p);
    complete_too_early(&p);
    send_measurements(&p);
    send_log(&p);
    send_files(&p);
    send_heartbeat(&p);
    complete(&p);
    look_at_results(&p);
    cancel_the_next_trial(&p);
    leave(&p);
    drop_sweep("protocol");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_runner_protocol");
    TCase *tc = tcase_create("protocol");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, test_runner_protocol);
    suite_add_tcase(s, tc);
    return s;
}
