/* Early stopping in the service: decisions with the measurements that reach a rung, directives,
 * pauses and promotions, what stands whatever an attempt does, and the end of a sweep. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/lifecycle/rungs.h"
#include "scheduler/services/trials.h"
#include "scheduler/store/table_store.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;
static int64_t epoch;

static void begin(void)
{
    err = (struct as_err){0};
    epoch = make_runner(&s, "r", 64);
}

/* A sweep of a command with rungs at 3, 9 and 27. mode: pause, stop. */
static const char *make_stopping(const char *name, const char *mode, const char *limits,
                                 const char *more)
{
    char text[2000];
    struct sweep_row row;
    snprintf(text, sizeof text,
             "{'name': '%s', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'parameters': {'x': "
             "{'type': 'float', 'min': 0, 'max': 1}}, 'search': {'method': 'random', 'seed': 7}, "
             "'limits': {%s}, 'trial': {'command': ['true', '${x}'], 'checkpoints': true}, "
             "'early_stopping': {'method': 'asha', 'min_steps': 3, 'max_steps': 27, 'eta': 3, "
             "'mode': '%s'}%s}",
             name, limits, mode, more);
    json_t *doc = json_of(text);
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    return row.id;
}

/* Report a loss; what is asked for. */
static directive_action report_at(struct attempt_ref ref, int64_t step, double loss,
                                  const char **ret_reason)
{
    const struct measurement m = {step, "loss", loss};
    struct attempt_recorded got;
    ck_ok(attempt_record(s.db, &s.a, &ref, NULL,
                         &(struct attempt_report){.points = &m, .n_points = 1}, &got, &err),
          err);
    if (ret_reason)
        *ret_reason = got.directive ? got.directive->reason : NULL;
    if (got.directive) {
        ck_assert_str_eq(got.directive->ref.sweep, ref.sweep);
        ck_assert_int_eq(got.directive->ref.number, ref.number);
        ck_assert_int_eq(got.directive->ref.attempt, ref.attempt);
    }
    return got.directive ? got.directive->action : DIRECTIVE_STOP;
}

#define ck_goes_on(ref, step, loss)                                                                \
    ck_assert_int_eq(report_at(ref, step, loss, NULL), DIRECTIVE_STOP)
#define ck_prunes(ref, step, loss)                                                                 \
    ck_assert_int_eq(report_at(ref, step, loss, NULL), DIRECTIVE_PRUNE)
#define ck_pauses(ref, step, loss)                                                                 \
    ck_assert_int_eq(report_at(ref, step, loss, NULL), DIRECTIVE_PAUSE)

static trial_state state_of(const char *sweep, int64_t number)
{
    return trial_of(&s, sweep, number).state;
}

static int64_t count(const char *sql)
{
    return pg_fixture_i64(s.url, sql);
}

/* The runner comes back without what it held. */
static void lose_all(void)
{
    epoch = make_runner(&s, "r", 64);
}

/* ---- stop ---- */

START_TEST(a_trial_that_is_behind_is_pruned)
{
    begin();
    make_stopping("a", "stop", "'max_trials': 4", "");
    struct claim_list l = claim(&s, "r", epoch, 4);
    const char *reason = NULL;
    ck_goes_on(ref_of(&l.rows[0]), 1, 0.9);
    ck_goes_on(ref_of(&l.rows[0]), 3, 0.5); /* the first one */
    ck_goes_on(ref_of(&l.rows[1]), 2, 0.9);
    ck_assert_int_eq(report_at(ref_of(&l.rows[1]), 3, 0.6, &reason), DIRECTIVE_PRUNE);
    ck_assert_ptr_nonnull(strstr(reason, "rank 2 of 2 at step 3"));
    ck_goes_on(ref_of(&l.rows[2]), 3, 0.4);
    /* it is repeated with each answer, and in heartbeats, until the attempt has ended */
    ck_prunes(ref_of(&l.rows[1]), 4, 0.1);
    struct directive_list d;
    const struct attempt_ref held[] = {ref_of(&l.rows[0]), ref_of(&l.rows[1]), ref_of(&l.rows[2]),
                                       ref_of(&l.rows[3])};
    ck_ok(heartbeat(&s, "r", epoch, held, 4, &d, &err), err);
    ck_assert_uint_eq(d.n, 1);
    ck_assert_int_eq(d.rows[0].action, DIRECTIVE_PRUNE);
    ck_assert_int_eq(d.rows[0].ref.number, 1);
    ck_assert_str_eq(d.rows[0].reason, reason);
    struct trial_row row = end(&s, ref_of(&l.rows[1]), OUTCOME_PRUNED);
    ck_assert_int_eq(row.state, TRIAL_PRUNED);
    ck_assert_str_eq(row.reason, reason);
    ck_assert_int_eq(row.restarts, 0);
    ck_ok(heartbeat(&s, "r", epoch, held, 4, &d, &err), err);
    ck_assert_uint_eq(d.n, 1); /* now it is not current */
    ck_assert_int_eq(d.rows[0].action, DIRECTIVE_STOP);
    ck_assert_int_eq(count("select count(*) from rung_result"), 3);
    ck_assert_int_eq(count("select finish_seq from sweep"), 4);
    ck_assert_int_eq(count("select count(*) from attempt where outcome = 'pruned' and reported = "
                           "'pruned'"),
                     1);
}
END_TEST

/* However the attempt ends, the decision stands; an attempt that is lost is not queued again. */
START_TEST(a_decision_stands)
{
    static const attempt_outcome outcomes[] = {OUTCOME_COMPLETED, OUTCOME_FAILED,  OUTCOME_RETRY,
                                               OUTCOME_RELEASED,  OUTCOME_TIMEOUT, OUTCOME_PAUSED};
    begin();
    make_stopping("a", "stop", "'max_trials': 9, 'max_restarts': 0, 'max_failed_trials': 0", "");
    struct claim_list l = claim(&s, "r", epoch, 9);
    ck_goes_on(ref_of(&l.rows[0]), 3, 0.1);
    for (size_t i = 0; i < AS_ARRAY_LEN(outcomes); i++) {
        struct attempt_ref ref = ref_of(&l.rows[i + 1]);
        ck_prunes(ref, 3, 0.5 + (double)i);
        struct trial_row row = end(&s, ref, outcomes[i]);
        ck_assert_msg(row.state == TRIAL_PRUNED, "outcome %zu: %s", i,
                      trial_state_format(row.state));
        ck_assert_int_eq(row.restarts, 0);
        row = end(&s, ref, outcomes[i]); /* a repeat */
        ck_assert_int_eq(row.state, TRIAL_PRUNED);
    }
    ck_assert_int_eq(count("select count(*) from attempt where outcome = 'pruned'"), 6);
    struct attempt_ref lost = ref_of(&l.rows[7]);
    ck_prunes(lost, 3, 20);
    lose_all();
    ck_assert_int_eq(state_of("a", 7), TRIAL_PRUNED);
    struct completion f = {.outcome = OUTCOME_COMPLETED};
    struct trial_row row;
    ck_fails(attempt_complete(s.db, &s.a, &lost, NULL, &f, &row, &err), AS_E_STALE, err,
             "the trial is pruned");
    ck_assert_int_eq(count("select count(*) from attempt where number = 7 and outcome = 'lost'"),
                     1);
}
END_TEST

