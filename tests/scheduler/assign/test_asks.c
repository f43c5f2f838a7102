/* Ask and tell: leases of clients, repeats, limits, and the same rules as for runners. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/lifecycle/reaper.h"
#include "scheduler/services/sweep_pareto.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

static struct ask_ref ref_for(const char *sweep, int64_t number, const char *client)
{
    return (struct ask_ref){.sweep = sweep, .number = number, .client = client};
}

static as_status complete(struct ask_ref ref, attempt_outcome outcome, struct trial_row *ret)
{
    const struct completion c = {.outcome = outcome};
    return ask_complete(s.db, &s.a, &ref, &c, ret, &err);
}

/* Let the leases of clients run out, and run the reaper. */
static struct reaper_report reap_expired(void)
{
    struct reaper_report r, sum = {0};
    pg_fixture_exec(s.url, "update client set expires_at = now() - interval '1 s'");
    for (int i = 0; sum.clients_lost == 0 && i < PATIENCE_MS / 5; i++) {
        ck_ok(reaper_tick(&s.reaper, &r, &err), err); /* it listens for a lease of 100 ms first */
        sum.clients_lost += r.clients_lost;
        sum.attempts_lost += r.attempts_lost;
        clock_sleep_ms(5);
    }
    return sum;
}

START_TEST(a_client_gets_its_unfinished_trial_back)
{
    make_learner(&s, "a", "'max_trials': 5", "");
    struct suggestion_row x = ask_one(&s, "a", "me"), y = ask_one(&s, "a", "me");
    ck_assert_int_eq(x.number, 0);
    ck_assert_int_eq(y.number, 0);
    ck_assert_int_eq(y.attempt, 1);
    ck_assert_str_eq(x.params, y.params);
    ck_assert_int_ge(x.lease_until_ms, 1);
    ck_assert_int_eq(ask_one(&s, "a", "you").number, 1);
    struct suggestion_list list = ask(&s, "a", "me", 2);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_int_eq(list.rows[0].number, 0);
    ck_assert_int_eq(list.rows[1].number, 2);
    tell(&s, "a", 0, "me", 1.5);
    ck_assert_int_eq(ask_one(&s, "a", "me").number, 2);
    struct trial_row row = trial_of(&s, "a", 0);
    ck_assert_str_eq(row.client, "me");
    ck_assert_ptr_null(row.runner);
    ck_assert_double_eq(row.value, 1.5);
    ck_assert_int_eq(row.step, 0);
}
END_TEST

/* A name is its token's until its lease has ended; what was asked for stays the token's. */
START_TEST(a_name_belongs_to_its_token)
{
    struct ask_request req = {
        .sweep = "a", .client = "me", .token = "ada", .count = 1, .lease_ms = 60000};
    struct suggestion_list list;
    struct trial_row row;
    make_learner(&s, "a", "'max_trials': 5", "");
    ck_ok(ask_trials(s.db, NULL, &s.a, &req, &list, &err), err);
    ck_assert_int_eq(list.rows[0].number, 0);
    req.token = "eve";
    ck_fails(ask_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_CONFLICT, err, "another token");
    reap_expired();
    ck_ok(ask_trials(s.db, NULL, &s.a, &req, &list, &err), err); /* the trial was queued again */
    ck_assert_int_eq(list.rows[0].number, 0);
    ck_assert_int_eq(list.rows[0].attempt, 2);
    struct ask_ref ref = ref_for("a", 0, "me");
    ref.token = "bob";
    ck_fails(complete(ref, OUTCOME_FAILED, &row), AS_E_DENIED, err, "another token");
    ref.token = "ada"; /* held it before: stale, and nothing of attempt 2 */
    ck_fails(complete(ref, OUTCOME_FAILED, &row), AS_E_STALE, err, "");
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_RUNNING);
    ref.token = "eve";
    ck_ok(complete(ref, OUTCOME_FAILED, &row), err);
}
END_TEST

