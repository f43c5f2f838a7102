/* Clients that ask and tell, and the program: leases, two servers over one database. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/api/server/assayd_rig.h"
#include "tests/support/check_main.h"

/* Status 0 when there is no answer: threads use this, and they must not leave through Check. */
static struct reply post_body(const struct rest *to, const char *path, const char *body)
{
    const struct rest_options opts = {
        .body = body, .len = strlen(body), .type = "application/json", .may_fail = true};
    return rest_call_with(to, "POST", path, &opts);
}

static struct reply ask_trial(const struct rest *to, const char *client, int lease_ms, int wait_ms)
{
    char body[160];
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\",\"lease_ms\":%d,\"wait_ms\":%d}", client,
                   lease_ms, wait_ms);
    return post_body(to, "/v1/sweeps/asked/suggestions", body);
}

static struct reply tell_result(const struct rest *to, const char *client, long long number)
{
    char path[120], body[120];
    (void)snprintf(path, sizeof path, "/v1/sweeps/asked/suggestions/%lld/complete", number);
    (void)snprintf(body, sizeof body, "{\"client\":\"%s\",\"metrics\":{\"loss\":0.5}}", client);
    return post_body(to, path, body);
}

/* Wait until the trial is in this state. */
static void wait_trial(const struct rest *to, long long number, const char *state)
{
    char path[80];
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    (void)snprintf(path, sizeof path, "/v1/sweeps/asked/trials/%lld", number);
    for (bool is_there = false; !is_there; clock_sleep_ms(20)) {
        REPLY_AUTO r = rest_call(to, "GET", path, NULL);
        ck_status(r, 200);
        is_there = strcmp(reply_str(&r, "state"), state) == 0;
        ck_assert_msg(is_there || clock_mono_ns() < until, "%s", str_cstr(&r.body));
    }
}

/* When a lease ends, a waiting client gets the trial. A late result counts only if no other client
 * has begun the trial. Heartbeats extend the lease. */
START_TEST(test_client_lease)
{
    char url[128], token[128];
    pid_t pid = rig_start(url, token);
    struct rest admin = {url, token};
    rig_make_asked(&admin, "/v1/sweeps", "sobol", 1);
    REPLY_AUTO first = ask_trial(&admin, "a", 1000, 60000);
    ck_assert_int_eq(reply_int(&first, "items.0.number"), 0);
    REPLY_AUTO second = ask_trial(&admin, "b", 1000, 60000); /* all trials run: it waits */
    ck_assert_int_eq(reply_int(&second, "items.0.number"), 0);
    ck_assert_int_eq(reply_int(&second, "items.0.attempt"), 2);
    ck_assert(
        json_equal(reply_get(&first, "items.0.params"), reply_get(&second, "items.0.params")));
    REPLY_AUTO stale = tell_result(&admin, "a", 0);
    ck_status(stale, 409);
    ck_assert_str_eq(reply_str(&stale, "code"), "stale_attempt");
    wait_trial(&admin, 0, "queued"); /* b is silent too */
    REPLY_AUTO late = tell_result(&admin, "b", 0);
    ck_status(late, 200);
    ck_assert_str_eq(reply_str(&late, "state"), "completed");
    REPLY_AUTO over = ask_trial(&admin, "c", 1000, 60000);
    ck_assert(json_is_true(reply_get(&over, "done")));
    rig_stop(pid);
}
END_TEST

/* A client of one of two servers over one database. */
#define CROWD_TRIALS 30
struct crowd {
    pthread_t thread;
    struct rest to;
    char client[16];
    int held[CROWD_TRIALS];
    char wrong[400]; /* the error, or "" */
};

static bool is_ok(struct crowd *c, const struct reply *r)
{
    if (r->status != 200)
        (void)snprintf(c->wrong, sizeof c->wrong, "%s: got %d: %s", c->client, r->status,
                       str_cstr(&r->body));
    return r->status == 200;
}

static void *run_crowd(void *arg)
{
    struct crowd *c = arg;
    for (;;) {
        REPLY_AUTO r = ask_trial(&c->to, c->client, 60000, 5000);
        if (!is_ok(c, &r) || json_is_true(reply_get(&r, "done")))
            return NULL;
        if (json_array_size(reply_get(&r, "items")) == 0)
            continue;
        long long number = reply_int(&r, "items.0.number");
        if (number < 0 || number >= CROWD_TRIALS) {
            (void)snprintf(c->wrong, sizeof c->wrong, "%s: trial %lld", c->client, number);
            return NULL;
        }
        c->held[number]++;
        REPLY_AUTO told = tell_result(&c->to, c->client, number);
        if (!is_ok(c, &told))
            return NULL;
    }
}

START_TEST(test_two_servers)
{
    static const char *const methods[] = {"random", "gp"};
    char urls[2][128], token[128];
    struct crowd crowd[6] = {0};
    pid_t pids[] = {rig_start_as("url-1", urls[0], token), rig_start_as("url-2", urls[1], token)};
    struct rest admin = {urls[0], token};
    rig_make_asked(&admin, "/v1/sweeps", methods[_i], CROWD_TRIALS);
    for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++) {
        crowd[i].to = (struct rest){urls[i % 2], token};
        (void)snprintf(crowd[i].client, sizeof crowd[i].client, "c%zu", i);
        ck_assert_int_eq(pthread_create(&crowd[i].thread, NULL, run_crowd, &crowd[i]), 0);
    }
    for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++)
        ck_assert_int_eq(pthread_join(crowd[i].thread, NULL), 0);
    for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++)
        ck_assert_msg(!*crowd[i].wrong, "%s", crowd[i].wrong);
    for (size_t n = 0; n < CROWD_TRIALS; n++) {
        int held = 0;
        for (size_t i = 0; i < AS_ARRAY_LEN(crowd); i++)
            held += crowd[i].held[n];
        ck_assert_int_eq(held, 1); /* by one client, once */
    }
    REPLY_AUTO sweep = rest_call(&admin, "GET", "/v1/sweeps/asked", NULL);
    ck_assert_int_eq(reply_int(&sweep, "counts.completed"), CROWD_TRIALS);
    ck_assert_int_eq(reply_int(&sweep, "counts.total"), CROWD_TRIALS);
    for (size_t i = 0; i < AS_ARRAY_LEN(pids); i++) {
        rig_stop(pids[i]);
    }
}
END_TEST

TEST_SUITE()
{
    TCase *tc;
    Suite *s = rig_suite("api_assayd_clients", &tc);
    tcase_add_test(tc, test_client_lease);
    tcase_add_loop_test(tc, test_two_servers, 0, 2);
    return s;
}