START_TEST(nobody_pauses_by_himself)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 4", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    struct attempt_ref ref = ref_of(&c);
    struct completion f = {.outcome = OUTCOME_PAUSED};
    struct trial_row row;
    ck_fails(attempt_complete(s.db, &s.a, &ref, NULL, &f, &row, &err), AS_E_UNSUPPORTED, err,
             "not told to pause");
    ck_assert_str_eq(err.pointer, "/outcome");
    ck_assert_int_eq(end(&s, ref, OUTCOME_PRUNED).state, TRIAL_PRUNED); /* by a rule of its own */
    ck_assert_int_eq(count("select count(*) from rung_result"), 0);
}
END_TEST

/* ---- pause ---- */

START_TEST(the_best_one_is_promoted)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 3);
    ck_pauses(ref_of(&l.rows[0]), 3, 0.2);
    ck_assert_int_eq(state_of("a", 0), TRIAL_RUNNING); /* until its attempt has ended */
    ck_assert_int_eq(end(&s, ref_of(&l.rows[0]), OUTCOME_PAUSED).state, TRIAL_PAUSED);
    ck_pauses(ref_of(&l.rows[1]), 3, 0.1);
    /* three results, and one of them goes on: not this one, but one that still ends */
    ck_pauses(ref_of(&l.rows[2]), 3, 0.3);
    ck_assert_int_eq(state_of("a", 0), TRIAL_PAUSED);
    struct trial_row row = end(&s, ref_of(&l.rows[1]), OUTCOME_PAUSED);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    ck_assert_int_eq(row.restarts, 0);
    ck_assert_int_eq(end(&s, ref_of(&l.rows[2]), OUTCOME_PAUSED).state, TRIAL_PAUSED);
    /* it comes before new trials */
    l = claim(&s, "r", epoch, 4);
    ck_assert_uint_eq(l.n, 4);
    ck_assert_int_eq(l.rows[0].number, 1);
    ck_assert_int_eq(l.rows[0].attempt, 2);
    ck_assert_int_eq(l.rows[1].number, 3);
    ck_goes_on(ref_of(&l.rows[0]), 4, 0.1);
    ck_goes_on(ref_of(&l.rows[0]), 3, 0.1); /* it began anew: the rung was decided */
    ck_pauses(ref_of(&l.rows[0]), 9, 0.05);
    /* a fourth and a fifth result; with the sixth one more goes on */
    ck_pauses(ref_of(&l.rows[1]), 3, 0.5);
    ck_pauses(ref_of(&l.rows[2]), 3, 0.6);
    ck_assert_int_eq(state_of("a", 0), TRIAL_PAUSED);
    ck_pauses(ref_of(&l.rows[3]), 3, 0.7);
    ck_assert_int_eq(state_of("a", 0), TRIAL_QUEUED);
    row = trial_of(&s, "a", 0);
    ck_assert_ptr_nonnull(strstr(row.reason, "rank 2 of 6 at step 3"));
    ck_assert_int_eq(count("select n_promoted from sweep"), 2);
    ck_assert_int_eq(count("select count(*) from event_each where type = 'trial.rung'"), 7);
    ck_assert_int_eq(
        count("select count(*) from event_each where type = 'trial.changed' and state = "
              "'queued' and number = 0"),
        1);
}
END_TEST

/* The attempt of a trial of `a` ran from `from` to `to` seconds ago. */
static void set_times(int64_t number, int64_t attempt, int from, int to)
{
    char sql[500];
    snprintf(
        sql, sizeof sql,
        "update attempt set started_at = now() - interval '%d s', ended_at = case when ended_at "
        "is not null then now() - interval '%d s' end where number = %lld and attempt = %lld; "
        "update trial set started_at = (select min(started_at) from attempt x where x.number = "
        "trial.number), finished_at = case when finished_at is not null then now() - interval "
        "'%d s' end where number = %lld",
        from, to, (long long)number, (long long)attempt, to, (long long)number);
    pg_fixture_exec(s.url, sql);
}

static struct table_row table_row_of(int64_t number)
{
    struct table_row *rows = NULL;
    size_t n = 0;
    int64_t key = count("select key from sweep where id = 'a'");
    struct tx_run run = tx_run_start(s.db, TX_READ, &err);
    while (tx_run_again(&run))
        run.status = store_table_rows(run.tx, &s.a, key, number, number + 1, &rows, &n, &err);
    ck_ok(run.status, err);
    ck_assert_uint_eq(n, 1);
    return rows[0];
}

START_TEST(what_a_trial_waits_is_no_time_that_it_runs)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 3);
    ck_assert_int_eq(trial_ran_ms(&(struct trial_row){.ended_ran_ms = -1}), -1);
    ck_pauses(ref_of(&l.rows[0]), 3, 0.1);
    end(&s, ref_of(&l.rows[0]), OUTCOME_PAUSED);
    set_times(0, 1, 100, 90);
    struct trial_row row = trial_of(&s, "a", 0);
    ck_assert_int_eq(row.state, TRIAL_PAUSED);
    ck_assert_int_eq(trial_ran_ms(&row), 10000);
    ck_assert_int_eq(row.running_since_ms, 0);
    ck_assert_int_eq(table_row_of(0).ran_ms, 10000);
    ck_pauses(ref_of(&l.rows[1]), 3, 0.2);
    ck_pauses(ref_of(&l.rows[2]), 3, 0.3);
    end(&s, ref_of(&l.rows[1]), OUTCOME_PAUSED);
    end(&s, ref_of(&l.rows[2]), OUTCOME_PAUSED);
    l = claim(&s, "r", epoch, 2); /* trial 0 was promoted */
    ck_assert_int_eq(l.rows[0].number, 0);
    row = trial_of(&s, "a", 0);
    ck_assert_int_eq(trial_ran_ms(&row), 10000);
    ck_assert_int_ne(row.running_since_ms, 0);
    ck_assert_int_eq(table_row_of(0).running_since_ms, row.running_since_ms);
    ck_goes_on(ref_of(&l.rows[0]), 4, 0.1);
    end(&s, ref_of(&l.rows[0]), OUTCOME_COMPLETED);
    set_times(0, 2, 7, 2);
    row = trial_of(&s, "a", 0);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    ck_assert_int_eq(trial_ran_ms(&row), 15000);
    ck_assert_int_eq(row.running_since_ms, 0);
    ck_assert_int_eq(table_row_of(0).ran_ms, 15000);
    /* another one ran longer, in one attempt: its row says it */
    ck_goes_on(ref_of(&l.rows[1]), 1, 0.5);
    end(&s, ref_of(&l.rows[1]), OUTCOME_COMPLETED);
    set_times(l.rows[1].number, 1, 30, 10);
    row = trial_of(&s, "a", l.rows[1].number);
    ck_assert_int_eq(trial_ran_ms(&row), 20000);
    ck_assert_int_eq(table_row_of(l.rows[1].number).ran_ms, -1);
    struct trial_page page;
    const struct trial_query q = {.sort = TRIAL_BY_DURATION, .page = {.size = 2}};
    ck_ok(trial_list(s.db, s.orders, &s.a, "a", &q, &page, &err), err);
    ck_assert_int_eq(page.rows[0].number, 0);
    ck_assert_int_eq(page.rows[1].number, l.rows[1].number);
}
END_TEST