START_TEST(limits_hold_and_the_end_is_told)
{
    make_learner(&s, "a", "'max_trials': 3, 'max_concurrent_trials': 2", "");
    ck_assert_uint_eq(ask(&s, "a", "me", 9).n, 2);
    struct suggestion_list list = ask(&s, "a", "you", 9);
    ck_assert_uint_eq(list.n, 0);
    ck_assert(!list.done && !list.is_preparing);
    tell(&s, "a", 0, "me", 1);
    ck_assert_uint_eq(ask(&s, "a", "you", 9).n, 1);
    tell(&s, "a", 1, "me", 1);
    list = ask(&s, "a", "me", 1);
    ck_assert(list.n == 0 && !list.done);
    tell(&s, "a", 2, "you", 1);
    list = ask(&s, "a", "me", 1);
    ck_assert(list.n == 0 && list.done);
    ck_assert_int_eq(list.state, SWEEP_FINISHING);
}
END_TEST

START_TEST(runners_never_get_a_sweep_without_trial)
{
    int64_t pending = -1;
    make_learner(&s, "a", "'max_trials': 3", "");
    int64_t e = make_runner(&s, "r", 4);
    ck_assert_uint_eq(claim(&s, "r", e, 4).n, 0);
    ck_ok(claims_pending(s.db, NULL, &pending, &err), err);
    ck_assert_int_eq(pending, 0);
    make_sweep(&s, "b", "'max_trials': 3", "");
    ck_assert_int_eq(ask_one(&s, "b", "me").number, 0); /* the other order is allowed */
    ck_assert_uint_eq(claim(&s, "r", e, 4).n, 2);
    /* a runner with the client's name is another holder */
    int64_t m = make_runner(&s, "me", 4);
    struct directive_list d;
    ck_ok(heartbeat(&s, "me", m, NULL, 0, &d, &err), err);
    ck_assert_int_eq(trial_of(&s, "b", 0).state, TRIAL_RUNNING);
}
END_TEST

START_TEST(leases_end)
{
    make_learner(&s, "a", "'max_trials': 5, 'max_restarts': 1", "");
    ask(&s, "a", "me", 2);
    struct reaper_report r = reap_expired();
    ck_assert_int_eq(r.clients_lost, 1);
    ck_assert_int_eq(r.attempts_lost, 2);
    struct trial_row row = trial_of(&s, "a", 0);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    ck_assert_int_eq(row.restarts, 1);
    ck_assert_ptr_nonnull(strstr(row.reason, "client me"));
    /* late, but no other attempt has begun: it counts */
    ck_assert_int_eq(tell(&s, "a", 0, "me", 2).state, TRIAL_COMPLETED);
    /* another client has it */
    ck_assert_int_eq(ask_one(&s, "a", "you").number, 1);
    ck_assert_int_eq(trial_of(&s, "a", 1).attempt, 2);
    struct ask_ref ref = ref_for("a", 1, "me");
    ck_fails(complete(ref, OUTCOME_COMPLETED, &row), AS_E_STALE, err, "not current");
    int64_t until = 0;
    ck_fails(ask_heartbeat(s.db, &ref, 0, &until, &err), AS_E_STALE, err, "another one does");
    /* no restart is left */
    reap_expired();
    ck_assert_int_eq(trial_of(&s, "a", 1).state, TRIAL_FAILED);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from client"), 0);
}
END_TEST

