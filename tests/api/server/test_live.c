/* Requests that take time: long-polls, event streams, clients that leave, draining. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/api/server/fixture.h"
#include "tests/support/raw_http.h"
#include "tests/support/check_main.h"

START_TEST(test_claim_times_out)
{
    struct rest_request r;
    claim_start(&r, "patient", make_runner("patient", 1), 1, 400);
    rest_join(&r);
    ck_status(r.reply, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&r.reply, "trials")), 0);
    ck_assert_int_ge(r.took_ms, 390);
    reply_done(&r.reply);
    REPLY_AUTO at_once = claim("patient", make_runner("patient", 1), 1, 0);
    ck_status(at_once, 200);
}
END_TEST

START_TEST(test_claim_wakes_up)
{
    struct rest_request r;
    claim_start(&r, "sleeper", make_runner("sleeper", 1), 1, 60000);
    await_figure(WAITING_ANY_TRIAL, 1);
    const char *id = make_sweep("wake", 1);
    rest_join(&r);
    ck_status(r.reply, 200);
    ck_assert_str_eq(reply_str(&r.reply, "trials.0.sweep"), id);
    ck_assert_int_lt(r.took_ms, 60000); /* woken, not out of patience */
    reply_done(&r.reply);
    drop_sweep("wake");
}
END_TEST

/* Wait until this many trials of the sweep run. */
static void wait_running(const char *path, int n)
{
    struct rest viewer = as_viewer();
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    for (bool is_there = false; !is_there; clock_sleep_ms(20)) {
        REPLY_AUTO r = rest_call(&viewer, "GET", path, NULL);
        is_there = reply_int(&r, "counts.running") == n;
        ck_assert_msg(is_there || clock_mono_ns() < until, "%s", str_cstr(&r.body));
    }
}

/* Many requests wait for few trials: each trial goes to one of them, and the others continue to
 * wait for the next ones. */
START_TEST(test_claims_share)
{
    struct rest_request r[12];
    size_t got = 0, of_rest = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(r); i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "share-%zu", i);
        claim_start(&r[i], name, make_runner(name, 1), 1, 60000);
    }
    await_figure(WAITING_ANY_TRIAL, AS_ARRAY_LEN(r));
    (void)make_sweep("share", 5);
    wait_running("/v1/sweeps/share", 5);
    await_figure(WAITING_ANY_TRIAL, AS_ARRAY_LEN(r) - 5);
    (void)make_sweep("share-rest", 7);
    for (size_t i = 0; i < AS_ARRAY_LEN(r); i++) {
        rest_join(&r[i]);
        ck_status(r[i].reply, 200);
        got += json_array_size(reply_get(&r[i].reply, "trials"));
        of_rest += strcmp(reply_str(&r[i].reply, "trials.0.sweep"), "share-rest") == 0;
        reply_done(&r[i].reply);
    }
    ck_assert_uint_eq(got, 12);
    ck_assert_uint_eq(of_rest, 7);
    drop_sweep("share");
    drop_sweep("share-rest");
}
END_TEST

/* A runner that left while it waited gets no trial: the next runner gets attempt 1. */
START_TEST(test_client_gone)
{
    char body[100];
    (void)snprintf(body, sizeof body, "{\"epoch\":%lld,\"claim_id\":\"raw\",\"wait_ms\":60000}",
                   make_runner("ghost", 1));
    int fd = open_post(ROLE_RUNNER, "/v1/runners/ghost/claim", body);
    await_figure(WAITING_ANY_TRIAL, 1);
    raw_leave(fd);
    await_figure(WAITING_ANY_TRIAL, 0);
    (void)make_sweep("ghosts", 1);
    REPLY_AUTO r = claim("living", make_runner("living", 1), 1, 60000);
    ck_assert_int_eq(reply_int(&r, "trials.0.number"), 0);
    ck_assert_int_eq(reply_int(&r, "trials.0.attempt"), 1);
    drop_sweep("ghosts");
}
END_TEST

static int open_events(const char *path, const char *more)
{
    char head[600];
    int fd = raw_connect(fix.port);
    (void)snprintf(head, sizeof head,
                   "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n", path,
                   fix.tokens[ROLE_VIEWER], more);
    raw_puts(fd, head);
    return fd;
}

/* The id of the first message whose data holds `part`. */
static long long id_of(const struct str *out, const char *part)
{
    const char *at = strstr(str_cstr(out), part), *id = NULL;
    ck_assert_msg(at != NULL, "'%s' is not in %s", part, str_cstr(out));
    for (const char *s = str_cstr(out); (s = strstr(s, "id: ")) && s < at; s += 4)
        id = s + 4;
    ck_assert_ptr_nonnull(id);
    return strtoll(id, NULL, 10);
}