/* Trial 0 is told to pause at step 3, reports on up to `last` before it ends, with a checkpoint,
 * and is promoted, because two others are worse at step 3. Its next attempt. */
static struct claimed_row promoted_after(int64_t last)
{
    char sha[SHA256_HEX_SIZE];
    make_stopping("a", "pause", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 3);
    for (int64_t step = 3; step <= last; step++)
        ck_pauses(ref_of(&l.rows[0]), step, 0.1);
    end(&s, ref_of(&l.rows[0]), OUTCOME_PAUSED);
    put_blob(&s, "state", sha);
    pg_fixture_exec(s.url, "insert into trial_file (sweep_key, number, kind, path, size, sha256) "
                           "select 1, 0, 'checkpoint', 'c', 5, sha256 from blob");
    ck_pauses(ref_of(&l.rows[1]), 3, 0.2);
    ck_pauses(ref_of(&l.rows[2]), 3, 0.3);
    struct claimed_row c = claim_one(&s, "r", epoch);
    ck_assert_int_eq(c.number, 0);
    return c;
}

/* An attempt that was told to pause reports on until it ends, past the next rung too: that one
 * counts when the next attempt goes on after it. */
START_TEST(a_rung_that_a_pausing_attempt_passed_counts)
{
    begin();
    struct claimed_row c = promoted_after(11);
    ck_pauses(ref_of(&c), 12, 0.1);
    ck_assert_int_eq(count("select step from rung_result where number = 0 and rung = 1"), 9);
}
END_TEST

/* The same of an attempt that reported all its steps before it ended: the next one completes
 * without a report, and the trial has its results at all rungs, before its end in the order. */
START_TEST(rungs_that_a_pausing_attempt_passed_count_at_the_end)
{
    begin();
    struct claimed_row c = promoted_after(27);
    struct trial_row row = end(&s, ref_of(&c), OUTCOME_COMPLETED);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    ck_assert_int_eq(count("select count(*) from rung_result where number = 0 and decision = "
                           "'go_on' and reason = 'rank 1 of 1: it completed'"),
                     2);
    ck_assert_int_eq(
        count("select count(*) from rung_result r join trial t using (sweep_key, "
              "number) where number = 0 and r.rung > 0 and seq = finish_seq - 3 + r.rung"),
        2);
    ck_assert_int_eq(count("select rung from trial where number = 0"), 3);
    struct stopping_report r;
    ck_ok(sweep_stopping(s.db, &s.a, "a", &r, &err), err);
    ck_assert_ptr_null(r.warning);
}
END_TEST

/* A trial completes below the last rung: the sweep says so, although others wait. */
START_TEST(who_misses_the_last_rung_is_named)
{
    struct stopping_report r;
    begin();
    make_stopping("a", "pause", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 3);
    ck_pauses(ref_of(&l.rows[0]), 3, 0.2);
    ck_pauses(ref_of(&l.rows[1]), 3, 0.3);
    ck_goes_on(ref_of(&l.rows[2]), 3, 0.1);
    ck_ok(sweep_stopping(s.db, &s.a, "a", &r, &err), err);
    ck_assert_ptr_null(r.warning);
    ck_goes_on(ref_of(&l.rows[2]), 5, 0.1);
    end(&s, ref_of(&l.rows[2]), OUTCOME_COMPLETED);
    ck_ok(sweep_stopping(s.db, &s.a, "a", &r, &err), err);
    ck_assert_ptr_nonnull(r.warning);
    ck_assert_msg(strstr(r.warning, "of 1 that completed the furthest reported up to step 5"), "%s",
                  r.warning);
}
END_TEST

/* A trial that would be promoted at once does not wait. */
START_TEST(the_best_of_all_goes_on)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 3);
    ck_pauses(ref_of(&l.rows[0]), 3, 0.2);
    ck_pauses(ref_of(&l.rows[1]), 3, 0.3);
    ck_goes_on(ref_of(&l.rows[2]), 3, 0.1);
    ck_assert_int_eq(count("select n_promoted from sweep"), 0);
    ck_pauses(ref_of(&l.rows[2]), 9, 0.1);
    ck_assert_int_eq(count("select count(*) from rung_result where number = 2 and decision = "
                           "'go_on' and rank = 1 and among = 3"),
                     1);
}
END_TEST

START_TEST(what_is_lost_while_it_pauses_waits)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 9, 'max_restarts': 0", "");
    struct claim_list l = claim(&s, "r", epoch, 2);
    ck_pauses(ref_of(&l.rows[0]), 3, 0.2);
    ck_pauses(ref_of(&l.rows[1]), 3, 0.1);
    lose_all();
    ck_assert_int_eq(state_of("a", 0), TRIAL_PAUSED);
    ck_assert_int_eq(trial_of(&s, "a", 0).restarts, 0);
    /* the one that is promoted takes no late end of the attempt that was told to pause */
    epoch = make_runner(&s, "q", 8);
    struct claimed_row c = claim_one(&s, "q", epoch);
    ck_pauses(ref_of(&c), 3, 0.9);
    ck_assert_int_eq(state_of("a", 1), TRIAL_QUEUED);
    struct attempt_ref old = ref_of(&l.rows[1]);
    struct completion f = {.outcome = OUTCOME_COMPLETED};
    struct trial_row row;
    ck_fails(attempt_complete(s.db, &s.a, &old, NULL, &f, &row, &err), AS_E_STALE, err, "");
    const struct measurement m = {9, "loss", 0};
    int64_t n = 0;
    ck_fails(attempt_measure(s.db, &old, NULL, &m, 1, &n, &err), AS_E_STALE, err, "");
    ck_assert_int_eq(count("select count(*) from rung_result"), 3);
}
END_TEST

/* ---- which reports decide ---- */

START_TEST(repeats_and_late_reports_decide_nothing)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 2);
    struct attempt_ref ref = ref_of(&l.rows[0]);
    ck_pauses(ref, 3, 0.2);
    ck_pauses(ref, 3, 0.2);
    ck_pauses(ref, 3, 0.9); /* the recorded value stays */
    ck_assert_int_eq(count("select count(*) from rung_result where objectives = '{0.2}'"), 1);
    /* the other one is declared lost: its report is recorded, and decides nothing */
    lose_all();
    ck_assert_int_eq(state_of("a", 1), TRIAL_QUEUED);
    ck_goes_on(ref_of(&l.rows[1]), 3, 0.1);
    ck_assert_int_eq(count("select count(*) from rung_result"), 1);
    /* the next attempt reaches the rung; then the older one is stale */
    epoch = make_runner(&s, "q", 8);
    struct claimed_row c = claim_one(&s, "q", epoch);
    ck_assert_int_eq(c.number, 1);
    ck_pauses(ref_of(&c), 3, 0.5);
    const struct measurement m = {9, "loss", 0};
    int64_t n = 0;
    ref = ref_of(&l.rows[1]);
    ck_fails(attempt_measure(s.db, &ref, NULL, &m, 1, &n, &err), AS_E_STALE, err, "not current");
    ck_assert_int_eq(count("select count(*) from rung_result"), 2);
}
END_TEST

