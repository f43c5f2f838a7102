/* The ends and measurements of a runner's trials in common requests, against a server that loses
 * answers, refuses single parts, or does not know such requests. */
#include "tests/trial-runner/agent/runner_fixture.h"

#include <signal.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "tests/api/client/http_server.h"

#define SCRIPT "echo '{\"loss\":0.5}' >> $ASSAY_REPORT"

static void offer_many(int n)
{
    for (int i = 0; i < n; i++)
        (void)offer_sh(i, SCRIPT);
}

static void await_completed(int i)
{
    AWAIT(fx.trials[i].completion);
    ck_assert_str_eq(outcome_of(&fx.trials[i]), "completed");
    LOCKED(ck_assert_uint_ge(json_array_size(fx.trials[i].items), 1));
}

START_TEST(trials_end_in_common_requests)
{
    offer_many(MAX_TRIALS);
    start_runner(NULL, NULL);
    for (int i = 0; i < MAX_TRIALS; i++)
        await_completed(i);
    LOCKED(ck_assert_int_ge(fx.batch_parts, 2 * MAX_TRIALS));
    LOCKED(ck_assert_int_eq(fx.singles, 0));
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

/* The route is asked for once: both answers mean that the server is older. */
START_TEST(an_older_server_gets_single_requests)
{
    fx.no_batches = _i ? 405 : 404;
    offer_many(6);
    start_runner(NULL, NULL);
    for (int i = 0; i < 6; i++)
        await_completed(i);
    LOCKED(ck_assert_int_eq(fx.batches_refused, 1));
    LOCKED(ck_assert_int_ge(fx.singles, 12));
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

START_TEST(parts_of_a_lost_answer_are_sent_again)
{
    fx.cut_batches = 3;
    offer_many(6);
    start_runner(NULL, NULL);
    for (int i = 0; i < 6; i++)
        await_completed(i);
    LOCKED(ck_assert_int_eq(fx.cut_batches, 0));
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

/* The server has the end, its answer is lost, and it takes no measurement of the attempt any more:
 * the end is sent again, and gets its answer. */
static int ends;

static bool lose_first_end(const struct server_request *q, struct server_answer *a)
{
    if (as_ends_with(q->path, "/complete")) {
        fx.cut_batches = ends++ == 0;
        return false;
    }
    if (ends)
        answer_problem(a, 409, "stale_attempt", "the trial is completed");
    return ends > 0;
}

START_TEST(an_end_whose_answer_is_lost)
{
    fx.more = lose_first_end;
    ends = 0;
    offer_many(1);
    start_runner(NULL, NULL);
    await_completed(0);
    AWAIT(ends == 2);
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

/* A trial of a sweep without early stopping. */
static struct trial *offer_plain(int i)
{
    struct trial *t = offer_sh(i, "echo '{\"step\":4,\"loss\":0.5}' >> $ASSAY_REPORT");
    LOCKED(json_object_set_new(t->claim, "early_stopping", json_false()));
    return t;
}

/* The server takes no measurement by itself, so that none was sent before the process ended. */
START_TEST(the_last_measurement_goes_with_the_end)
{
    struct trial *plain = offer_plain(0), *stopped = offer_sh(1, SCRIPT);
    fx.hold_items = true;
    start_runner(NULL, NULL);
    AWAIT(plain->completion);
    fx_lock();
    json_t *metrics = json_object_get(plain->completion, "metrics");
    ck_assert(json_real_value(json_object_get(metrics, "loss")) == 0.5);
    ck_assert_int_eq(json_integer_value(json_object_get(plain->completion, "step")), 4);
    ck_assert_ptr_null(plain->items);
    ck_assert_ptr_null(stopped->completion);
    fx.hold_items = false;
    fx_unlock();
    await_completed(1);
    LOCKED(ck_assert_ptr_null(json_object_get(stopped->completion, "metrics")));
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

START_TEST(an_end_with_a_measurement_whose_answer_is_lost)
{
    fx.more = lose_first_end;
    fx.hold_items = true;
    ends = 0;
    struct trial *t = offer_plain(0);
    start_runner(NULL, NULL);
    AWAIT(ends == 2 && t->completion);
    ck_assert_str_eq(outcome_of(t), "completed");
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

/* Measurements are taken once an end with one was refused. */
static bool refuse_ends_with_metrics(const struct server_request *q, struct server_answer *a)
{
    if (!as_ends_with(q->path, "/complete") || !strstr(q->body, "metrics"))
        return false;
    fx.hold_items = false;
    answer_json(a, 422,
                "{\"type\":\"about:blank\",\"title\":\"t\",\"status\":422,\"code\":"
                "\"unprocessable\",\"detail\":\"no\",\"errors\":[{\"pointer\":\"/metrics/loss\","
                "\"detail\":\"no\"}]}");
    a->content_type = "application/problem+json";
    return true;
}

START_TEST(an_end_that_is_refused_with_its_measurement)
{
    fx.more = refuse_ends_with_metrics;
    fx.hold_items = true;
    struct trial *t = offer_plain(0);
    start_runner(NULL, NULL);
    await_completed(0);
    LOCKED(ck_assert_ptr_null(json_object_get(t->completion, "metrics")));
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

static bool holds_one;

/* Trial 0 is stale, and trial 1 cannot be taken for now. */
static bool refuse_two(const struct server_request *q, struct server_answer *a)
{
    if (strncmp(q->path, "/v1/sweeps/s/trials/0/", 22) == 0)
        answer_problem(a, 409, "stale_attempt", "no longer current");
    else if (strncmp(q->path, "/v1/sweeps/s/trials/1/", 22) == 0 && holds_one)
        answer_problem(a, 503, "unavailable", "not now");
    else
        return false;
    return true;
}

START_TEST(a_refused_part_disturbs_no_other)
{
    fx.more = refuse_two;
    holds_one = true;
    offer_many(8);
    start_runner(NULL, NULL);
    for (int i = 2; i < 8; i++)
        await_completed(i);
    fx_lock();
    ck_assert_ptr_null(fx.trials[1].completion);
    holds_one = false;
    fx_unlock();
    await_completed(1);
    LOCKED(ck_assert_ptr_null(fx.trials[0].completion));
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

/* The runner is killed after the server has taken its parts, and before it has the answer: its
 * results are on disk, and the next runner sends them again. */
static bool kill_at_end(const struct server_request *q, struct server_answer *a)
{
    (void)a;
    if (as_ends_with(q->path, "/complete") && fx.runner)
        end_runner(SIGKILL);
    return false; /* and the end is recorded */
}

START_TEST(a_runner_that_dies_before_the_answer)
{
    fx.more = kill_at_end;
    offer_many(1);
    start_runner(NULL, NULL);
    AWAIT(fx.runner == 0);
    await_completed(0);
    fx_lock();
    fx.more = NULL;
    json_decref(fx.trials[0].completion);
    fx.trials[0].completion = NULL;
    fx_unlock();
    start_runner(NULL, NULL);
    await_completed(0);
    ck_assert_int_eq(end_runner(SIGTERM), 0);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("agent_batches");
    TCase *tc = tcase_create("batches");
    tcase_set_timeout(tc, 2 * PATIENCE_MS / 1000);
    tcase_add_checked_fixture(tc, fx_setup, fx_teardown);
    tcase_add_test(tc, trials_end_in_common_requests);
    tcase_add_loop_test(tc, an_older_server_gets_single_requests, 0, 2);
    tcase_add_test(tc, parts_of_a_lost_answer_are_sent_again);
    tcase_add_test(tc, an_end_whose_answer_is_lost);
    tcase_add_test(tc, the_last_measurement_goes_with_the_end);
    tcase_add_test(tc, an_end_with_a_measurement_whose_answer_is_lost);
    tcase_add_test(tc, an_end_that_is_refused_with_its_measurement);
    tcase_add_test(tc, a_refused_part_disturbs_no_other);
    tcase_add_test(tc, a_runner_that_dies_before_the_answer);
    suite_add_tcase(s, tc);
    return s;
}
