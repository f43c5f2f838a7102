/* Gangs over HTTP: a claim that waits while its gang gathers, the world that ranks wait for, and
 * the writes that are refused. */
#include <stdio.h>
#include <string.h>

#include "tests/api/server/fixture.h"
#include "tests/support/check_main.h"

#define ATTEMPT "/v1/sweeps/%s/trials/0/attempts/1"

static void make_gang(const char *name, int ranks, const char *trial)
{
    struct rest user = as_user();
    char body[800];
    (void)snprintf(body, sizeof body,
                   "{\"name\":\"%s\",\"metric\":{\"name\":\"loss\",\"goal\":\"minimize\"},"
                   "\"parameters\":{\"x\":{\"type\":\"float\",\"min\":0,\"max\":1}},\"search\":{"
                   "\"method\":\"random\"},\"limits\":{\"max_trials\":1},\"resources\":{\"ranks\":"
                   "%d},\"trial\":%s}",
                   name, ranks, trial);
    REPLY_AUTO sweep = rest_call(&user, "POST", "/v1/sweeps", body);
    ck_status(sweep, 201);
    ck_assert_int_eq(reply_int(&sweep, "document.resources.ranks"), ranks);
}

static void start_claim(struct rest_request *r, const char *runner, long long epoch, int seats,
                        int wait_ms)
{
    static int counter;
    struct rest to = as_runner();
    char body[200], path[60];
    (void)snprintf(body, sizeof body,
                   "{\"epoch\":%lld,\"claim_id\":\"c%d\",\"max_trials\":%d,\"seats\":%d,"
                   "\"wait_ms\":%d}",
                   epoch, counter++, seats, seats, wait_ms);
    (void)snprintf(path, sizeof path, "/v1/runners/%s/claim", runner);
    rest_start(r, &to, "POST", path, body);
}

static struct reply claim_seats(const char *runner, long long epoch, int seats, int wait_ms)
{
    struct rest_request r;
    start_claim(&r, runner, epoch, seats, wait_ms);
    rest_join(&r);
    return r.reply;
}

static struct reply post(const struct rest *to, const char *method, const char *sweep,
                         const char *path, const char *body)
{
    char whole[200];
    (void)snprintf(whole, sizeof whole, ATTEMPT "%s", sweep, path);
    return rest_call(to, method, whole, body);
}

static struct reply listens(const char *sweep, int seat)
{
    struct rest to = as_runner();
    char path[40], body[120];
    (void)snprintf(path, sizeof path, "/seats/%d", seat);
    (void)snprintf(body, sizeof body,
                   "{\"endpoint\":\"10.0.0.1:%d\",\"address\":\"10.0.0.1\",\"port\":%d}",
                   2000 + seat, 2000 + seat);
    return post(&to, "PUT", sweep, path, body);
}

/* A write of that seat, with the headers; NULL: without. */
static struct reply measures(const char *sweep, const char *seat, const char *epoch)
{
    struct rest to = as_runner();
    char path[200], first[60], second[60];
    const char *headers[3] = {0};
    int n = 0;
    (void)snprintf(path, sizeof path, ATTEMPT "/measurements", sweep);
    (void)snprintf(first, sizeof first, "Assay-Seat: %s", seat ? seat : "");
    (void)snprintf(second, sizeof second, "Assay-World-Epoch: %s", epoch ? epoch : "");
    if (seat)
        headers[n++] = first;
    if (epoch)
        headers[n++] = second;
    static const char body[] = "{\"items\":[{\"step\":1,\"metrics\":{\"loss\":0.5}}]}";
    return rest_call_with(
        &to, "POST", path,
        &(struct rest_options){
            .headers = headers, .body = body, .len = strlen(body), .type = "application/json"});
}

static void check_code(struct reply r, int status, const char *code)
{
    ck_assert_msg(r.status == status, "got %d: %s", r.status, str_cstr(&r.body));
    ck_assert_str_eq(reply_str(&r, "code"), code);
    reply_done(&r);
}

static void check_ok(struct reply r)
{
    ck_assert_msg(r.status >= 200 && r.status < 300, "got %d: %s", r.status, str_cstr(&r.body));
    reply_done(&r);
}