START_TEST(values_are_compared_at_the_step_of_the_rung)
{
    begin();
    make_stopping("a", "stop", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 5);
    /* out of order, and several steps in one report: each rung in turn */
    const struct measurement many[] = {
        {4, "loss", 0.4}, {2, "loss", 0.9}, {3, "loss", 0.5}, {9, "loss", 0.3}, {8, "loss", 0.1}};
    struct attempt_ref ref = ref_of(&l.rows[0]);
    struct attempt_recorded got;
    ck_ok(attempt_record(s.db, &s.a, &ref, NULL,
                         &(struct attempt_report){.points = many, .n_points = 5}, &got, &err),
          err);
    ck_assert_int_eq(got.points, 5);
    ck_assert_ptr_null(got.directive);
    ck_assert_int_eq(count("select count(*) from rung_result where number = 0"), 2);
    /* a rung that falls between two reports is missed, and later rungs count */
    ref = ref_of(&l.rows[1]);
    ck_goes_on(ref, 2, 0.9);
    ck_goes_on(ref, 4, 0.9);
    ck_assert_int_eq(count("select rung from trial where number = 1"), 0);
    ck_goes_on(ref, 8, 0.9);
    ck_assert_int_eq(count("select rung from trial where number = 1"), 1);
    ck_goes_on(ref, 10, 0.9);
    ck_assert_int_eq(count("select rung from trial where number = 1"), 1);
    ck_goes_on(ref, 27, 0.9);
    ck_goes_on(ref, 28, 0.9);
    ck_assert_int_eq(count("select count(*) from rung_result where number = 1 and rung = 2"), 1);
    /* NaN is worst */
    ck_prunes(ref_of(&l.rows[2]), 3, NAN);
    ck_assert_int_eq(count("select count(*) from rung_result where number = 2 and objectives = "
                           "'{NaN}' and rank = 2 and among = 2"),
                     1);
    /* a point at the rung that comes after those of the next one is too late */
    ck_goes_on(ref_of(&l.rows[3]), 9, 0.2);
    ck_goes_on(ref_of(&l.rows[3]), 3, 0.1);
    ck_assert_int_eq(count("select count(*) from rung_result where number = 3"), 1);
}
END_TEST

/* Report one value of any metric. */
static void report_metric(struct attempt_ref ref, const char *metric, int64_t step, double value)
{
    const struct measurement m = {step, metric, value};
    struct attempt_recorded got;
    ck_ok(attempt_record(s.db, &s.a, &ref, NULL,
                         &(struct attempt_report){.points = &m, .n_points = 1}, &got, &err),
          err);
}

/* What is compared may come behind other metrics: they pass over no rung. */
START_TEST(other_metrics_miss_no_rung)
{
    begin();
    make_stopping("a", "stop", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 2);
    struct attempt_ref ref = ref_of(&l.rows[0]);
    for (int64_t step = 1; step <= 27 + 7; step++) {
        report_metric(ref, "train_loss", step, 0.5);
        if (step > 7)
            report_metric(ref, "loss", step - 7, 0.5);
    }
    ck_assert_int_eq(count("select count(*) from rung_result where number = 0 and step in (3, 9, "
                           "27)"),
                     3);
}
END_TEST

/* The first report past a rung counts. */
static void make_late(const char *name, const char *metrics)
{
    char text[1000];
    struct sweep_row row;
    (void)snprintf(text, sizeof text,
                   "{'name': '%s', %s, 'parameters': {'x': {'type': 'float', 'min': 0, 'max': "
                   "1}}, 'search': {'method': 'random', 'seed': 7}, 'limits': {'max_trials': 4}, "
                   "'trial': {'command': ['true', '${x}']}, 'early_stopping': {'method': 'asha', "
                   "'min_steps': 3, 'max_steps': 27, 'eta': 3, 'late': true}}",
                   name, metrics);
    json_t *doc = json_of(text);
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
}

START_TEST(a_late_report_counts_if_the_document_says_so)
{
    begin();
    make_late("a", "'metric': {'name': 'loss', 'goal': 'minimize'}");
    struct claim_list l = claim(&s, "r", epoch, 3);
    ck_goes_on(ref_of(&l.rows[0]), 5, 0.5);
    ck_prunes(ref_of(&l.rows[1]), 4, 0.6);
    ck_assert_int_eq(count("select step from rung_result where number = 1"), 4);
    ck_goes_on(ref_of(&l.rows[0]), 30, 0.5);
    ck_assert_int_eq(count("select rung from rung_result where step = 30"), 2);
    /* the metrics of a step in lines of their own, the one that is compared last */
    report_metric(ref_of(&l.rows[2]), "acc", 4, 0.5);
    report_metric(ref_of(&l.rows[2]), "loss", 4, 0.7);
    ck_assert_int_eq(count("select step from rung_result where number = 2"), 4);
}
END_TEST

/* Of several metrics that are compared each has its line. */
START_TEST(late_values_may_come_line_by_line)
{
    begin();
    make_late("a", "'metrics': [{'name': 'loss', 'goal': 'minimize'}, {'name': 'acc', 'goal': "
                   "'maximize'}]");
    struct claim_list l = claim(&s, "r", epoch, 1);
    report_metric(ref_of(&l.rows[0]), "acc", 4, 0.5);
    ck_assert_int_eq(count("select count(*) from rung_result"), 0);
    report_metric(ref_of(&l.rows[0]), "loss", 4, 0.7);
    ck_assert_int_eq(count("select count(*) from rung_result where step = 4 and objectives = "
                           "'{0.7,0.5}'"),
                     1);
}
END_TEST

/* How many results follow from a report of `metric` at step 9, a rung, by a trial that has passed
 * rung 3. best_step: the step that the report repeats; -1: it repeats none. */
static size_t results_at_9(const char *trial, const char *metric, double best_step)
{
    char text[1000];
    struct sweep_doc *doc = NULL;
    struct rung_board *board = NULL;
    snprintf(
        text, sizeof text,
        "{'name': 'a', 'metric': {'name': '%s', 'goal': 'minimize'}, 'parameters': {'x': "
        "{'type': 'float', 'min': 0, 'max': 1}}, 'limits': {'max_trials': 4}, 'trial': {%s}, "
        "'early_stopping': {'method': 'asha', 'min_steps': 3, 'max_steps': 27, 'mode': 'stop'}}",
        metric, trial);
    json_t *tree = json_of(text);
    ck_ok(sweep_doc_parse(tree, 0, &doc, &err), err);
    ck_ok(rung_board_create(doc, &board, &err), err);
    const struct measurement points[] = {{9, metric, 0.5}, {9, "best_step", best_step}};
    struct sweep_head sweep = {.id = "a"};
    const struct trial_head head = {.attempt = 1};
    const struct rung_report r = {.sweep = &sweep,
                                  .trial = &head,
                                  .board = board,
                                  .points = points,
                                  .n = best_step < 0 ? 1 : 2};
    struct rung_place at = {.rung = 1};
    struct rung_planned p = {0};
    int64_t seq = 0;
    ck_ok(rungs_plan(&s.a, &r, &at, &seq, &p, &err), err);
    ck_assert_int_eq(seq, (int64_t)p.changes.n_results);
    ck_assert_int_eq(at.rung, 1 + seq);
    rung_board_free(board);
    sweep_doc_free(doc);
    json_decref(tree);
    return p.changes.n_results;
}

/* The last line of patience repeats an earlier report one step later. A program's own metric of
 * that name says nothing. */