START_TEST(test_events)
{
    struct str out = {0}, resumed = {0}, only = {0};
    char line[80];
    struct rest user = as_user();
    int fd = open_events("/v1/events", "");
    ck_assert(!raw_read(fd, &out, "retry: ", PATIENCE_MS));
    ck_assert_ptr_nonnull(strstr(str_cstr(&out), "Content-Type: text/event-stream"));
    (void)make_sweep("ev-a", 1);
    (void)make_sweep("ev-b", 1);
    ck_assert(!raw_read(fd, &out, "\"sweep\":\"ev-b\"", PATIENCE_MS));
    long long a = id_of(&out, "\"sweep\":\"ev-a\""), b = id_of(&out, "\"sweep\":\"ev-b\"");
    ck_assert_int_lt(a, b);
    (void)close(fd);

    /* resumed after a: b again, and not a */
    (void)snprintf(line, sizeof line, "Last-Event-ID: %lld\r\n", a);
    fd = open_events("/v1/events", line);
    ck_assert(!raw_read(fd, &resumed, "\"sweep\":\"ev-b\"", PATIENCE_MS));
    (void)snprintf(line, sizeof line, "id: %lld\n", a);
    ck_assert_ptr_null(strstr(str_cstr(&resumed), line));
    ck_assert_int_eq(id_of(&resumed, "\"sweep\":\"ev-b\""), b);
    (void)close(fd);

    /* of one sweep, from the beginning, and on */
    fd = open_events("/v1/sweeps/ev-b/events?after=0", "");
    ck_assert(!raw_read(fd, &only, "sweep.created", PATIENCE_MS));
    REPLY_AUTO paused = rest_call(&user, "PATCH", "/v1/sweeps/ev-b", "{\"state\":\"paused\"}");
    ck_status(paused, 200);
    ck_assert(!raw_read(fd, &only, "sweep.changed", PATIENCE_MS));
    ck_assert_ptr_null(strstr(str_cstr(&only), "\"ev-a\""));
    (void)close(fd);
    str_done(&out);
    str_done(&resumed);
    str_done(&only);
    drop_sweep("ev-a");
    drop_sweep("ev-b");
}
END_TEST

START_TEST(test_bad_event_ids)
{
    static const char *const lines[] = {"Last-Event-ID: x\r\n", "Last-Event-ID: -1\r\n"};
    for (size_t i = 0; i < AS_ARRAY_LEN(lines); i++) {
        struct str out = {0};
        int fd = open_events("/v1/events", lines[i]);
        ck_assert(!raw_read(fd, &out, "\r\n\r\n", PATIENCE_MS));
        ck_assert_int_eq(raw_status(&out), 400);
        (void)close(fd);
        str_done(&out);
    }
    /* an id from the future counts as now, and does not delay other streams */
    struct str far = {0}, near = {0};
    int fd = open_events("/v1/events", "Last-Event-ID: 9223372036854775807\r\n");
    int other = open_events("/v1/events", "");
    ck_assert(!raw_read(fd, &far, "retry: ", PATIENCE_MS));
    ck_assert(!raw_read(other, &near, "retry: ", PATIENCE_MS));
    (void)make_sweep("future", 1);
    ck_assert(!raw_read(other, &near, "\"future\"", PATIENCE_MS));
    ck_assert(!raw_read(fd, &far, "\"future\"", PATIENCE_MS));
    ck_assert_ptr_nonnull(strstr(str_cstr(&near), "\"future\""));
    ck_assert_ptr_nonnull(strstr(str_cstr(&far), "\"future\""));
    (void)close(fd);
    (void)close(other);
    str_done(&far);
    str_done(&near);
    drop_sweep("future");
}
END_TEST

START_TEST(test_streams_end_with_their_clients)
{
    int fds[20];
    struct str out = {0};
    for (size_t i = 0; i < AS_ARRAY_LEN(fds); i++) {
        fds[i] = open_events("/v1/events", "");
        ck_assert(!raw_read(fds[i], &out, "retry: ", PATIENCE_MS));
        str_clear(&out);
    }
    ck_assert_int_ge(figure("assay_event_streams"), 20);
    for (size_t i = 0; i < AS_ARRAY_LEN(fds); i++)
        (void)close(fds[i]);
    await_figure("assay_event_streams", 0);
    str_done(&out);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_live");
    TCase *tc = tcase_create("live");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, test_claim_times_out);
    tcase_add_test(tc, test_claim_wakes_up);
    tcase_add_test(tc, test_claims_share);
    tcase_add_test(tc, test_client_gone);
    tcase_add_test(tc, test_events);
    tcase_add_test(tc, test_bad_event_ids);
    tcase_add_test(tc, test_streams_end_with_their_clients);
    suite_add_tcase(s, tc);
    return s;
}