/* Two runners; the claim of the first one waits until the second one comes. */
START_TEST(a_claim_waits_for_its_gang)
{
    struct rest viewer = as_viewer(), runner = as_runner();
    make_gang("g", 3, "{\"command\":[\"true\"]}");
    long long a = make_runner("a", 2), b = make_runner("b", 1);
    check_ok(claim_seats("b", b, 1, 0)); /* both take ranks */
    struct rest_request waits;
    start_claim(&waits, "a", a, 2, 60000);
    await_figure("assay_gathering_seats", 2);
    await_figure(WAITING_ANY_TRIAL, 1);
    REPLY_AUTO mine = claim_seats("b", b, 1, 60000);
    ck_status(mine, 200);
    ck_assert_uint_eq(json_array_size(reply_get(&mine, "trials")), 1);
    ck_assert_int_eq(reply_int(&mine, "trials.0.gang.ranks"), 3);
    ck_assert_int_eq(reply_int(&mine, "trials.0.gang.min_ranks"), 3);
    ck_assert_str_eq(reply_str(&mine, "trials.0.gang.launch"), "all");
    rest_join(&waits);
    ck_assert_int_lt(waits.took_ms, 60000);
    ck_assert_uint_eq(json_array_size(reply_get(&waits.reply, "trials")), 2);
    ck_assert_int_eq(reply_int(&waits.reply, "trials.1.gang.seat"),
                     reply_int(&waits.reply, "trials.0.gang.seat") + 1);
    reply_done(&waits.reply);
    REPLY_AUTO gang = rest_get(&viewer, ATTEMPT "/gang", "g");
    ck_status(gang, 200);
    ck_assert_str_eq(reply_str(&gang, "state"), "gathering");
    ck_assert_uint_eq(json_array_size(reply_get(&gang, "seats")), 3);
    REPLY_AUTO trial = rest_get(&viewer, "/v1/sweeps/g/trials/0");
    ck_assert_int_eq(reply_int(&trial, "attempts.0.gang.ranks"), 3);
    ck_assert_int_eq(reply_int(&trial, "attempts.0.gang.live"), 3);
    ck_assert(json_is_null(reply_get(&trial, "attempts.0.runner")));
    ck_assert_int_eq(figure("assay_gangs{state=\"gathering\"}"), 1);
    ck_assert_int_eq(figure("assay_trials{state=\"running\"}"), 1);
    /* heartbeats list ranks; a cancelled trial stops each of them */
    REPLY_AUTO beat = rest_call(&runner, "POST", "/v1/runners/b/heartbeat",
                                "{\"epoch\":1,\"attempts\":[{\"sweep\":\"g\",\"number\":0,"
                                "\"attempt\":1,\"seat\":9,\"phase\":\"preparing\",\"step\":0,"
                                "\"sent_bytes\":1}]}");
    ck_status(beat, 200);
    ck_assert_int_eq(reply_int(&beat, "directives.0.seat"), 9);
    drop_sweep("g");
    check_code(rest_get(&viewer, ATTEMPT "/gang", "g"), 404, "not_found");
}
END_TEST

/* A rank waits for the first world until all listen. */
static void meet_in_the_first_world(void)
{
    struct rest runner = as_runner();
    struct rest_request waits;
    char path[120];
    (void)snprintf(path, sizeof path, ATTEMPT "/world?after=0&wait_ms=20000", "w");
    rest_start(&waits, &runner, "GET", path, NULL);
    await_figure("assay_waiting_requests{for=\"one_world\"}", 1);
    REPLY_AUTO last = listens("w", 1);
    ck_status(last, 200);
    ck_assert_int_eq(reply_int(&last, "epoch"), 1);
    rest_join(&waits);
    ck_assert_int_lt(waits.took_ms, 20000); /* woken, not out of patience */
    ck_assert_int_eq(reply_int(&waits.reply, "epoch"), 1);
    ck_assert_str_eq(reply_str(&waits.reply, "state"), "running");
    ck_assert_uint_eq(strlen(reply_str(&waits.reply, "secret")), 64);
    ck_assert_int_eq(reply_int(&waits.reply, "restart"), 0);
    ck_assert_int_eq(reply_int(&waits.reply, "max_restarts"), 3);
    ck_assert_str_eq(reply_str(&waits.reply, "members.1.endpoint"), "10.0.0.1:2001");
    ck_assert_str_eq(reply_str(&waits.reply, "members.1.runner"), "c");
    ck_assert_str_eq(reply_str(&waits.reply, "members.1.host"), "here");
    reply_done(&waits.reply);
}

/* The secret is for the ranks and administrators. */
static void look_at_the_world(void)
{
    struct rest viewer = as_viewer(), runner = as_runner(), admin = as_admin();
    viewer.secret = admin.secret = "";
    REPLY_AUTO seen = rest_get(&viewer, ATTEMPT "/world", "w");
    ck_status(seen, 200);
    ck_assert_ptr_null(reply_get(&seen, "secret"));
    REPLY_AUTO all = rest_get(&admin, ATTEMPT "/world", "w");
    ck_assert_uint_eq(strlen(reply_str(&all, "secret")), 64);
    REPLY_AUTO known = rest_get(&runner, ATTEMPT "/world?after=1&wait_ms=50", "w");
    ck_assert_int_eq(reply_int(&known, "epoch"), 1);
}

/* Each part says its seat and epoch; a part without them may stand beside it. */
static void report_in_one_request(void)
{
#define PART "{\"sweep\":\"w\",\"number\":0,\"attempt\":1,\"items\":[]"
    static const char *const codes[] = {"", "stale_world", "stale_world", "unprocessable"};
    struct rest runner = as_runner();
    REPLY_AUTO r = rest_call(&runner, "POST", "/v1/runners/c/batch",
                             "{\"measurements\":[" PART ",\"seat\":0,\"world_epoch\":1}," PART
                             ",\"seat\":1,\"world_epoch\":1}," PART
                             ",\"seat\":0,\"world_epoch\":7}," PART "}]}");
    ck_status(r, 200);
    for (int i = 0; i < 4; i++) {
        char path[60];
        (void)snprintf(path, sizeof path, "measurements.%d.problem.code", i);
        ck_assert_str_eq(reply_str(&r, path), codes[i]);
    }
}