START_TEST(a_repeated_report_is_no_result)
{
    static const char train[] = "'train': {'dataset': 'd', 'epochs': 27, 'patience': 2}";
    static const char command[] = "'command': ['true']";
    err = (struct as_err){0};
    ck_assert_uint_eq(results_at_9(train, "val_error", -1), 1);
    ck_assert_uint_eq(results_at_9(train, "val_error", 6), 0);
    ck_assert_uint_eq(results_at_9(command, "loss", -1), 1);
    ck_assert_uint_eq(results_at_9(command, "loss", 6), 1);
}
END_TEST

START_TEST(all_metrics_that_are_compared_must_be_there)
{
    struct sweep_row row;
    begin();
    json_t *doc = json_of(
        "{'name': 'a', 'metrics': [{'name': 'loss', 'goal': 'minimize'}, {'name': 'acc', 'goal': "
        "'maximize'}], 'constraints': [{'metric': 'ms', 'max': 10}], 'parameters': {'x': {'type': "
        "'float', 'min': 0, 'max': 1}}, 'search': {'method': 'random', 'seed': 7}, 'limits': "
        "{'max_trials': 4}, 'trial': {'command': ['true', '${x}']}, 'early_stopping': {'method': "
        "'asha', 'min_steps': 3, 'max_steps': 27, 'eta': 3}}");
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    struct claim_list l = claim(&s, "r", epoch, 3);
    measure(&s, ref_of(&l.rows[0]), "loss", 3, 0.5);
    ck_assert_int_eq(count("select count(*) from rung_result"), 0);
    measure(&s, ref_of(&l.rows[0]), "ms", 3, 11);
    ck_assert_int_eq(count("select count(*) from rung_result"), 0);
    measure(&s, ref_of(&l.rows[0]), "acc", 3, 0.75);
    ck_assert_int_eq(
        count("select count(*) from rung_result where objectives = '{0.5,0.75}' and not feasible"),
        1);
    measure(&s, ref_of(&l.rows[1]), "acc", 3, 0.5);
    measure(&s, ref_of(&l.rows[1]), "loss", 3, 0.5); /* feasible ones come first */
    ck_assert_int_eq(
        count("select rank from rung_result where number = 1 and feasible and among = 2"), 1);
}
END_TEST

/* The last values of a completion reach the last rung; who completes goes on. */
START_TEST(last_values_reach_rungs)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 4", "");
    struct claim_list l = claim(&s, "r", epoch, 2);
    struct attempt_ref ref = ref_of(&l.rows[0]);
    const struct measurement last = {3, "loss", 0.5};
    struct completion f = {.outcome = OUTCOME_COMPLETED, .metrics = &last, .n_metrics = 1};
    struct trial_row row;
    ck_ok(attempt_complete(s.db, &s.a, &ref, NULL, &f, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    ck_assert_int_eq(row.finish_seq, 2); /* the rung comes first */
    ck_assert_int_eq(count("select count(*) from rung_result where decision = 'go_on' and seq = "
                           "1"),
                     1);
    /* the one that was told to pause keeps that */
    ref = ref_of(&l.rows[1]);
    ck_pauses(ref, 3, 0.7);
    const struct measurement more = {9, "loss", 0.5};
    f.metrics = &more;
    ck_ok(attempt_complete(s.db, &s.a, &ref, NULL, &f, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_PAUSED);
    ck_assert_int_eq(count("select count(*) from rung_result"), 2);
}
END_TEST

/* ---- clients ---- */

START_TEST(clients_are_told_too)
{
    struct sweep_row row;
    struct attempt_recorded got;
    struct trial_row trial;
    begin();
    json_t *doc = json_of(
        "{'name': 'a', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'parameters': {'x': "
        "{'type': 'float', 'min': 0, 'max': 1}}, 'search': {'method': 'random', 'seed': 7}, "
        "'limits': {'max_trials': 4}, 'early_stopping': {'method': 'asha', 'min_steps': 3, "
        "'max_steps': 27, 'eta': 3}}");
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    struct suggestion_list asked = ask(&s, "a", "me", 2);
    ck_assert_uint_eq(asked.n, 2);
    for (int64_t i = 0; i < 2; i++) {
        const struct ask_ref ref = {.sweep = "a", .number = i, .client = "me"};
        const struct measurement m = {3, "loss", 0.5 + (double)i};
        ck_ok(ask_measure(s.db, &s.a, &ref, &m, 1, &got, &err), err);
        ck_assert((i == 1) == (got.directive != NULL));
    }
    ck_assert_int_eq(got.directive->action, DIRECTIVE_PRUNE);
    const struct ask_ref told = {.sweep = "a", .number = 1, .client = "me"};
    struct completion f = {.outcome = OUTCOME_PRUNED};
    ck_ok(ask_complete(s.db, &s.a, &told, &f, &trial, &err), err);
    ck_assert_int_eq(trial.state, TRIAL_PRUNED);
    f.outcome = OUTCOME_TIMEOUT;
    ck_fails(ask_complete(s.db, &s.a, &told, &f, &trial, &err), AS_E_INVAL, err, "pruned");
}
END_TEST

/* Who had to be killed did not obey, whatever its runner made of the end. */
START_TEST(who_is_killed_did_not_obey)
{
    static const int64_t codes[] = {0, 1, -15, -9};
    begin();
    make_stopping("a", "stop", "'max_trials': 5", "");
    struct claim_list l = claim(&s, "r", epoch, 5);
    ck_goes_on(ref_of(&l.rows[0]), 3, 0.1);
    for (size_t i = 0; i < AS_ARRAY_LEN(codes); i++) {
        struct attempt_ref ref = ref_of(&l.rows[i + 1]);
        const struct completion f = {
            .outcome = OUTCOME_PRUNED, .has_exit_code = true, .exit_code = (int)codes[i]};
        struct trial_row row;
        ck_prunes(ref, 3, 0.5);
        ck_ok(attempt_complete(s.db, &s.a, &ref, NULL, &f, &row, &err), err);
    }
    struct stopping_report r;
    ck_ok(sweep_stopping(s.db, &s.a, "a", &r, &err), err);
    ck_assert_int_eq(r.rungs[0].stopped, 4);
    ck_assert_int_eq(r.rungs[0].obeyed, 3);
    ck_assert_int_eq(r.rungs[0].disobeyed, 1);
}
END_TEST

/* ---- the end of a sweep ---- */

/* Run whatever the sweep hands out, each to its next decision; the loss is that of the number. */
static void run_all(const char *sweep)
{
    static const int64_t steps[] = {3, 9, 27};
    for (int round = 0; round < 100; round++) {
        struct claim_list l = claim(&s, "r", epoch, 8);
        if (l.n == 0)
            return;
        for (size_t i = 0; i < l.n; i++) {
            struct attempt_ref ref = ref_of(&l.rows[i]);
            char sql[200];
            snprintf(sql, sizeof sql,
                     "select rung from trial t join sweep s on s.key = t.sweep_key where s.id = "
                     "'%s' and number = %d",
                     sweep, (int)ref.number);
            directive_action told = DIRECTIVE_STOP;
            for (int64_t k = count(sql); k < 3 && told == DIRECTIVE_STOP; k++)
                told = report_at(ref, steps[k], 1 + (double)ref.number / 10, NULL);
            end(&s, ref, told == DIRECTIVE_STOP ? OUTCOME_COMPLETED : OUTCOME_PAUSED);
        }
    }
    ck_abort_msg("the sweep does not end");
}

START_TEST(a_sweep_ends_when_nobody_can_be_promoted)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 7", "");
    run_all("a");
    struct sweep_row w = sweep_of_id(&s, "a");
    ck_assert_int_eq(w.state, SWEEP_FINISHING);
    ck_assert_int_ge(w.counts.by_state[TRIAL_COMPLETED], 1); /* some trial runs to its end */
    ck_assert_int_eq(w.counts.by_state[TRIAL_PAUSED], 0);
    ck_assert_int_eq(w.counts.by_state[TRIAL_COMPLETED] + w.counts.by_state[TRIAL_PRUNED], 7);
    ck_assert_int_eq(w.counts.by_state[TRIAL_CANCELLED], 0);
    struct trial_row row = trial_of(&s, "a", 6);
    ck_assert_int_eq(row.state, TRIAL_PRUNED);
    ck_assert_ptr_nonnull(strstr(row.reason, "it was not promoted before the sweep ended: "));
    reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
}
END_TEST

/* The trial that went on to the end fails there, and so does the next: the sweep ends with one that
 * completed, and not with others that wait. */
START_TEST(one_completes_though_the_best_fail)
{
    static const int64_t steps[] = {3, 9, 27};
    begin();
    make_stopping("a", "pause", "'max_trials': 7", "");
    for (int failures = 0;;) {
        struct claim_list l = claim(&s, "r", epoch, 8);
        if (l.n == 0)
            break;
        for (size_t i = 0; i < l.n; i++) {
            struct attempt_ref ref = ref_of(&l.rows[i]);
            char sql[100];
            snprintf(sql, sizeof sql, "select rung from trial where number = %d", (int)ref.number);
            directive_action told = DIRECTIVE_STOP;
            for (int64_t k = count(sql); k < 3 && told == DIRECTIVE_STOP; k++)
                told = report_at(ref, steps[k], 1 + (double)ref.number / 10, NULL);
            bool fails = told == DIRECTIVE_STOP && failures++ < 2;
            end(&s, ref,
                fails                    ? OUTCOME_FAILED
                : told == DIRECTIVE_STOP ? OUTCOME_COMPLETED
                                         : OUTCOME_PAUSED);
        }
    }
    struct sweep_row w = sweep_of_id(&s, "a");
    ck_assert_int_eq(w.counts.by_state[TRIAL_FAILED], 2);
    ck_assert_int_eq(w.counts.by_state[TRIAL_COMPLETED], 1);
    ck_assert_int_eq(w.counts.by_state[TRIAL_PRUNED], 4);
    struct stopping_report r;
    ck_ok(sweep_stopping(s.db, &s.a, "a", &r, &err), err);
    int64_t stopped = 0;
    for (size_t i = 0; i < r.n_rungs; i++)
        stopped += r.rungs[i].stopped;
    ck_assert_int_eq(stopped, 4); /* where each of them waited */
    reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED);
}
END_TEST

