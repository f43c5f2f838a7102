/* Secrets of runners, and tokens of clients: with a token that many share, nobody speaks for
 * another. Each test has an honest runner or client, and a thief who has the same token, or one of
 * the same role, and knows all names and numbers. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "tests/api/server/fixture.h"
#include "tests/support/check_main.h"

#define THIEF "ffffffffffffffffffffffffffffffffffffffff"

static struct rest with_secret(const char *secret)
{
    struct rest to = as_runner();
    to.secret = secret;
    return to;
}

/* `resume`: the trial's number in `sweep` that it says it still runs; -1: none. */
static struct reply register_as(const struct rest *to, const char *name, const char *sweep,
                                int resume)
{
    char body[300], refs[200] = "";
    if (resume >= 0)
        (void)snprintf(refs, sizeof refs,
                       ",\"resume\":[{\"sweep\":\"%s\",\"number\":%d,\"attempt\":1}]", sweep,
                       resume);
    (void)snprintf(body, sizeof body, "{\"name\":\"%s\",\"slots\":4%s}", name, refs);
    return rest_call(to, "POST", "/v1/runners", body);
}

static struct reply call_runner(const struct rest *to, const char *name, const char *verb,
                                long long epoch)
{
    char path[200], body[200];
    const char *more = as_streq(verb, "claim")       ? ",\"claim_id\":\"theft\",\"wait_ms\":0"
                       : as_streq(verb, "heartbeat") ? ",\"attempts\":[]"
                                                     : "";
    (void)snprintf(path, sizeof path, "/v1/runners/%s/%s", name, verb);
    (void)snprintf(body, sizeof body, "{\"epoch\":%lld%s}", epoch, more);
    return rest_call(to, "POST", path, body);
}

static void ck_not_holder(struct reply r)
{
    ck_status(r, 403);
    ck_assert_str_eq(reply_str(&r, "code"), "not_holder");
    reply_done(&r);
}

/* Every write of an attempt is refused. */
static void ck_no_writes(const struct rest *to, const char *attempt)
{
    static const struct {
        const char *method, *verb, *body;
    } writes[] = {
        {"POST", "measurements", "{\"items\":[{\"step\":0,\"metrics\":{\"loss\":-1}}]}"},
        {"PUT", "log", "{\"text\":\"stolen\"}"},
        {"PUT", "files", "{\"kind\":\"artifact\",\"files\":[]}"},
        {"POST", "complete", "{\"outcome\":\"failed\"}"},
        {"POST", "complete", "{\"outcome\":\"released\"}"},
    };
    for (size_t i = 0; i < AS_ARRAY_LEN(writes); i++) {
        char path[300];
        (void)snprintf(path, sizeof path, "%s/%s", attempt, writes[i].verb);
        ck_not_holder(rest_call(to, writes[i].method, path, writes[i].body));
    }
}

static struct reply complete(const struct rest *to, const char *attempt)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/measurements", attempt);
    REPLY_AUTO m =
        rest_call(to, "POST", path, "{\"items\":[{\"step\":0,\"metrics\":{\"loss\":0.5}}]}");
    (void)snprintf(path, sizeof path, "%s/complete", attempt);
    return rest_call(to, "POST", path, "{\"outcome\":\"completed\"}");
}

START_TEST(test_a_runner_is_its_own)
{
    struct rest thief = with_secret(THIEF), bare = with_secret(""), admin = as_admin(),
                own = as_runner();
    admin.secret = THIEF; /* the role gives no right to another's trial either */
    const struct rest *const thieves[] = {&thief, &bare, &admin};
    make_sweep("own", 4);
    long long epoch = make_runner("own-1", 2);
    REPLY_AUTO got = claim("own-1", epoch, 1, 20000);
    ck_assert_int_eq(reply_int(&got, "trials.0.number"), 0);
    REPLY_AUTO second = register_as(&thief, "own-2", "", -1);
    ck_status(second, 200); /* the thief is a runner too */
    for (size_t i = 0; i < AS_ARRAY_LEN(thieves); i++) {
        ck_no_writes(thieves[i], "/v1/sweeps/own/trials/0/attempts/1");
        ck_not_holder(call_runner(thieves[i], "own-1", "claim", epoch));
        ck_not_holder(call_runner(thieves[i], "own-1", "heartbeat", epoch));
        ck_not_holder(call_runner(thieves[i], "own-1", "leave", epoch));
        REPLY_AUTO again = register_as(thieves[i], "own-1", "own", 0);
        ck_status(again, 409);
    }
    REPLY_AUTO done = complete(&own, "/v1/sweeps/own/trials/0/attempts/1");
    ck_status(done, 200);
    ck_assert_str_eq(reply_str(&done, "state"), "completed");
    REPLY_AUTO log = rest_get(&admin, "/v1/sweeps/own/trials/0/log");
    ck_assert_str_eq(reply_str(&log, "text"), "");
    drop_sweep("own");
}
END_TEST

