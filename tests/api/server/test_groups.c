/* Groups over HTTP: a claim of several members, their reports, and a refill that waits. */
#include <stdio.h>
#include <string.h>

#include "tests/api/server/fixture.h"
#include "tests/support/check_main.h"

static void make_train(const char *limits)
{
    static const char table[] = "x,y,class\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n";
    struct rest user = as_user();
    char hex[SHA256_HEX_SIZE], body[1000];
    REPLY_AUTO blob = put_blob(table, strlen(table), hex);
    ck_assert_int_le(blob.status, 204);
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"toy\",\"format\":\"csv\",\"files\":{\"table\":\"%s\"},\"target\":"
                   "\"class\"}",
                   hex);
    REPLY_AUTO data = rest_call(&user, "POST", "/v1/datasets", body);
    ck_status(data, 201);
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"grouped\",\"metric\":{\"name\":\"val_loss\",\"goal\":\"minimize\"},"
                   "\"parameters\":{\"lr\":{\"type\":\"float\",\"min\":0.1,\"max\":1}},\"search\":{"
                   "\"method\":\"random\"},\"limits\":%s,\"resources\":{\"group\":6},\"ensemble\":"
                   "false,\"trial\":{\"train\":{"
                   "\"dataset\":\"toy\",\"epochs\":1,\"optimizer\":{\"lr\":\"${lr}\"}}}}",
                   limits);
    REPLY_AUTO sweep = rest_call(&user, "POST", "/v1/sweeps", body);
    ck_status(sweep, 201);
    ck_assert_int_eq(reply_int(&sweep, "document.resources.group"), 6);
}

static void start_claim(struct rest_request *r, const char *runner, long long epoch,
                        const char *claim_id, const char *more)
{
    struct rest to = as_runner();
    char body[400], path[60];
    (void)snprintf(body, sizeof body, "{\"epoch\":%lld,\"claim_id\":\"%s\"%s}", epoch, claim_id,
                   more);
    (void)snprintf(path, sizeof path, "/v1/runners/%s/claim", runner);
    rest_start(r, &to, "POST", path, body);
}

static struct reply claim_with(const char *runner, long long epoch, const char *claim_id,
                               const char *more)
{
    struct rest_request r;
    start_claim(&r, runner, epoch, claim_id, more);
    rest_join(&r);
    return r.reply;
}

START_TEST(test_a_group_and_its_refill)
{
    struct rest runner = as_runner(), viewer = as_viewer();
    make_train("{\"max_trials\":9,\"max_concurrent_trials\":3}");
    long long epoch = make_runner("r", 1);
    REPLY_AUTO got = claim_with("r", epoch, "one", ",\"members\":8,\"memory_bytes\":1000000000");
    ck_status(got, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&got, "trials")), 3);
    ck_assert_str_eq(reply_str(&got, "trials.2.group.id"), "grouped.g0.1");
    ck_assert_int_eq(reply_int(&got, "trials.2.group.max_members"), 6);
    ck_assert_int_gt(reply_int(&got, "trials.2.group.bytes_per_member"), 100);
    REPLY_AUTO list = rest_call(&viewer, "GET",
                                "/v1/sweeps/grouped/trials?group=grouped.g0.1&state=running", NULL);
    ck_status(list, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&list, "items")), 3);
    ck_assert_str_eq(reply_str(&list, "items.0.shape"), reply_str(&got, "trials.0.group.shape"));
    REPLY_AUTO none = rest_call(&viewer, "GET", "/v1/sweeps/grouped/trials?group=other", NULL);
    ck_assert_uint_eq(json_array_size(reply_get(&none, "items")), 0);
    REPLY_AUTO live = rest_call(&viewer, "GET", "/v1/runners", NULL);
    ck_assert_int_eq(reply_int(&live, "items.0.running"), 3);
    ck_assert_int_eq(reply_int(&live, "items.0.used_slots"), 1);

    struct rest_request refill;
    start_claim(&refill, "r", epoch, "fit",
                ",\"fit\":{\"group\":\"grouped.g0.1\",\"members\":2},\"wait_ms\":60000");
    await_figure(WAITING_ONE_SWEEP, 1);
    REPLY_AUTO end = rest_call(&runner, "POST", "/v1/sweeps/grouped/trials/1/attempts/1/complete",
                               "{\"outcome\":\"failed\",\"reason\":\"it diverged\"}");
    ck_status(end, 200);
    rest_join(&refill);
    ck_assert_int_lt(refill.took_ms, 60000); /* woken, not out of patience */
    ck_status(refill.reply, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&refill.reply, "trials")), 1);
    ck_assert_int_eq(reply_int(&refill.reply, "trials.0.number"), 3);
    ck_assert_str_eq(reply_str(&refill.reply, "trials.0.group.id"), "grouped.g0.1");
    reply_done(&refill.reply);
    REPLY_AUTO trial = rest_call(&viewer, "GET", "/v1/sweeps/grouped/trials/1", NULL);
    ck_assert_str_eq(reply_str(&trial, "group"), "grouped.g0.1");
    ck_assert_str_eq(reply_str(&trial, "attempts.0.group"), "grouped.g0.1");
    drop_sweep("grouped");
}
END_TEST