START_TEST(what_waits_at_the_end_is_pruned)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 9, 'target': 0.25", "");
    struct claim_list l = claim(&s, "r", epoch, 4);
    ck_pauses(ref_of(&l.rows[0]), 3, 0.7);
    end(&s, ref_of(&l.rows[0]), OUTCOME_PAUSED);
    ck_pauses(ref_of(&l.rows[1]), 3, 0.8); /* its attempt does not end */
    finish(&s, ref_of(&l.rows[2]), 0.2);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FINISHING);
    ck_assert_int_eq(state_of("a", 0), TRIAL_PRUNED);
    ck_assert_int_eq(state_of("a", 1), TRIAL_PRUNED);
    ck_assert_int_eq(state_of("a", 3), TRIAL_CANCELLED);
    /* a user who cancels wants no end of that kind */
    make_stopping("b", "pause", "'max_trials': 9", "");
    l = claim(&s, "r", epoch, 1);
    ck_pauses(ref_of(&l.rows[0]), 3, 0.7);
    end(&s, ref_of(&l.rows[0]), OUTCOME_PAUSED);
    const sweep_state cancelled = SWEEP_CANCELLED;
    struct sweep_changed w;
    ck_ok(sweep_change(s.db, &s.a, "b", &(struct sweep_patch){.state = &cancelled}, NULL, &w, &err),
          err);
    ck_assert_int_eq(state_of("b", 0), TRIAL_CANCELLED);
}
END_TEST

