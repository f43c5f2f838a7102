/* What batches know without triggers, and without the whole head of a sweep, is what those say. */
#include <stdio.h>

#include "base/number.h"
#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_move_store.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

static void begin_trials(int n)
{
    int64_t epoch = make_runner(&s, "r", n);
    for (int got = 0; got < n;)
        got += (int)claim(&s, "r", epoch, n).n;
}

static int64_t key_of(const char *sweep)
{
    char sql[80];
    snprintf(sql, sizeof sql, "select key from sweep where id = '%s'", sweep);
    return pg_fixture_i64(s.url, sql);
}

#define COUNTS                                                                                     \
    "n_total, n_queued, n_running, n_paused, n_completed, n_pruned, n_failed, n_cancelled, "       \
    "n_suggested, n_known, n_known_failed, n_retried, finish_seq, steps_spent"

/* Four trials of a sweep leave their state. */
static as_status move_four(struct tx *t, int64_t key, bool counts)
{
    static const trial_state to[] = {TRIAL_COMPLETED, TRIAL_FAILED, TRIAL_QUEUED, TRIAL_PRUNED};
    static const char *const metrics[] = {"{\"loss\":1}", NULL, "{\"loss\":2}", "{\"loss\":3}"};
    static const int64_t steps[] = {7, 0, 5, INT64_MAX}, spent[] = {7, 3, 5, INT64_MAX};
    struct trial_moved moves[4];
    for (int i = 0; i < 4; i++)
        moves[i] = (struct trial_moved){
            .sweep_key = key,
            .number = i,
            .move = {.from = TRIAL_RUNNING, .to = to[i], .attempt = 1, .feasible = true},
            .latest = {.metrics = metrics[i],
                       .step = steps[i],
                       .has_value = metrics[i] != NULL,
                       .value = 1},
            .spent = spent[i]};
    return counts ? store_trial_move_counted(t, &s.a, moves, 4, &err)
                  : store_trial_move_many(t, moves, 4, &err);
}

/* Run SQL in the open transaction of a batch. */
static void run_sql(struct tx *t, const char *sql)
{
    ck_ok(conn_exec(t->conn, sql, &err), err);
}

static int64_t number_of(struct tx *t, const char *sql)
{
    ck_ok(tx_wait(t, &err), err);
    PGresult *r = PQexec(t->conn->pg, sql);
    int64_t n = -1;
    ck_assert_msg(PQntuples(r) == 1, "%s", PQerrorMessage(t->conn->pg));
    ck_ok(as_parse_i64(PQgetvalue(r, 0, 0), &n, &err), err);
    PQclear(r);
    return n;
}

/* One statement for the counts, as the triggers would have it; steps up to the largest number. */
START_TEST(ends_that_count_are_like_those_that_triggers_count)
{
    make_sweep(&s, "counted", "'max_trials': 5", "");
    make_sweep(&s, "triggers", "'max_trials': 5", "");
    const int64_t counted = key_of("counted"), triggers = key_of("triggers");
    begin_trials(10);
    struct tx_run run = tx_run_start(s.db, TX_BATCH, &err);
    while (tx_run_again(&run)) {
        run_sql(run.tx, "update trial set step = 3 where number = 1");
        ck_ok(move_four(run.tx, triggers, false), err);
        ck_ok(move_four(run.tx, counted, true), err);
        ck_assert_int_eq(number_of(run.tx, "select count(distinct (" COUNTS ")) from sweep"), 1);
        ck_assert_int_eq(number_of(run.tx, "select min(finish_seq) from sweep"), 3);
        ck_assert_int_eq(number_of(run.tx, "select min(steps_spent) from sweep"), INT64_MAX);
        run.status = as_fail(&err, AS_E_INVAL, "nothing of it stays");
    }
    ck_assert_int_eq(run.status, AS_E_INVAL);
}
END_TEST

static void check_head(const struct sweep_head *a, const struct sweep_head *b)
{
    ck_assert_str_eq(a->id, b->id);
    ck_assert_int_eq(a->wall_time_over, b->wall_time_over);
    ck_assert_int_eq(a->target_reached, b->target_reached);
    ck_assert_int_eq(a->little_left, b->little_left);
    ck_assert_int_eq(a->is_spent, b->is_spent);
    ck_assert_int_eq(a->is_strict, b->is_strict);
    ck_assert_int_eq(a->counts.total, b->counts.total);
    ck_assert_int_eq(a->finish_seq, b->finish_seq);
    ck_assert_int_eq(a->forks_left, b->forks_left);
}

/* Those that need more than their row say the same, locked together and alone. */
START_TEST(heads_of_many_are_those_of_one)
{
    static const char *const ids[] = {"plain", "wall", "target", "regret", "strict", "spent"};
    struct sweep_locked *rows[6];
    struct sweep_head one;
    int64_t keys[6];
    for (int i = 0; i < 6; i++) {
        make_sweep(&s, ids[i], "'max_trials': 5", "");
        keys[i] = key_of(ids[i]);
    }
    begin_trials(30);
    struct tx_run run = tx_run_start(s.db, TX_BATCH, &err);
    while (tx_run_again(&run)) {
        run_sql(run.tx, "update sweep_base set wall_time_ms = 1, started_at = now() - interval '1 "
                        "hour' where id = 'wall'");
        run_sql(run.tx, "update sweep_base set stop_regret = 5, stop_min_trials = 0 where id = "
                        "'regret'; insert into "
                        "regret_check (sweep_key, completed, seq, bound, enough) select key, n, n, "
                        "1, true from sweep, generate_series(4, 6) n where id = 'regret'");
        run_sql(run.tx, "update sweep_base set rungs = '{1,2}', rungs_strict = true where id = "
                        "'strict'; update sweep_base set target = 2 where id = 'target'");
        run_sql(run.tx, "update sweep_base set rungs = '{2,4}', max_steps = 1 where id = 'spent'; "
                        "update trial set state = case when number = 0 then 'queued' else 'paused' "
                        "end where sweep_key = (select key from sweep where id = 'spent')");
        ck_ok(move_four(run.tx, keys[2], true), err);
        ck_ok(store_sweep_lock_many(run.tx, &s.a, keys, 6, false, rows, &err), err);
        for (int i = 0; i < 6; i++) {
            ck_ok(store_sweep_lock(run.tx, &s.a, keys[i], &one, &err), err);
            check_head(&rows[i]->head, &one);
        }
        run.status = as_fail(&err, AS_E_INVAL, "nothing of it stays");
    }
    ck_assert_int_eq(run.status, AS_E_INVAL);
    ck_assert(rows[1]->head.wall_time_over && rows[2]->head.target_reached);
    ck_assert(rows[3]->head.little_left);
    ck_assert(rows[4]->head.is_strict);
    ck_assert(rows[5]->head.is_spent);
    ck_assert(!rows[0]->head.wall_time_over && !rows[1]->head.target_reached);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("counted");
    TCase *c = service_case(su, "counted", &s, 0);
    tcase_add_test(c, ends_that_count_are_like_those_that_triggers_count);
    tcase_add_test(c, heads_of_many_are_those_of_one);
    return su;
}