/* A claim while the end of a trial is about to be reported: if the method learns, the claim is
 * answered after that report, with a suggestion that knows the result. */
START_TEST(test_a_claim_that_awaits_a_result)
{
    struct rest user = as_user(), runner = as_runner(), viewer = as_viewer();
    REPLY_AUTO sweep = rest_call(
        &user, "POST", "/v1/sweeps",
        "{\"name\":\"learns\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},\"parameters\":{"
        "\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}},\"search\":{\"method\":\"gp\"},\"limits\":"
        "{"
        "\"max_trials\":5},\"trial\":{\"command\":[\"true\",\"${x}\"]}}");
    ck_status(sweep, 201);
    long long epoch = make_runner("learner", 1);
    REPLY_AUTO got = claim_with("learner", epoch, "first", ",\"wait_ms\":60000");
    ck_assert_uint_eq(json_array_size(reply_get(&got, "trials")), 1);
    REPLY_AUTO none =
        claim_with("learner", epoch, "none",
                   ",\"ending\":[{\"sweep\":\"learns\",\"number\":0,\"attempt\":1}],\"wait_ms\":0");
    ck_status(none, 200);
    ck_assert(json_is_true(reply_get(&none, "pending")));
    struct rest_request beside;
    start_claim(
        &beside, "learner", epoch, "beside",
        ",\"ending\":[{\"sweep\":\"learns\",\"number\":0,\"attempt\":1}],\"wait_ms\":60000");
    await_figure(WAITING_ANY_TRIAL, 1);
    REPLY_AUTO loss =
        rest_call(&runner, "POST", "/v1/sweeps/learns/trials/0/attempts/1/measurements",
                  "{\"items\":[{\"step\":1,\"metrics\":{\"loss\":1}}]}");
    ck_status(loss, 200);
    REPLY_AUTO end = rest_call(&runner, "POST", "/v1/sweeps/learns/trials/0/attempts/1/complete",
                               "{\"outcome\":\"completed\"}");
    ck_status(end, 200);
    rest_join(&beside);
    ck_assert_int_lt(beside.took_ms, 60000); /* woken, not out of patience */
    ck_status(beside.reply, 200);
    ck_assert_int_eq(reply_int(&beside.reply, "trials.0.number"), 1);
    reply_done(&beside.reply);
    REPLY_AUTO trial = rest_call(&viewer, "GET", "/v1/sweeps/learns/trials/1", NULL);
    ck_assert_int_eq(reply_int(&trial, "seen"), 1);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_groups");
    TCase *tc = tcase_create("groups");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, test_a_group_and_its_refill);
    tcase_add_test(tc, test_a_claim_that_awaits_a_result);
    suite_add_tcase(s, tc);
    return s;
}
