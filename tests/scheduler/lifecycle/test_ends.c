/* Ends of sweeps and trials that are no failures: a target that is reached, a timeout whose values
 * count, a cancelled trial that keeps what it reported. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/services/sweep_change.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static int64_t epoch;

static void begin(void)
{
    err = (struct as_err){0};
    epoch = make_runner(&s, "r", 8);
}

static struct trial_row time_out(const struct claimed_row *c)
{
    struct attempt_ref ref = ref_of(c);
    struct completion f = {.outcome = OUTCOME_TIMEOUT, .reason = "still running"};
    struct trial_row row;
    ck_ok(attempt_complete(s.db, &s.a, &ref, NULL, &f, &row, &err), err);
    return row;
}

START_TEST(a_target_ends_the_sweep)
{
    begin();
    make_sweep(&s, "a", "'max_trials': 50, 'target': 0.25", "");
    struct claim_list l = claim(&s, "r", epoch, 3);
    ck_assert_uint_eq(l.n, 3);
    finish(&s, ref_of(&l.rows[0]), 0.3);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    /* a running trial that reports the target goes on until its end */
    measure(&s, ref_of(&l.rows[1]), "loss", 1, 0.2);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    finish(&s, ref_of(&l.rows[2]), 0.25); /* as good as the target */
    struct sweep_row w = sweep_of_id(&s, "a");
    ck_assert_int_eq(w.state, SWEEP_FINISHING); /* in the transaction of the completion */
    ck_assert_str_eq(w.reason, "trial 2 reached the target: loss is 0.25, target is 0.25");
    struct trial_row running = trial_of(&s, "a", 1);
    ck_assert_int_eq(running.state, TRIAL_CANCELLED);
    ck_assert(running.has_value && running.value == 0.2); /* it keeps what it reported */
    ck_assert_ptr_nonnull(strstr(running.reason, "reached the target"));
    ck_assert_uint_eq(claim(&s, "r", epoch, 3).n, 0);
    check_invariants(&s);
}
END_TEST

START_TEST(a_target_follows_the_goal_and_the_constraints)
{
    begin();
    json_t *doc = json_of(
        "{'name': 'a', 'metric': {'name': 'acc', 'goal': 'maximize'}, 'constraints': [{'metric': "
        "'ms', 'max': 10}], 'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, 'search': "
        "{'method': 'random'}, 'limits': {'max_trials': 9, 'target': 0.9}, 'trial': {'command': "
        "['true']}}");
    struct sweep_row w;
    struct trial_row row;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &w, &err), err);
    json_decref(doc);
    struct claim_list l = claim(&s, "r", epoch, 3);
    const double acc[] = {0.1, 0.99, 0.91}, ms[] = {1, 11, 10};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
        measure(&s, ref_of(&l.rows[i]), "acc", 0, acc[i]);
        measure(&s, ref_of(&l.rows[i]), "ms", 0, ms[i]);
        struct attempt_ref ref = ref_of(&l.rows[i]);
        struct completion f = {.outcome = OUTCOME_COMPLETED};
        ck_ok(attempt_complete(s.db, &s.a, &ref, NULL, &f, &row, &err), err);
    }
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FINISHING);
    ck_assert_ptr_nonnull(strstr(sweep_of_id(&s, "a").reason, "trial 2"));
}
END_TEST

static as_status change(const char *patch, struct sweep_changed *ret)
{
    struct sweep_patch p;
    json_t *j = json_of(patch);
    as_status st = sweep_patch_parse(j, &p, &err);
    if (st == AS_OK)
        st = sweep_change(s.db, &s.a, "a", &p, NULL, ret, &err);
    json_decref(j);
    return st;
}

START_TEST(a_target_is_set_moved_and_removed)
{
    struct sweep_changed got;
    begin();
    make_sweep(&s, "a", "'max_trials': 50", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    finish(&s, ref_of(&c), 0.5);
    ck_ok(change("{'limits': {'target': 0.6}}", &got), err); /* reached already */
    ck_assert_int_eq(got.sweep.state, SWEEP_FINISHING);
    ck_fails(change("{'state': 'running'}", &got), AS_E_CONFLICT, err, "target");
    ck_ok(change("{'limits': {'target': 0.4}}", &got), err);
    ck_assert_int_eq(got.sweep.state, SWEEP_RUNNING);
    ck_ok(change("{'limits': {'target': null}}", &got), err);
    ck_assert_ptr_null(strstr(got.sweep.document, "target"));
    ck_fails(change("{'limits': {'target': 'low'}}", &got), AS_E_INVAL, err, "/limits/target");
    check_invariants(&s);
}
END_TEST

START_TEST(a_timeout_fails_a_trial_by_default)
{
    begin();
    make_sweep(&s, "a", "'max_trials': 2, 'trial_timeout': 60", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&c), "loss", 3, 0.5);
    struct trial_row row = time_out(&c);
    ck_assert(row.state == TRIAL_FAILED && !row.timed_out);
}
END_TEST