START_TEST(test_a_secret_is_shown_once)
{
    struct rest bare = with_secret(""), bad = with_secret("too short"), own = as_runner();
    REPLY_AUTO first = register_as(&bare, "once", "", -1);
    ck_status(first, 200);
    own.secret = reply_str(&first, "secret");
    ck_assert_uint_ge(strlen(own.secret), 32);
    REPLY_AUTO other = register_as(&bare, "once-2", "", -1);
    ck_assert_str_ne(reply_str(&other, "secret"), own.secret);
    REPLY_AUTO taken = register_as(&bare, "once", "", -1);
    ck_status(taken, 409);
    REPLY_AUTO again = register_as(&own, "once", "", -1);
    ck_status(again, 200);
    ck_assert_int_eq(reply_int(&again, "epoch"), reply_int(&first, "epoch") + 1);
    ck_assert(!json_object_get(again.json, "secret"));
    REPLY_AUTO beat = call_runner(&own, "once", "heartbeat", reply_int(&again, "epoch"));
    ck_status(beat, 200);
    REPLY_AUTO invalid = register_as(&bad, "once-3", "", -1);
    ck_status(invalid, 400);
    ck_assert_ptr_nonnull(strstr(reply_str(&invalid, "detail"), "9 characters"));
    struct rest viewer = as_viewer();
    REPLY_AUTO list = rest_get(&viewer, "/v1/runners?page_size=1000");
    ck_assert_ptr_null(strstr(str_cstr(&list.body), "secret"));
}
END_TEST

/* Take the name of a runner that does not hold it any more; returns the new epoch. What the runner
 * held before is still its own. */
static long long take_name(const struct rest *thief, const char *name, const char *sweep)
{
    REPLY_AUTO taken = register_as(thief, name, sweep, 0);
    ck_status(taken, 200);
    ck_assert_int_eq(reply_int(&taken, "directives.0.number"), 0); /* `resume` has no effect */
    return reply_int(&taken, "epoch");
}

START_TEST(test_a_name_that_was_left_is_free)
{
    struct rest thief = with_secret(THIEF), own = as_runner();
    make_sweep("left", 2);
    long long epoch = make_runner("left-1", 1);
    REPLY_AUTO got = claim("left-1", epoch, 1, 20000);
    ck_assert_int_eq(reply_int(&got, "trials.0.number"), 0);
    REPLY_AUTO gone = call_runner(&own, "left-1", "leave", epoch);
    ck_status(gone, 204);
    (void)take_name(&thief, "left-1", "left");
    ck_no_writes(&thief, "/v1/sweeps/left/trials/0/attempts/1");
    REPLY_AUTO stale = call_runner(&own, "left-1", "heartbeat", epoch);
    ck_status(stale, 409);
    REPLY_AUTO back = register_as(&own, "left-1", "", -1);
    ck_status(back, 409); /* another has the name now */
    /* Its late success still counts: no other attempt has begun. */
    REPLY_AUTO late = complete(&own, "/v1/sweeps/left/trials/0/attempts/1");
    ck_status(late, 200);
    drop_sweep("left");
}
END_TEST