START_TEST(heartbeats_and_measurements_extend)
{
    make_learner(&s, "a", "'max_trials': 5", "");
    ask_one(&s, "a", "me");
    struct ask_ref ref = ref_for("a", 0, "me");
    const char *left = "select (extract(epoch from expires_at - now()) * 1000)::bigint from client";
    struct attempt_recorded got;
    int64_t until = 0;
    ck_ok(ask_heartbeat(s.db, &ref, 5000, &until, &err), err);
    ck_assert_int_lt(pg_fixture_i64(s.url, left), 5001);
    ck_fails(ask_heartbeat(s.db, &ref, 10, &until, &err), AS_E_INVAL, err, "/lease_ms");
    pg_fixture_exec(s.url, "update client set expires_at = now()");
    const struct measurement m = {3, "loss", 0.5};
    ck_ok(ask_measure(s.db, &s.a, &ref, &m, 1, &got, &err), err);
    ck_assert_int_eq(got.points, 1);
    ck_ok(ask_measure(s.db, &s.a, &ref, &m, 1, &got, &err), err);
    ck_assert_int_eq(got.points, 0);
    ck_assert_int_gt(pg_fixture_i64(s.url, left), 3000);
    struct trial_row row = tell(&s, "a", 0, "me", 0.25); /* after the step that was measured */
    ck_assert_int_eq(row.step, 4);
    ck_assert_double_eq(row.value, 0.25);
    ck_fails(ask_heartbeat(s.db, &ref, 0, &until, &err), AS_E_STALE, err, "it is completed");
    ck_fails(ask_measure(s.db, &s.a, &ref, &m, 1, &got, &err), AS_E_STALE, err, "completed");
    ref = ref_for("a", 0, "nobody");
    ck_fails(ask_measure(s.db, &s.a, &ref, &m, 1, &got, &err), AS_E_STALE, err, "does not hold");
    ref = ref_for("a", 9, "me");
    ck_fails(ask_measure(s.db, &s.a, &ref, &m, 1, &got, &err), AS_E_NOT_FOUND, err, "no trial 9");
    ask_one(&s, "a", "me");
    ref = ref_for("a", 1, "me");
    ref.attempt = 2;
    ck_fails(ask_measure(s.db, &s.a, &ref, &m, 1, &got, &err), AS_E_STALE, err,
             "holds attempt 1 of trial 1, not 2");
}
END_TEST

START_TEST(outcomes)
{
    struct trial_row row;
    make_learner(&s, "a", "'max_trials': 5, 'max_failed_trials': 4", "");
    ask(&s, "a", "me", 4);
    ck_ok(complete(ref_for("a", 0, "me"), OUTCOME_FAILED, &row), err);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_ok(complete(ref_for("a", 0, "me"), OUTCOME_FAILED, &row), err); /* a repeat */
    ck_fails(complete(ref_for("a", 0, "me"), OUTCOME_COMPLETED, &row), AS_E_STALE, err, "failed");
    ck_ok(complete(ref_for("a", 1, "me"), OUTCOME_RELEASED, &row), err);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    ck_assert_int_eq(row.restarts, 0);
    ck_assert_str_eq(row.reason, "it was handed back before its end");
    ck_assert_int_eq(tell(&s, "a", 2, "me", NAN).state, TRIAL_FAILED);
    ck_assert_str_eq(trial_of(&s, "a", 2).reason, "completed, but the metric 'loss' is NaN");
    ck_fails(complete(ref_for("a", 3, "me"), OUTCOME_COMPLETED, &row), AS_E_UNSUPPORTED, err,
             "the metric 'loss' was never reported");
    ck_assert_int_eq(trial_of(&s, "a", 3).state, TRIAL_RUNNING);
    ck_fails(complete(ref_for("a", 3, "me"), OUTCOME_TIMEOUT, &row), AS_E_INVAL, err, "/outcome");
    ck_assert_int_eq(ask_one(&s, "a", "you").number, 1);
}
END_TEST