START_TEST(a_timeout_may_count)
{
    begin();
    make_sweep(&s, "a", "'max_trials': 3, 'trial_timeout': 60, 'on_timeout': 'keep'", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&c), "loss", 3, 0.5);
    measure(&s, ref_of(&c), "loss", 4, 0.4);
    struct trial_row row = time_out(&c);
    ck_assert(row.state == TRIAL_COMPLETED && row.timed_out && row.feasible);
    ck_assert(row.has_value && row.value == 0.4);
    ck_assert_ptr_nonnull(strstr(row.reason, "trial_timeout"));
    row = time_out(&c); /* a repeat */
    ck_assert(row.state == TRIAL_COMPLETED && row.timed_out);
    ck_assert_int_eq(sweep_of_id(&s, "a").best_number, 0);

    c = claim_one(&s, "r", epoch); /* without a value it fails, and says why */
    row = time_out(&c);
    ck_assert(row.state == TRIAL_FAILED && !row.timed_out);
    ck_assert_str_eq(row.reason, "still running, and had reported no value of 'loss'");

    c = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&c), "loss", 1, NAN);
    row = time_out(&c);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_assert_ptr_nonnull(strstr(row.reason, "the metric 'loss' is"));
    check_invariants(&s);
}
END_TEST

START_TEST(the_server_keeps_what_a_runner_leaves_running)
{
    struct reaper_report r;
    begin();
    make_sweep(&s, "a", "'max_trials': 1, 'trial_timeout': 1, 'grace': 1, 'on_timeout': 'keep'",
               "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    measure(&s, ref_of(&c), "loss", 3, 0.5);
    pg_fixture_exec(s.url, "update trial set claimed_at = now() - interval '1 hour'");
    for (int i = 0; i < 100 && trial_of(&s, "a", 0).state == TRIAL_RUNNING; i++) {
        struct attempt_ref ref = ref_of(&c);
        struct directive_list d;
        ck_ok(heartbeat(&s, "r", epoch, &ref, 1, &d, &err), err);
        ck_ok(reaper_tick(&s.reaper, &r, &err), err);
        clock_sleep_ms(50);
    }
    struct trial_row row = trial_of(&s, "a", 0);
    ck_assert(row.state == TRIAL_COMPLETED && row.timed_out && row.value == 0.5);
}
END_TEST

START_TEST(a_cancelled_trial_keeps_its_values_and_the_search_does_not_learn_from_it)
{
    struct trial_row row;
    begin();
    make_sweep(&s, "a", "'max_trials': 2", "");
    struct claim_list l = claim(&s, "r", epoch, 2);
    measure(&s, ref_of(&l.rows[0]), "loss", 1, 0.01);
    finish(&s, ref_of(&l.rows[1]), 0.5);
    ck_ok(trial_cancel(s.db, &s.a, "a", 0, &row, &err), err);
    ck_assert(row.state == TRIAL_CANCELLED && row.has_value && row.value == 0.01);
    ck_assert_int_eq(sweep_of_id(&s, "a").best_number, 1);
}
END_TEST

/* More live trials than one set takes: each ends once, with its attempt and one event, in the order
 * of their numbers. */
START_TEST(a_cancelled_sweep_ends_all_its_live_trials)
{
    enum { TRIALS = 2300 };
    static const sweep_state cancelled = SWEEP_CANCELLED;
    struct sweep_changed changed;
    begin();
    make_sweep(&s, "a", "'max_trials': 3000", "");
    struct claim_list l = claim(&s, "r", epoch, 8);
    ck_assert_uint_eq(l.n, 8);
    finish(&s, ref_of(&l.rows[3]), 0.5);
    pg_fixture_exec(s.url, "insert into trial (sweep_key, number, state, params, suggestion, seed, "
                           "suggestion_index) select key, n, 'queued', '{\"x\": 0.5}', '{}', 1, n "
                           "from sweep, generate_series(8, 2299) n");
    int64_t before = pg_fixture_i64(s.url, "select max(id) from event_each");
    const struct sweep_patch patch = {.state = &cancelled};
    ck_ok(sweep_change(s.db, &s.a, "a", &patch, NULL, &changed, &err), err);
    ck_assert_int_eq(changed.sweep.counts.by_state[TRIAL_CANCELLED], TRIALS - 1);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from trial where state = 'cancelled' "
                                           "and finish_seq <> number + 1 + (number < 3)::int"),
                     0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from attempt where outcome = "
                                           "'cancelled' and ended_at is not null"),
                     7);
    char sql[300];
    snprintf(
        sql, sizeof sql,
        "select count(*) from (select number, row_number() over (order by id) as place from "
        "event_each where id > %lld and type = 'trial.changed' and state = 'cancelled') e where "
        "e.place = e.number + 1 + case when e.number > 3 then -1 else 0 end",
        (long long)before);
    ck_assert_int_eq(pg_fixture_i64(s.url, sql), TRIALS - 1);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/lifecycle/ends");
    TCase *t = service_case(suite, "ends", &s, 1000);
    tcase_add_test(t, a_target_ends_the_sweep);
    tcase_add_test(t, a_target_follows_the_goal_and_the_constraints);
    tcase_add_test(t, a_target_is_set_moved_and_removed);
    tcase_add_test(t, a_timeout_fails_a_trial_by_default);
    tcase_add_test(t, a_timeout_may_count);
    tcase_add_test(t, the_server_keeps_what_a_runner_leaves_running);
    tcase_add_test(t, a_cancelled_trial_keeps_its_values_and_the_search_does_not_learn_from_it);
    tcase_add_test(t, a_cancelled_sweep_ends_all_its_live_trials);
    return suite;
}
