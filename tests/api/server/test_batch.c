/* Many parts in one request: each has its own answer, whatever the parts beside it are. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "tests/api/server/fixture.h"
#include "tests/support/check_main.h"
#include "tests/support/raw_http.h"

#define SLOTS 8
#define PARTS "assay_http_batch_parts_total"
#define FAILED "assay_trials{state=\"failed\"}"

/* A sweep, and a runner that runs its first trials, 0 to SLOTS - 1. */
struct held {
    char id[128];
    char path[80]; /* of the batch route */
    long long epoch;
};

static void hold_trials(struct held *h, const char *name, int max_trials)
{
    (void)snprintf(h->id, sizeof h->id, "%s", make_sweep(name, max_trials));
    (void)snprintf(h->path, sizeof h->path, "/v1/runners/%s/batch", name);
    h->epoch = make_runner(name, SLOTS);
    REPLY_AUTO claimed = claim(name, h->epoch, SLOTS, 60000);
    ck_status(claimed, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&claimed, "trials")),
                      max_trials < SLOTS ? (size_t)max_trials : SLOTS);
}

/* A body in which every $ is the begin of a part about the trial whose number follows. */
static struct reply send_as(const struct held *h, const struct rest *to, const char *text)
{
    AS_AUTO(str_done) struct str body = {0};
    for (; *text; text++) {
        if (*text == '$')
            str_printf(&body, "\"sweep\":\"%s\",\"attempt\":1,\"number\":", h->id);
        else
            str_putc(&body, *text);
    }
    return rest_call(to, "POST", h->path, str_cstr(&body));
}

static struct reply send_parts(const struct held *h, const char *text)
{
    struct rest runner = as_runner();
    return send_as(h, &runner, text);
}

#define ck_part(r, path, want)                                                                     \
    ck_assert_msg(reply_int(&(r), path) == (want), "%s: %s", path, str_cstr(&(r).body))

static void check_state(const struct held *h, int number, const char *want)
{
    struct rest viewer = as_viewer();
    REPLY_AUTO trial = rest_get(&viewer, "/v1/sweeps/%s/trials/%d", h->id, number);
    ck_assert_str_eq(reply_str(&trial, "state"), want);
}

/* Measurements count before the end of the same trial, and the claim finds the free slots. A repeat
 * records nothing and gets the same. */
START_TEST(parts_are_done_in_their_order)
{
    struct held h;
    char text[800];
    hold_trials(&h, "order", 20);
    (void)snprintf(text, sizeof text,
                   "{\"ends\":[{$0,\"outcome\":\"completed\",\"exit_code\":0},"
                   "{$1,\"outcome\":\"failed\",\"reason\":\"no luck\"}],"
                   "\"measurements\":[{$0,\"items\":[{\"step\":1,\"metrics\":{\"loss\":0.5}},"
                   "{\"step\":2,\"metrics\":{\"loss\":0.25}}],\"notes\":{\"n\":\"text\"}},"
                   "{$2,\"items\":[{\"step\":0,\"metrics\":{\"loss\":1}}]}],"
                   "\"claim\":{\"epoch\":%lld,\"claim_id\":\"next\",\"max_trials\":8}}",
                   h.epoch);
    long long before = figure(PARTS);
    for (int i = 0; i < 2; i++) {
        REPLY_AUTO r = send_parts(&h, text);
        ck_status(r, 200);
        ck_part(r, "measurements.0.status", i == 0 ? 200 : 409); /* its trial has ended */
        if (i == 0)
            ck_part(r, "measurements.0.recorded", 2);
        ck_part(r, "measurements.1.recorded", i == 0 ? 1 : 0);
        ck_assert_uint_eq(json_array_size(reply_get(&r, "measurements.1.directives")), 0);
        ck_part(r, "ends.0.status", 200);
        ck_assert_str_eq(reply_str(&r, "ends.0.state"), "completed");
        ck_assert_str_eq(reply_str(&r, "ends.1.state"), "failed");
        ck_part(r, "claim.status", 200);
        ck_assert_uint_eq(json_array_size(reply_get(&r, "claim.trials")), 2);
        ck_part(r, "claim.trials.0.number", SLOTS);
    }
    ck_assert_int_eq(figure(PARTS), before + 8);
    drop_sweep(h.id);
}
END_TEST