START_TEST(a_trial_that_waited_can_be_tried_again)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 4);
    ck_pauses(ref_of(&l.rows[0]), 3, 0.1);
    end(&s, ref_of(&l.rows[0]), OUTCOME_PAUSED);
    struct trial_row row;
    ck_ok(trial_cancel(s.db, &s.a, "a", 0, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_CANCELLED);
    ck_pauses(ref_of(&l.rows[1]), 3, 0.2);
    ck_pauses(ref_of(&l.rows[2]), 3, 0.3); /* the best one waits no longer */
    ck_assert_int_eq(count("select n_promoted from sweep"), 0);
    ck_ok(trial_retry(s.db, &s.a, "a", 0, NULL, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    struct claimed_row c = claim_one(&s, "r", epoch);
    ck_assert_int_eq(c.number, 0);
    ck_pauses(ref_of(&c), 9, 0.1); /* it was past the lowest rung */
}
END_TEST

/* A trial that was promoted is live: at the end of the sweep it is cancelled, whether it is queued
 * or its attempt still ends. Those that wait are pruned. */
START_TEST(who_was_promoted_does_not_hold_the_end)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 9, 'max_steps': 18", "");
    struct claim_list l = claim(&s, "r", epoch, 6);
    for (size_t i = 0; i < 6; i++)
        ck_pauses(ref_of(&l.rows[i]), 3, (double)i / 10);
    ck_assert_int_eq(count("select count(*) from trial where decision = 'resume'"), 2);
    for (size_t i = 0; i < 6; i++) {
        ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
        end(&s, ref_of(&l.rows[i]), OUTCOME_PAUSED); /* two of them into the queue */
    }
    /* no step is left for them */
    ck_assert_str_eq(sweep_of_id(&s, "a").reason, "max_steps are spent");
    ck_assert_int_eq(state_of("a", 0), TRIAL_CANCELLED);
    ck_assert_int_eq(state_of("a", 1), TRIAL_CANCELLED);
    ck_assert_int_eq(state_of("a", 2), TRIAL_PRUNED);
}
END_TEST

/* What running trials take to their next rungs is taken from the budget when they begin, and at
 * each rung: nine trials begin with 27 of 31 steps, and the first that would go on ends. */
START_TEST(a_budget_of_steps_is_never_exceeded)
{
    const char *reason = NULL;
    begin();
    make_stopping("a", "stop", "'max_trials': 9, 'max_steps': 31", "");
    struct claim_list l = claim(&s, "r", epoch, 9);
    ck_assert_uint_eq(l.n, 9); /* 27 steps to their first rungs */
    ck_assert_int_eq(count("select steps_left(key) from sweep"), 4);
    ck_assert_int_eq(count("select steps_room(key) from sweep"), 0); /* no trial is left */
    ck_assert_int_eq(report_at(ref_of(&l.rows[0]), 3, 0.5, &reason), DIRECTIVE_PRUNE);
    ck_assert_str_eq(reason, "max_steps leaves 4 steps: its next rung is 6 away");
    ck_assert_int_eq(count("select count(*) from rung_result where decision = 'go_on'"), 1);
    ck_assert_int_eq(end(&s, ref_of(&l.rows[0]), OUTCOME_PRUNED).state, TRIAL_PRUNED);
    /* one that ends before its rung gives its steps back */
    finish(&s, ref_of(&l.rows[1]), 0.9);
    ck_assert_int_eq(count("select steps_left(key) from sweep"), 6);
    ck_goes_on(ref_of(&l.rows[2]), 3, 0.4);
    ck_assert_int_eq(count("select steps_left(key) from sweep"), 0);
    lose_all(); /* another attempt of those that ran begins with what theirs had */
    l = claim(&s, "r", epoch, 9);
    ck_assert_uint_eq(l.n, 7);
    ck_assert_int_eq(count("select steps_left(key) from sweep"), 0);
    ck_assert_int_eq(report_at(ref_of(&l.rows[0]), 9, 0.3, &reason), DIRECTIVE_PRUNE);
    ck_assert_str_eq(reason, "max_steps leaves 0 steps: its next rung is 18 away");
    ck_assert_int_eq(count("select count(*) from sweep where steps_spent <= max_steps"), 1);
}
END_TEST

START_TEST(a_budget_of_steps_ends_the_sweep)
{
    begin();
    make_stopping("a", "stop", "'max_trials': 9, 'max_steps': 32", "");
    struct claimed_row c = claim_one(&s, "r", epoch);
    for (int64_t step = 1; step <= 26; step++)
        ck_goes_on(ref_of(&c), step, 0.5);
    ck_assert_int_eq(count("select steps_spent from sweep"), 9);
    ck_assert_int_eq(count("select steps_left(key) from sweep"), 5);
    ck_assert_int_eq(count("select steps_room(key) from sweep"), 1);
    ck_assert_uint_eq(claim(&s, "r", epoch, 9).n, 1); /* 27 + 3 of 32 */
    ck_goes_on(ref_of(&c), 27, 0.5);
    finish(&s, ref_of(&c), 0.5);
    ck_assert_int_eq(count("select steps_spent from sweep"), 27);
    ck_assert_uint_eq(claim(&s, "r", epoch, 9).n, 0);
    reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING); /* trial 1 goes on */
    ck_prunes(((struct attempt_ref){"a", 1, 1}), 3, 0.4);
    end(&s, (struct attempt_ref){"a", 1, 1}, OUTCOME_PRUNED);
    struct sweep_row w = sweep_of_id(&s, "a");
    ck_assert_int_ne(w.state, SWEEP_RUNNING);
    ck_assert_str_eq(w.reason, "max_steps are spent");
    ck_assert_int_eq(count("select n_total from sweep"), 2);
    ck_assert_int_eq(count("select steps_spent from sweep"), 30);
}
END_TEST

/* A sweep that cannot begin a trial ends also where none has ended: its limit was lowered. */
START_TEST(a_budget_that_is_lowered_ends_the_sweep)
{
    begin();
    make_stopping("a", "stop", "'max_trials': 9, 'max_steps': 32", "");
    struct sweep_changed w;
    JSON_AUTO limits = json_pack("{s:i}", "max_steps", 5);
    struct claimed_row c = claim_one(&s, "r", epoch);
    ck_goes_on(ref_of(&c), 3, 0.5);
    end(&s, ref_of(&c), OUTCOME_FAILED);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    ck_ok(sweep_change(s.db, &s.a, "a", &(struct sweep_patch){.limits = limits}, NULL, &w, &err),
          err);
    ck_assert_str_eq(sweep_of_id(&s, "a").reason, "max_steps are spent");
}
END_TEST

/* Of at most nine trials three go on from the first rung: whoever is behind four others is
 * pruned while the sweep runs. */
START_TEST(who_cannot_be_promoted_waits_no_longer)
{
    begin();
    make_stopping("a", "pause", "'max_trials': 9", "");
    struct claim_list l = claim(&s, "r", epoch, 6);
    for (size_t i = 0; i < 5; i++) {
        (void)report_at(ref_of(&l.rows[i]), 3, 0.1 * (double)(i + 1), NULL);
        end(&s, ref_of(&l.rows[i]), OUTCOME_PAUSED);
    }
    ck_assert_int_eq(state_of("a", 0), TRIAL_QUEUED); /* promoted with the third result */
    ck_assert_int_eq(state_of("a", 4), TRIAL_PAUSED);
    ck_assert_int_eq(reap(&s).hopeless, 0); /* all that are better may fail, and none completed */
    finish(&s, ref_of(&l.rows[5]), 0.9);
    ck_assert_int_eq(reap(&s).hopeless, 2);
    ck_assert_int_eq(state_of("a", 2), TRIAL_PAUSED);
    ck_assert_int_eq(state_of("a", 3), TRIAL_PRUNED);
    ck_assert_int_eq(state_of("a", 4), TRIAL_PRUNED);
    ck_assert_ptr_nonnull(strstr(trial_of(&s, "a", 4).reason, "no promotion can reach it"));
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
}
END_TEST

/* Early stopping that compares nothing says so; strict: the sweep fails. */
START_TEST(nothing_is_never_silent)
{
    static const char *const more[] = {"", ", 'strict': true"};
    begin();
    for (int i = 0; i < 2; i++) {
        char text[1000];
        struct stopping_report r;
        struct sweep_row row;
        (void)snprintf(text, sizeof text,
                       "{'name': '%c', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                       "'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, 'search': "
                       "{'method': 'random', 'seed': 7}, 'limits': {'max_trials': 4}, 'trial': "
                       "{'command': ['true', '${x}']}, 'early_stopping': {'method': 'asha', "
                       "'min_steps': 3, 'max_steps': 27, 'eta': 3%s}}",
                       'a' + i, more[i]);
        json_t *doc = json_of(text);
        ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
        json_decref(doc);
        ck_ok(sweep_stopping(s.db, &s.a, row.id, &r, &err), err);
        ck_assert(r.is_there && r.n_rungs == 3 && r.steps[2] == 27);
        ck_assert_ptr_null(r.warning);
        struct claimed_row c = claim_one(&s, "r", epoch);
        ck_assert_str_eq(c.sweep, row.id);
        measure(&s, ref_of(&c), "loss", 5, 0.5);
        finish(&s, ref_of(&c), 0.25); /* at step 1 */
        ck_ok(sweep_stopping(s.db, &s.a, row.id, &r, &err), err);
        ck_assert_ptr_nonnull(r.warning);
        ck_assert_msg(strstr(r.warning, "1, 5") != NULL, "%s", r.warning);
        row = sweep_of_id(&s, row.id);
        ck_assert_int_eq(row.state, i == 0 ? SWEEP_RUNNING : SWEEP_FAILED);
        if (i == 1)
            ck_assert_str_eq(row.reason, r.warning);
        const sweep_state cancelled = SWEEP_CANCELLED;
        struct sweep_changed w;
        if (i == 0)
            ck_ok(sweep_change(s.db, &s.a, row.id, &(struct sweep_patch){.state = &cancelled}, NULL,
                               &w, &err),
                  err);
    }
}
END_TEST