START_TEST(test_an_administrator_removes_a_runner)
{
    struct rest thief = with_secret(THIEF), admin = as_admin(), user = as_user();
    make_sweep("removed", 2);
    long long epoch = make_runner("removed-1", 1);
    REPLY_AUTO got = claim("removed-1", epoch, 1, 20000);
    ck_assert_int_eq(reply_int(&got, "trials.0.number"), 0);
    REPLY_AUTO no = rest_call(&user, "DELETE", "/v1/runners/removed-1", NULL);
    ck_status(no, 403);
    REPLY_AUTO nor = rest_call(&thief, "DELETE", "/v1/runners/removed-1", NULL);
    ck_status(nor, 403);
    REPLY_AUTO yes = rest_call(&admin, "DELETE", "/v1/runners/removed-1", NULL);
    ck_status(yes, 204);
    REPLY_AUTO none = rest_call(&admin, "DELETE", "/v1/runners/removed-1", NULL);
    ck_status(none, 404);
    REPLY_AUTO trial = rest_get(&admin, "/v1/sweeps/removed/trials/0");
    ck_assert_str_eq(reply_str(&trial, "state"), "queued");
    ck_assert_int_eq(reply_int(&trial, "restarts"), 0);
    REPLY_AUTO taken = register_as(&thief, "removed-1", "", -1);
    ck_status(taken, 200);
    drop_sweep("removed");
}
END_TEST

static struct reply ask(const struct rest *to, const char *sweep, const char *client)
{
    char path[200], body[200];
    (void)snprintf(path, sizeof path, "/v1/sweeps/%s/suggestions", sweep);
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\",\"wait_ms\":0}", client);
    return rest_call(to, "POST", path, body);
}

/* Another user, who has a token of the same role. */
static struct rest another_user(char text[TOKEN_TEXT_SIZE])
{
    struct rest admin = as_admin();
    REPLY_AUTO r = rest_call(&admin, "POST", "/v1/tokens", "{\"role\":\"user\"}");
    ck_status(r, 201);
    (void)snprintf(text, TOKEN_TEXT_SIZE, "%s", reply_str(&r, "token"));
    return (struct rest){.url = fix.url, .token = text};
}

START_TEST(test_a_client_is_its_tokens)
{
    static const char path[] = "/v1/sweeps/asked/suggestions/0/";
    static const char *const verbs[] = {"complete", "measurements", "heartbeat"};
    static const char *const bodies[] = {
        "{\"client\":\"me\",\"outcome\":\"failed\"}",
        "{\"client\":\"me\",\"items\":[{\"step\":0,\"metrics\":{\"loss\":-1}}]}",
        "{\"client\":\"me\",\"lease_ms\":1000}"};
    char text[TOKEN_TEXT_SIZE], at[100];
    struct rest mine = as_user(), other = another_user(text), admin = as_admin(),
                runner = as_runner();
    make_sweep("asked", 4);
    REPLY_AUTO got = ask(&mine, "asked", "me");
    ck_assert_int_eq(reply_int(&got, "items.0.number"), 0);
    REPLY_AUTO same = ask(&other, "asked", "me");
    ck_status(same, 409);
    ck_assert_str_eq(reply_str(&same, "errors.0.pointer"), "/client");
    for (size_t i = 0; i < AS_ARRAY_LEN(verbs); i++) {
        (void)snprintf(at, sizeof at, "%s%s", path, verbs[i]);
        ck_not_holder(rest_call(&other, "POST", at, bodies[i]));
    }
    ck_no_writes(&runner, "/v1/sweeps/asked/trials/0/attempts/1"); /* nor through that protocol */
    REPLY_AUTO theirs = ask(&other, "asked", "you");
    ck_assert_int_eq(reply_int(&theirs, "items.0.number"), 1);
    REPLY_AUTO again = ask(&mine, "asked", "me");
    ck_assert_int_eq(reply_int(&again, "items.0.number"), 0);
    REPLY_AUTO done = rest_call(&mine, "POST", "/v1/sweeps/asked/suggestions/0/complete",
                                "{\"client\":\"me\",\"metrics\":{\"loss\":0.5}}");
    ck_status(done, 200);
    ck_assert_str_eq(reply_str(&done, "state"), "completed");
    REPLY_AUTO by_admin = rest_call(&admin, "POST", "/v1/sweeps/asked/suggestions/1/complete",
                                    "{\"client\":\"you\",\"metrics\":{\"loss\":0.25}}");
    ck_status(by_admin, 200);
    drop_sweep("asked");
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_secrets");
    TCase *tc = tcase_create("secrets");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, test_a_runner_is_its_own);
    tcase_add_test(tc, test_a_secret_is_shown_once);
    tcase_add_test(tc, test_a_name_that_was_left_is_free);
    tcase_add_test(tc, test_an_administrator_removes_a_runner);
    tcase_add_test(tc, test_a_client_is_its_tokens);
    suite_add_tcase(s, tc);
    return s;
}