START_TEST(requests_are_checked)
{
    struct suggestion_list list;
    char longer[80] = {0};
    memset(longer, 'x', 65);
    make_learner(&s, "a", "'max_trials': 5", "");
    struct ask_request req = {.sweep = "a", .client = "", .count = 1, .lease_ms = 1000};
    ck_fails(ask_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_INVAL, err, "/client");
    req.client = longer;
    ck_fails(ask_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_INVAL, err, "/client");
    static const char *const refused[] = {"a b", "-x", "\xc3\xa9", "a/b"}, *const fine[] = {
                                                                               "a", "9:b@c._-"};
    for (size_t i = 0; i < AS_ARRAY_LEN(refused); i++)
        ck_fails(ask_check_client(refused[i], &err), AS_E_INVAL, err, "/client: found");
    for (size_t i = 0; i < AS_ARRAY_LEN(fine); i++)
        ck_ok(ask_check_client(fine[i], &err), err);
    req.client = "c";
    req.count = 65;
    ck_fails(ask_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_INVAL, err, "/count");
    req.count = 1;
    req.lease_ms = 999;
    ck_fails(ask_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_INVAL, err, "/lease_ms");
    req.lease_ms = 1000;
    req.sweep = "none";
    ck_fails(ask_trials(s.db, NULL, &s.a, &req, &list, &err), AS_E_NOT_FOUND, err, "'none'");
}
END_TEST

START_TEST(pending_tells_what_is_worth_a_try)
{
    bool worth[3] = {false};
    make_learner(&s, "a", "'max_trials': 1", "");
    make_learner(&s, "b", "'max_trials': 2", "");
    const int64_t keys[] = {2, 1, 77};
    ask_one(&s, "a", "me");
    ck_ok(asks_pending(s.db, NULL, keys, 3, worth, &err), err);
    ck_assert(worth[0] && !worth[1] && worth[2]);
    tell(&s, "a", 0, "me", 1);
    ck_ok(asks_pending(s.db, NULL, keys, 3, worth, &err), err);
    ck_assert(worth[1]); /* it has ended */
    ck_ok(asks_pending(s.db, NULL, keys, 0, worth, &err), err);
}
END_TEST