/* At the last rung nobody is compared: a trial that reports there alone is as one that reports at
 * no rung. A result below it, of any trial, is enough. */
START_TEST(the_last_rung_alone_is_nothing)
{
    static const int64_t steps[] = {27, 9};
    begin();
    for (int i = 0; i < 2; i++) {
        char text[1000];
        struct stopping_report r;
        struct sweep_row row;
        (void)snprintf(text, sizeof text,
                       "{'name': '%c', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                       "'parameters': {'x': {'type': 'float', 'min': 0, 'max': 1}}, 'search': "
                       "{'method': 'random', 'seed': 7}, 'limits': {'max_trials': 4}, 'trial': "
                       "{'command': ['true', '${x}']}, 'early_stopping': {'method': 'asha', "
                       "'min_steps': 3, 'max_steps': 27, 'eta': 3, 'strict': true}}",
                       'a' + i);
        json_t *doc = json_of(text);
        ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
        json_decref(doc);
        struct claimed_row c = claim_one(&s, "r", epoch);
        ck_assert_str_eq(c.sweep, row.id);
        measure(&s, ref_of(&c), "loss", steps[i], 0.5);
        ck_assert_int_eq(sweep_of_id(&s, row.id).state, SWEEP_RUNNING); /* no trial has ended */
        finish(&s, ref_of(&c), 0.25);
        ck_ok(sweep_stopping(s.db, &s.a, row.id, &r, &err), err);
        row = sweep_of_id(&s, row.id);
        ck_assert_int_eq(row.state, i == 0 ? SWEEP_FAILED : SWEEP_RUNNING);
        if (i == 1)
            continue;
        ck_assert_ptr_nonnull(r.warning);
        ck_assert_msg(strstr(r.warning, "below the last (steps 3, 9)") != NULL, "%s", r.warning);
        ck_assert_str_eq(row.reason, r.warning);
    }
}
END_TEST

/* Two servers decide about trials of one sweep in turn: each knows what the other one stored. */
START_TEST(two_servers_decide_as_one)
{
    struct store *other = NULL;
    struct store_opts opts = {.url = s.url, .max_connections = 2};
    begin();
    ck_ok(store_open(&opts, &other, &err), err);
    make_stopping("a", "pause", "'max_trials': 30", "");
    make_stopping("b", "pause", "'max_trials': 30", "");
    struct claim_list l = claim(&s, "r", epoch, 60);
    ck_assert_uint_eq(l.n, 60);
    for (size_t i = 0; i < l.n; i++) {
        struct store *first = s.db;
        struct attempt_ref ref = ref_of(&l.rows[i]);
        if (ref.sweep[0] == 'a' && ref.number % 3 == 1)
            s.db = other;
        (void)report_at(ref, 3, 0.1 * (double)((ref.number * 7) % 30), NULL);
        s.db = first;
    }
    store_close(other);
#define OF(sweep)                                                                                  \
    "(select r.number, rung, r.objectives, decision, rank, among, seq, promoted_seq from "         \
    "rung_result r join sweep w on w.key = r.sweep_key where w.id = '" sweep "')"
    ck_assert_int_eq(count("select count(*) from (" OF("a") " except " OF("b") ") d"), 0);
    ck_assert_int_eq(count("select min(n_rung_results) from sweep"), 30);
    ck_assert_int_ge(count("select min(n_promoted) from sweep"), 3);
}
END_TEST

/* Checkpoints of trials that end early go. */
START_TEST(checkpoints_go_with_the_hope)
{
    char sha[SHA256_HEX_SIZE];
    begin();
    make_stopping("a", "pause", "'max_trials': 2", "");
    put_blob(&s, "state", sha);
    struct claim_list l = claim(&s, "r", epoch, 2);
    for (size_t i = 0; i < 2; i++) {
        struct attempt_ref ref = ref_of(&l.rows[i]);
        const struct file_row file = {.path = "ckpt", .size = 5, .sha256 = sha};
        ck_pauses(ref, 3, 0.5 + (double)i);
        ck_ok(attempt_files(s.db, &ref, NULL, FILE_CHECKPOINT, &file, 1, &err), err);
        if (i == 0)
            end(&s, ref, OUTCOME_PAUSED);
    }
    ck_assert_int_eq(count("select count(*) from trial_file"), 2);
    end(&s, ref_of(&l.rows[1]), OUTCOME_PAUSED); /* now the best one goes on all the same */
    ck_assert_int_eq(state_of("a", 0), TRIAL_QUEUED);
    run_all("a");
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.by_state[TRIAL_PRUNED], 1);
    ck_assert_int_eq(count("select count(*) from trial_file where number = 1"), 0);
    ck_assert_int_eq(count("select count(*) from trial_file where number = 0"), 1);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/lifecycle/rungs");
    TCase *c = service_case(suite, "rungs", &s, 1000);
    tcase_add_test(c, a_trial_that_is_behind_is_pruned);
    tcase_add_test(c, a_decision_stands);
    tcase_add_test(c, nobody_pauses_by_himself);
    tcase_add_test(c, the_best_one_is_promoted);
    tcase_add_test(c, what_a_trial_waits_is_no_time_that_it_runs);
    tcase_add_test(c, a_rung_that_a_pausing_attempt_passed_counts);
    tcase_add_test(c, rungs_that_a_pausing_attempt_passed_count_at_the_end);
    tcase_add_test(c, who_misses_the_last_rung_is_named);
    tcase_add_test(c, the_best_of_all_goes_on);
    tcase_add_test(c, what_is_lost_while_it_pauses_waits);
    tcase_add_test(c, repeats_and_late_reports_decide_nothing);
    tcase_add_test(c, values_are_compared_at_the_step_of_the_rung);
    tcase_add_test(c, a_late_report_counts_if_the_document_says_so);
    tcase_add_test(c, late_values_may_come_line_by_line);
    tcase_add_test(c, other_metrics_miss_no_rung);
    tcase_add_test(c, a_repeated_report_is_no_result);
    tcase_add_test(c, all_metrics_that_are_compared_must_be_there);
    tcase_add_test(c, last_values_reach_rungs);
    tcase_add_test(c, clients_are_told_too);
    tcase_add_test(c, a_sweep_ends_when_nobody_can_be_promoted);
    tcase_add_test(c, who_is_killed_did_not_obey);
    tcase_add_test(c, one_completes_though_the_best_fail);
    tcase_add_test(c, what_waits_at_the_end_is_pruned);
    tcase_add_test(c, a_trial_that_waited_can_be_tried_again);
    tcase_add_test(c, who_was_promoted_does_not_hold_the_end);
    tcase_add_test(c, a_budget_of_steps_is_never_exceeded);
    tcase_add_test(c, a_budget_of_steps_ends_the_sweep);
    tcase_add_test(c, a_budget_that_is_lowered_ends_the_sweep);
    tcase_add_test(c, who_cannot_be_promoted_waits_no_longer);
    tcase_add_test(c, nothing_is_never_silent);
    tcase_add_test(c, the_last_rung_alone_is_nothing);
    tcase_add_test(c, two_servers_decide_as_one);
    tcase_add_test(c, checkpoints_go_with_the_hope);
    return suite;
}