static void report_from_ranks(void)
{
    struct rest viewer = as_viewer(), runner = as_runner();
    viewer.secret = "";
    check_ok(post(&runner, "POST", "w", "/seats/1/joined", "{\"epoch\":1,\"step\":0}"));
    check_code(post(&runner, "POST", "w", "/seats/1/joined", "{\"epoch\":2,\"step\":0}"), 409,
               "stale_world");
    check_ok(measures("w", "0", "1"));
    check_code(measures("w", NULL, NULL), 422, "unprocessable");
    check_code(measures("w", "0", NULL), 400, "invalid");
    check_code(measures("w", NULL, "1"), 400, "invalid");
    check_code(measures("w", "first", "1"), 400, "invalid");
    check_code(measures("w", "1", "1"), 409, "stale_world");
    check_code(measures("w", "0", "7"), 409, "stale_world");
    report_in_one_request();
    check_code(post(&runner, "POST", "w", "/world", "{\"epoch\":7,\"seat\":0,\"lost\":[1]}"), 409,
               "stale_world");
    check_code(post(&viewer, "POST", "w", "/world", "{\"epoch\":1,\"seat\":0}"), 403, "denied");
    struct rest stranger = as_runner();
    stranger.secret = "00000000000000000000000000000000000000000";
    check_code(post(&stranger, "POST", "w", "/world", "{\"epoch\":1,\"seat\":0}"), 403,
               "not_holder");
    check_code(post(&stranger, "POST", "w", "/seats/0/end", "{\"outcome\":\"retry\"}"), 403,
               "not_holder");
}

/* A rank waits for another world while the gang ends. */
static void end_while_a_rank_waits(void)
{
    struct rest viewer = as_viewer(), runner = as_runner();
    struct rest_request waits;
    char path[120];
    (void)snprintf(path, sizeof path, ATTEMPT "/world?after=1&wait_ms=20000", "w");
    rest_start(&waits, &runner, "GET", path, NULL);
    await_figure("assay_waiting_requests{for=\"one_world\"}", 1);
    REPLY_AUTO end = post(&runner, "POST", "w", "/seats/1/end",
                          "{\"outcome\":\"failed\",\"exit_code\":3,\"ran_ms\":5,\"step\":4}");
    ck_status(end, 200);
    ck_assert_str_eq(reply_str(&end, "state"), "over");
    rest_join(&waits);
    ck_assert_int_lt(waits.took_ms, 20000); /* woken, not out of patience */
    ck_assert_str_eq(reply_str(&waits.reply, "state"), "over");
    reply_done(&waits.reply);
    REPLY_AUTO trial = rest_get(&viewer, "/v1/sweeps/w/trials/0");
    ck_assert_str_eq(reply_str(&trial, "state"), "failed"); /* all ranks were on one runner */
    ck_assert_str_eq(reply_str(&trial, "attempts.0.outcome"), "failed");
    ck_assert_str_eq(reply_str(&trial, "attempts.0.reason"), "rank 1 on runner c: exit code 3");
    check_code(measures("w", "0", "1"), 409, "stale_attempt");
    check_code(post(&runner, "POST", "w", "/seats/0/end", "{\"outcome\":\"retry\"}"), 409,
               "stale_attempt");
}

START_TEST(ranks_wait_for_worlds)
{
    make_gang("w", 2, "{\"command\":[\"true\"]}");
    long long c = make_runner("c", 2);
    check_ok(claim_seats("c", c, 2, 60000));
    check_ok(listens("w", 0));
    meet_in_the_first_world();
    look_at_the_world();
    report_from_ranks();
    end_while_a_rank_waits();
    drop_sweep("w");
}
END_TEST

/* A sweep that is deleted answers who waits for its world. */
START_TEST(a_deleted_gang_answers_who_waits)
{
    struct rest runner = as_runner();
    struct rest_request waits;
    char path[120];
    make_gang("d", 1 + 1, "{\"command\":[\"true\"],\"launch\":\"first\"}");
    long long e = make_runner("d", 2);
    check_ok(claim_seats("d", e, 2, 60000));
    (void)snprintf(path, sizeof path, ATTEMPT "/world?wait_ms=20000", "d");
    rest_start(&waits, &runner, "GET", path, NULL);
    await_figure("assay_waiting_requests{for=\"one_world\"}", 1);
    drop_sweep("d");
    rest_join(&waits);
    ck_assert_int_lt(waits.took_ms, 20000); /* woken, not out of patience */
    ck_assert(waits.reply.status == 404 || as_streq(reply_str(&waits.reply, "state"), "over"));
    reply_done(&waits.reply);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("api_gangs");
    TCase *tc = tcase_create("gangs");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_test(tc, a_claim_waits_for_its_gang);
    tcase_add_test(tc, ranks_wait_for_worlds);
    tcase_add_test(tc, a_deleted_gang_answers_who_waits);
    suite_add_tcase(s, tc);
    return s;
}