/* `best` and the ensemble ignore infeasible trials. */
START_TEST(infeasible_trials_are_not_the_best)
{
    json_t *doc = json_of(
        "{'name': 'm', 'metrics': [{'name': 'loss', 'goal': 'minimize'}, {'name': 'size', 'goal': "
        "'minimize'}], 'constraints': [{'metric': 'ms', 'max': 20}], 'parameters': {'x': {'type': "
        "'float', 'min': 0, 'max': 1}}, 'search': {'method': 'random', 'seed': 1}, 'limits': "
        "{'max_trials': 9}}");
    static const double points[][3] = {{1, 5, 30}, {2, 6, 20}, {3, 1, 10}, {4, 7, 10}};
    struct sweep_row sweep;
    struct trial_row row;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &sweep, &err), err);
    json_decref(doc);
    ask(&s, "m", "c", 5);
    for (int i = 0; i < 4; i++) {
        const struct measurement m[] = {
            {-1, "loss", points[i][0]}, {-1, "size", points[i][1]}, {-1, "ms", points[i][2]}};
        const struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = m, .n_metrics = 3};
        struct ask_ref ref = ref_for("m", i, "c");
        ck_ok(ask_complete(s.db, &s.a, &ref, &c, &row, &err), err);
        ck_assert(row.has_feasible && row.feasible == (i > 0));
    }
    const struct measurement odd[] = {{-1, "loss", 1}, {-1, "ms", 1}, {-1, "size", INFINITY}};
    struct completion c = {.outcome = OUTCOME_COMPLETED, .metrics = odd, .n_metrics = 2};
    struct ask_ref last = ref_for("m", 4, "c");
    ck_fails(ask_complete(s.db, &s.a, &last, &c, &row, &err), AS_E_UNSUPPORTED, err, "'size'");
    ck_assert_str_eq(err.pointer, "/metrics/size");
    c.n_metrics = 3;
    ck_ok(ask_complete(s.db, &s.a, &last, &c, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_assert_ptr_nonnull(strstr(row.reason, "'size' is Infinity"));
    ck_assert_int_eq(sweep_of_id(&s, "m").best_number, 1);
    struct trial_page best;
    ck_ok(trial_best(s.db, &s.a, "m", 10, NULL, &best, &err), err);
    ck_assert_uint_eq(best.n, 3);
    struct pareto_row front;
    ck_ok(sweep_pareto(s.db, s.fronts, &s.a, "m", NULL, &front, &err), err);
    ck_assert_uint_eq(front.n, 2);
    ck_assert_int_eq(front.rows[0].number, 1);
    ck_assert_int_eq(front.rows[1].number, 2);
    ck_assert(front.has_reference && front.hypervolume > 0);
    ck_assert_str_eq(front.metrics[1], "size");
}
END_TEST

/* Eight clients, each with its own store as on eight servers, on two sweeps. */
#define CLIENTS 8

struct client {
    int id;
    int finished, failed;
};

static void *client_thread(void *p)
{
    struct client *me = p;
    struct service own = {0};
    struct as_err e = {0};
    char name[16];
    struct store_opts opts = {.url = s.url, .max_connections = 3};
    const struct suggester_opts sopts = {.threads = 1};
    struct suggester *sg = NULL;
    snprintf(name, sizeof name, "c%d", me->id);
    if (store_open(&opts, &own.db, &e) != AS_OK ||
        suggester_create(own.db, &sopts, &sg, &e) != AS_OK) {
        me->failed++;
        return NULL;
    }
    const char *sweep = me->id % 2 ? "a" : "b";
    struct suggestion_list list = {0};
    for (int round = 0; !list.done && me->failed == 0; round++) {
        struct ask_request req = {.sweep = sweep,
                                  .client = name,
                                  .count = 1 + round % 3,
                                  .lease_ms = 60000,
                                  .is_last = round % 2 == 0};
        if (ask_trials(own.db, sg, &own.a, &req, &list, &e) != AS_OK) {
            fprintf(stderr, "ask: %s\n", e.msg);
            me->failed++;
            break;
        }
        for (size_t i = 0; i < list.n; i++) {
            const struct ask_ref ref = ref_for(sweep, list.rows[i].number, name);
            const struct measurement m = {-1, "loss", (double)list.rows[i].number};
            const struct completion c = {
                .outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
            struct trial_row row;
            if (ask_complete(own.db, &own.a, &ref, &c, &row, &e) != AS_OK)
                me->failed++;
            else
                me->finished++;
        }
    }
    suggester_free(sg);
    service_close(&own);
    return NULL;
}

START_TEST(many_clients_get_each_trial_once)
{
    make_learner(&s, "a", "'max_trials': 40, 'max_concurrent_trials': 5", "");
    make_learner(&s, "b", "'max_trials': 30", "");
    struct client clients[CLIENTS] = {0};
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        clients[i].id = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, client_thread, &clients[i]), 0);
    }
    int finished = 0;
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(clients[i].failed, 0);
        finished += clients[i].finished;
    }
    ck_assert_int_eq(finished, 70);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_COMPLETED], 40);
    ck_assert_int_eq(sweep_of_id(&s, "b").counts.by_state[TRIAL_COMPLETED], 30);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select max(attempt) from trial"), 1);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("asks");
    TCase *c = service_case(su, "asks", &s, 100);
    tcase_add_test(c, a_client_gets_its_unfinished_trial_back);
    tcase_add_test(c, a_name_belongs_to_its_token);
    tcase_add_test(c, limits_hold_and_the_end_is_told);
    tcase_add_test(c, runners_never_get_a_sweep_without_trial);
    tcase_add_test(c, leases_end);
    tcase_add_test(c, heartbeats_and_measurements_extend);
    tcase_add_test(c, outcomes);
    tcase_add_test(c, requests_are_checked);
    tcase_add_test(c, pending_tells_what_is_worth_a_try);
    tcase_add_test(c, infeasible_trials_are_not_the_best);
    tcase_add_test(c, many_clients_get_each_trial_once);
    return su;
}