/* Of every kind of bad part one; the good ones beside them count. */
START_TEST(a_bad_part_disturbs_no_other)
{
    struct held h;
    hold_trials(&h, "bad", 8);
    REPLY_AUTO r = send_parts(
        &h,
        "{\"ends\":[5,null,[],{},{$0,\"outcome\":\"won\"},{$0,\"outcome\":\"completed\",\"x\":1},"
        "{$0,\"outcome\":\"completed\",\"metrics\":{\"loss\":\"big\"}},"
        "{$1,\"outcome\":\"completed\"},{$1,\"outcome\":\"failed\"},{$1,\"outcome\":\"completed\"},"
        "{$999,\"outcome\":\"failed\"},"
        "{\"sweep\":\"none\",\"number\":0,\"attempt\":1,\"outcome\":\"failed\"},"
        "{\"sweep\":\"bad\",\"number\":0,\"attempt\":2,\"outcome\":\"failed\"},"
        "{$2,\"seat\":0,\"outcome\":\"failed\"},{$2,\"world_epoch\":1,\"outcome\":\"failed\"},"
        "{$2,\"outcome\":\"failed\"},{$0,\"outcome\":\"failed\",\"reason\":\"a\\u0000b\"}],"
        "\"measurements\":[{$3,\"items\":{}},{$3,\"items\":[{\"step\":-1,\"metrics\":{}}]},"
        "{$3,\"items\":[],\"notes\":{\"n\":5}},{$3,\"items\":[{\"step\":1,\"metrics\":"
        "{\"not a name\":1}}]},{$3,\"items\":[{\"step\":1,\"metrics\":{\"loss\":1}}]}],"
        "\"claim\":7}");
    ck_status(r, 200);
    static const struct {
        const char *part;
        int status;
        const char *code, *pointer;
    } cases[] = {
        {"ends.0", 400, "invalid", "/ends/0"},
        {"ends.1", 400, "invalid", "/ends/1"},
        {"ends.2", 400, "invalid", "/ends/2"},
        {"ends.3", 400, "invalid", "/ends/3/sweep"},
        {"ends.4", 400, "invalid", "/ends/4/outcome"},
        {"ends.5", 400, "invalid", "/ends/5/x"},
        {"ends.6", 400, "invalid", "/ends/6/metrics/loss"},
        {"ends.7", 422, "unprocessable", "/ends/7/metrics/loss"},
        {"ends.9", 409, "stale_attempt", ""},
        {"ends.10", 404, "not_found", ""},
        {"ends.11", 404, "not_found", ""},
        {"ends.12", 409, "stale_attempt", ""},
        {"ends.13", 400, "invalid", "/ends/13/world_epoch"},
        {"ends.14", 400, "invalid", "/ends/14/seat"},
        {"ends.16", 400, "invalid", "/ends/16/reason"},
        {"measurements.0", 400, "invalid", "/measurements/0/items"},
        {"measurements.1", 400, "invalid", "/measurements/1/items/0/step"},
        {"measurements.2", 400, "invalid", "/measurements/2/notes/n"},
        {"measurements.3", 400, "invalid", NULL},
        {"claim", 400, "invalid", "/claim"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        char path[80];
        (void)snprintf(path, sizeof path, "%s.status", cases[i].part);
        ck_part(r, path, cases[i].status);
        (void)snprintf(path, sizeof path, "%s.problem.status", cases[i].part);
        ck_part(r, path, cases[i].status);
        (void)snprintf(path, sizeof path, "%s.problem.code", cases[i].part);
        ck_assert_msg(as_streq(reply_str(&r, path), cases[i].code), "%s: %s", path,
                      reply_str(&r, path));
        if (!cases[i].pointer)
            continue;
        (void)snprintf(path, sizeof path, "%s.problem.errors.0.pointer", cases[i].part);
        ck_assert_msg(as_streq(reply_str(&r, path), cases[i].pointer), "%s: %s", path,
                      reply_str(&r, path));
        (void)snprintf(path, sizeof path, "%s.problem.detail", cases[i].part);
        ck_assert_msg(as_starts_with(reply_str(&r, path), cases[i].pointer), "%s: %s", path,
                      reply_str(&r, path));
    }
    ck_part(r, "ends.8.status", 200);
    ck_part(r, "ends.15.status", 200);
    ck_part(r, "measurements.4.recorded", 1);
    check_state(&h, 0, "running");
    check_state(&h, 1, "failed");
    check_state(&h, 2, "failed");
    check_state(&h, 3, "running");
    drop_sweep(h.id);
}
END_TEST

/* The secret of another runner, and an epoch that is over: the claim is refused, and ends count by
 * their attempt as they do alone. */
START_TEST(parts_have_the_rights_of_their_requests)
{
    struct held h;
    struct rest stranger = as_runner(), viewer = as_viewer();
    stranger.secret = "00000000000000000000000000000000000000000";
    hold_trials(&h, "rights", 8);
    static const char text[] = "{\"ends\":[{$0,\"outcome\":\"failed\"}],\"measurements\":[{$1,"
                               "\"items\":[]}],\"claim\":{\"epoch\":99,\"claim_id\":\"c\"}}";
    REPLY_AUTO denied = send_as(&h, &stranger, text);
    ck_status(denied, 200);
    ck_assert_str_eq(reply_str(&denied, "ends.0.problem.code"), "not_holder");
    ck_assert_str_eq(reply_str(&denied, "measurements.0.problem.code"), "not_holder");
    ck_part(denied, "claim.status", 409);
    check_state(&h, 0, "running");
    REPLY_AUTO late = send_parts(&h, text);
    ck_status(late, 200);
    ck_part(late, "ends.0.status", 200);
    ck_part(late, "measurements.0.status", 200);
    ck_assert_str_eq(reply_str(&late, "claim.problem.code"), "stale_epoch");
    check_state(&h, 0, "failed");
    REPLY_AUTO forbidden = send_as(&h, &viewer, "{}");
    ck_status(forbidden, 403);
    drop_sweep(h.id);
}
END_TEST

/* `n` ends that are the same. */
static void put_ends(struct str *body, size_t n)
{
    str_puts(body, "{\"ends\":[");
    for (size_t i = 0; i < n; i++)
        str_printf(body, "%s{$7,\"outcome\":\"failed\"}", i ? "," : "");
    str_puts(body, "]");
}

/* What is no list of parts is refused as a whole, and nothing of it is done. */
START_TEST(a_bad_body_is_refused_as_a_whole)
{
    struct held h;
    hold_trials(&h, "whole", 8);
    static const struct {
        const char *text, *pointer;
    } cases[] = {
        {"[]", ""},
        {"7", ""},
        {"{}", ""},
        {"{\"ends\":{$0,\"outcome\":\"failed\"}}", "/ends"},
        {"{\"ends\":[{$0,\"outcome\":\"failed\"}],\"measurements\":1}", "/measurements"},
        {"{\"ends\":[{$0,\"outcome\":\"failed\"}],\"more\":[]}", "/more"},
        {"{\"ends\":[{$0,\"outcome\":\"failed\"}],\"ends\":[]}", ""},
        {"{\"ends\":[{$0,\"outcome\":\"failed\"}]", ""},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(cases); i++) {
        REPLY_AUTO r = send_parts(&h, cases[i].text);
        ck_status(r, 400);
        ck_assert_str_eq(reply_str(&r, "errors.0.pointer"), cases[i].pointer);
    }
    AS_AUTO(str_done) struct str most = {0}, more = {0}, huge = {0};
    put_ends(&more, 257);
    str_puts(&more, "}");
    REPLY_AUTO many = send_parts(&h, str_cstr(&more));
    ck_status(many, 400);
    ck_assert_str_eq(reply_str(&many, "code"), "too_large");
    put_ends(&huge, 1);
    str_puts(&huge, ",\"measurements\":[{$0,\"items\":[],\"notes\":{\"n\":\"");
    for (int i = 0; i < (1 << 20) / 16; i++)
        str_puts(&huge, "0123456789abcdef");
    str_puts(&huge, "\"}}]}");
    REPLY_AUTO big = send_parts(&h, str_cstr(&huge));
    ck_status(big, 413);
    check_state(&h, 0, "running");
    check_state(&h, 7, "running");
    put_ends(&most, 256);
    str_puts(&most, "}");
    REPLY_AUTO full = send_parts(&h, str_cstr(&most));
    ck_status(full, 200);
    ck_part(full, "ends.255.status", 200);
    check_state(&h, 7, "failed");
    REPLY_AUTO nothing = send_parts(&h, "{\"ends\":[]}");
    ck_status(nothing, 200);
    ck_assert(json_is_null(reply_get(&nothing, "claim")));
    drop_sweep(h.id);
}
END_TEST

/* A claim waits if it is alone. With an end it is answered at once, although it may wait: without
 * that, this test takes a minute and fails. */
START_TEST(only_a_claim_alone_waits)
{
    struct held h;
    struct rest runner = as_runner();
    struct rest_request waits;
    char text[300];
    hold_trials(&h, "alone", 2);
    (void)snprintf(text, sizeof text,
                   "{\"ends\":[{$0,\"outcome\":\"failed\"}],\"claim\":{\"epoch\":%lld,"
                   "\"claim_id\":\"a\",\"wait_ms\":60000}}",
                   h.epoch);
    REPLY_AUTO beside = send_parts(&h, text);
    ck_status(beside, 200);
    ck_part(beside, "ends.0.status", 200);
    ck_assert_uint_eq(json_array_size(reply_get(&beside, "claim.trials")), 0);
    (void)snprintf(text, sizeof text,
                   "{\"claim\":{\"epoch\":%lld,\"claim_id\":\"a\",\"wait_ms\":60000}}", h.epoch);
    rest_start(&waits, &runner, "POST", h.path, text);
    await_figure(WAITING_ANY_TRIAL, 1);
    char next[128];
    (void)snprintf(next, sizeof next, "%s", make_sweep("alone-next", 1));
    rest_join(&waits);
    ck_status(waits.reply, 200);
    ck_assert_int_lt(waits.took_ms, 60000); /* woken, not out of patience */
    ck_assert_str_eq(reply_str(&waits.reply, "claim.trials.0.sweep"), next);
    ck_assert_uint_eq(json_array_size(reply_get(&waits.reply, "ends")), 0);
    reply_done(&waits.reply);
    drop_sweep(h.id);
    drop_sweep(next);
}
END_TEST

/* Half a body does nothing; with its other half it is done, although nobody reads the answer, and a
 * repeat gets it. */
START_TEST(half_a_request_does_nothing)
{
    struct held h;
    char head[600], half[300];
    hold_trials(&h, "half", 8);
    (void)snprintf(half, sizeof half,
                   "{\"ends\":[{\"sweep\":\"%s\",\"number\":0,\"attempt\":1,"
                   "\"outcome\":\"failed\"}",
                   h.id);
    (void)snprintf(head, sizeof head,
                   "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                   "Assay-Runner-Secret: " REST_SECRET "\r\n"
                   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                   h.path, fix.tokens[ROLE_RUNNER], strlen(half) + 2);
    long long before = figure(FAILED);
    int fd = raw_connect(fix.port);
    raw_puts(fd, head);
    raw_puts(fd, half);
    check_state(&h, 0, "running");
    raw_puts(fd, "]}");
    await_figure(FAILED, before + 1);
    close(fd);
    REPLY_AUTO again = send_parts(&h, "{\"ends\":[{$0,\"outcome\":\"failed\"}]}");
    ck_part(again, "ends.0.status", 200);
    drop_sweep(h.id);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_batch");
    TCase *tc = tcase_create("batch");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, parts_are_done_in_their_order);
    tcase_add_test(tc, a_bad_part_disturbs_no_other);
    tcase_add_test(tc, parts_have_the_rights_of_their_requests);
    tcase_add_test(tc, a_bad_body_is_refused_as_a_whole);
    tcase_add_test(tc, only_a_claim_alone_waits);
    tcase_add_test(tc, half_a_request_does_nothing);
    suite_add_tcase(s, tc);
    return s;
}
