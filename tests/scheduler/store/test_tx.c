/* Transactions: when they commit, roll back, run again, and give up. */
#include "scheduler/store/tx.h"

#include <pthread.h>
#include <string.h>

#include "scheduler/store/pg_priv.h"
#include "scheduler/store/sweep_store.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

static void open_service(void)
{
    service_begin(&s, 0);
    make_sweep(&s, "a", "'max_trials': 1", "");
    make_sweep(&s, "b", "'max_trials': 1", "");
}

static void close_service(void)
{
    service_end(&s);
}

static const struct stmt reason_stmt = {"test_reason", "update sweep_base set reason = $1"};
static const struct stmt wrong_stmt = {"test_wrong", "select 1 / 0"};
static const struct stmt one_stmt = {"test_one", "select 1"};
static const struct stmt reasons_stmt = {"test_reasons", "select (reason = 'a')::int from sweep"};
static const struct stmt serial_stmt = {
    "test_serial", "do $$ begin raise exception using errcode = '40001'; end $$"};

static as_status set_reason(struct tx *t, const char *reason, struct as_err *e)
{
    return tx_exec(t, &reason_stmt, ARGS(arg_str(reason)), NULL, e);
}

static const char *reason_now(void)
{
    return sweep_of_id(&s, "a").reason;
}

static long retries(void)
{
    return atomic_load(&store_counters(s.db)->tx_retries);
}

START_TEST(success_commits)
{
    int runs = 0;
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        runs++;
        run.status = set_reason(run.tx, "done", &err);
    }
    ck_ok(run.status, err);
    ck_assert_ptr_null(run.tx);
    ck_assert_int_eq(runs, 1);
    ck_assert_str_eq(reason_now(), "done");
}
END_TEST

START_TEST(own_error_rolls_back)
{
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        ck_ok(set_reason(run.tx, "half", &err), err);
        run.status = as_fail(&err, AS_E_CONFLICT, "changed my mind");
    }
    ck_fails(run.status, AS_E_CONFLICT, err, "my mind");
    ck_assert_ptr_null(reason_now());
}
END_TEST

START_TEST(statement_error_rolls_back)
{
    int runs = 0;
    long before = retries();
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        runs++;
        ck_ok(set_reason(run.tx, "half", &err), err);
        run.status = tx_exec(run.tx, &wrong_stmt, NULL, NULL, &err);
    }
    ck_fails(run.status, AS_E_INVAL, err, "test_wrong");
    ck_assert_int_eq(runs, 1);
    ck_assert_int_eq(retries(), before);
    ck_assert_ptr_null(reason_now());
}
END_TEST

/* A body that sets no status does not commit by accident. */
START_TEST(no_status_rolls_back)
{
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run))
        ck_ok(set_reason(run.tx, "half", &err), err);
    ck_assert_int_eq(run.status, AS_E_INTERNAL);
    ck_assert_ptr_null(reason_now());
}
END_TEST

/* Fails to serialise in the first `n` runs. */
static as_status contended(struct tx *t, int n, int *runs, struct as_err *e)
{
    as_status st = set_reason(t, ++*runs > n ? "last" : "early", e);
    if (st != AS_OK || *runs > n)
        return st;
    return tx_exec(t, &serial_stmt, NULL, NULL, e);
}

START_TEST(serialisation_failures_run_again)
{
    int runs = 0;
    long before = retries();
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run))
        run.status = contended(run.tx, 2, &runs, &err);
    ck_ok(run.status, err);
    ck_assert_int_eq(runs, 3);
    ck_assert_int_eq(retries(), before + 2);
    ck_assert_str_eq(reason_now(), "last");
}
END_TEST

/* With an error record or without one. */
START_TEST(gives_up_after_eight_runs)
{
    struct as_err *records[] = {&err, NULL};
    for (int i = 0; i < 2; i++) {
        int runs = 0;
        struct tx_run run = tx_run_start(s.db, TX_SOFT, records[i]);
        while (tx_run_again(&run))
            run.status = contended(run.tx, 100, &runs, records[i]);
        ck_fails(run.status, AS_E_UNAVAILABLE, err, "SQLSTATE 40001");
        ck_assert_int_eq(runs, 8);
        ck_assert_ptr_null(reason_now());
    }
}
END_TEST

START_TEST(lost_connection_runs_again)
{
    int runs = 0;
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        if (++runs == 1)
            pg_fixture_kill_backends(s.url);
        run.status = set_reason(run.tx, "again", &err);
    }
    ck_ok(run.status, err);
    ck_assert_int_eq(runs, 2);
    ck_assert_str_eq(reason_now(), "again");
}
END_TEST

/* A batch waits for no statement whose rows nobody reads: a failure comes with a later one. */
START_TEST(a_deferred_failure_rolls_back)
{
    RESULT_AUTO r = {0};
    for (int after = 0; after < 3; after++) {
        int runs = 0;
        struct tx_run run = tx_run_start(s.db, TX_BATCH, &err);
        while (tx_run_again(&run)) {
            runs++;
            ck_ok(set_reason(run.tx, "half", &err), err);
            ck_ok(tx_exec(run.tx, &wrong_stmt, NULL, NULL, &err), err);
            run.status = AS_OK;
            if (after == 1) /* it is read with the answer to a query, or with that to COMMIT */
                run.status = tx_query(run.tx, &one_stmt, NULL, &r, &err);
            else if (after == 2) /* never, but for the rollback */
                run.status = as_fail(&err, AS_E_CONFLICT, "changed my mind");
        }
        ck_fails(run.status, after == 2 ? AS_E_CONFLICT : AS_E_INVAL, err,
                 after == 2 ? "my mind" : "test_wrong");
        ck_assert_int_eq(runs, 1);
        ck_assert_ptr_null(reason_now());
    }
}
END_TEST

START_TEST(deferred_statements_run_in_order)
{
    static const char *const reasons[] = {"a", "b", "c"};
    int runs = 0;
    long before = retries();
    struct tx_run run = tx_run_start(s.db, TX_BATCH, &err);
    while (tx_run_again(&run)) {
        for (int i = 0; i < 100; i++) /* more than fit at once */
            ck_ok(set_reason(run.tx, reasons[i % 3], &err), err);
        RESULT_AUTO r = {0};
        ck_ok(tx_query(run.tx, &reasons_stmt, NULL, &r, &err), err);
        ck_assert_int_eq(r.rows, 2);
        ck_assert_int_eq(result_i64(&r, 0, 0), 1); /* "a", the 100th */
        ck_ok(set_reason(run.tx, "last", &err), err);
        run.status = contended(run.tx, 2, &runs, &err);
    }
    ck_ok(run.status, err);
    ck_assert_int_eq(runs, 3);
    ck_assert_int_eq(retries(), before + 2);
    ck_assert_str_eq(reason_now(), "last");
}
END_TEST

/* What is sent is answered in order with the next wait, whichever that is. */
START_TEST(what_is_sent_is_answered_together)
{
    static const tx_kind kinds[] = {TX_BATCH, TX_WRITE}; /* the latter waits for each */
    for (size_t k = 0; k < AS_ARRAY_LEN(kinds); k++) {
        struct tx_run run = tx_run_start(s.db, kinds[k], &err);
        while (tx_run_again(&run)) {
            RESULT_AUTO before = {0}, after = {0}, one = {0}, two = {0};
            ck_ok(set_reason(run.tx, "b", &err), err);
            ck_ok(tx_send(run.tx, &reasons_stmt, NULL, &before, &err), err);
            ck_ok(set_reason(run.tx, "a", &err), err);
            ck_ok(tx_send(run.tx, &reasons_stmt, NULL, &after, &err), err);
            ck_assert_int_eq(before.pg != NULL, kinds[k] != TX_BATCH);
            ck_ok(tx_wait(run.tx, &err), err);
            ck_assert_int_eq(result_i64(&before, 0, 0), 0);
            ck_assert_int_eq(result_i64(&after, 0, 0), 1);
            ck_ok(tx_wait(run.tx, &err), err); /* for nothing */
            ck_ok(tx_send(run.tx, &one_stmt, NULL, &one, &err), err);
            run.status = tx_query(run.tx, &one_stmt, NULL, &two, &err);
            ck_assert_int_eq(one.rows, 1);
        }
        ck_ok(run.status, err);
    }
}
END_TEST

static as_status send_and_fail(struct tx *t, struct result *r)
{
    ck_ok(tx_send(t, &one_stmt, NULL, r, &err), err);
    ck_ok(tx_send(t, &one_stmt, NULL, r + 1, &err), err);
    return as_fail(&err, AS_E_CONFLICT, "changed my mind");
}

/* Who waits for an answer may have returned when the transaction ends. */
START_TEST(a_failure_answers_nobody)
{
    struct result r[2] = {{.rows = -7}, {.rows = -7}};
    struct tx_run run = tx_run_start(s.db, TX_BATCH, &err);
    while (tx_run_again(&run))
        run.status = send_and_fail(run.tx, r);
    ck_fails(run.status, AS_E_CONFLICT, err, "my mind");
    ck_assert(!r[0].pg && r[0].rows == -7 && !r[1].pg && r[1].rows == -7);
    run = tx_run_start(s.db, TX_BATCH, &err);
    while (tx_run_again(&run)) {
        ck_ok(tx_exec(run.tx, &wrong_stmt, NULL, NULL, &err), err);
        ck_ok(tx_send(run.tx, &one_stmt, NULL, r, &err), err);
        run.status = tx_wait(run.tx, &err);
    }
    ck_fails(run.status, AS_E_INVAL, err, "test_wrong");
    ck_assert_ptr_null(r[0].pg);
}
END_TEST

/* Nobody knows whether COMMIT came through, so the body does not run again. */
START_TEST(a_batch_that_is_lost_is_unavailable)
{
    for (int with_rows = 0; with_rows < 2; with_rows++) {
        int runs = 0;
        struct tx_run run = tx_run_start(s.db, TX_BATCH, &err);
        while (tx_run_again(&run)) {
            RESULT_AUTO r = {0};
            run.status = set_reason(run.tx, "unknown", &err);
            if (++runs == 1)
                pg_fixture_kill_backends(s.url);
            if (with_rows && run.status == AS_OK)
                run.status = tx_query(run.tx, &one_stmt, NULL, &r, &err);
        }
        if (with_rows) {
            ck_ok(run.status, err);
            ck_assert_int_eq(runs, 2);
        } else {
            ck_fails(run.status, AS_E_UNAVAILABLE, err, "database"); /* ended, or lost */
            ck_assert(run.is_away);
            ck_assert_int_eq(runs, 1);
        }
    }
}
END_TEST

/* The answer to COMMIT may be lost. The body does not run again; the caller decides. */
START_TEST(commit_without_answer_is_unavailable)
{
    int runs = 0;
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        runs++;
        run.status = set_reason(run.tx, "unknown", &err);
        pg_fixture_kill_backends(s.url);
    }
    ck_fails(run.status, AS_E_UNAVAILABLE, err, "database connection was lost");
    ck_assert_int_eq(runs, 1);
}
END_TEST

START_TEST(no_database_no_run)
{
    struct store *db = NULL;
    struct store_opts opts = {.url = "host=/nonexistent dbname=x"};
    ck_ok(store_open(&opts, &db, &err), err);
    int runs = 0;
    struct tx_run run = tx_run_start(db, TX_READ, &err);
    while (tx_run_again(&run)) {
        runs++;
        run.status = AS_OK;
    }
    ck_fails(run.status, AS_E_UNAVAILABLE, err, "cannot reach the database");
    ck_assert_int_eq(runs, 0);
    store_close(db);
}
END_TEST

/* Two transactions lock two sweeps in opposite order. One of them is aborted and runs again. */
struct cross {
    int64_t keys[2];
    pthread_barrier_t *both;
    bool waited;
    int runs;
    as_status st;
};

static const struct stmt lock_stmt = {"test_lock",
                                      "select key from sweep where key = $1 for update"};

static as_status lock_both(struct tx *t, struct cross *c, struct as_err *e)
{
    c->runs++;
    for (int i = 0; i < 2; i++) {
        as_status st = tx_exec(t, &lock_stmt, ARGS(arg_i64(c->keys[i])), NULL, e);
        if (st != AS_OK)
            return st;
        if (i == 0 && !c->waited) {
            c->waited = true;
            pthread_barrier_wait(c->both);
        }
    }
    return AS_OK;
}

static void *cross_thread(void *p)
{
    struct cross *c = p;
    struct as_err e = {0};
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &e);
    while (tx_run_again(&run))
        run.status = lock_both(run.tx, c, &e);
    c->st = run.status;
    return NULL;
}

START_TEST(deadlocks_run_again)
{
    pthread_barrier_t both;
    pthread_barrier_init(&both, NULL, 2);
    struct cross x = {.keys = {1, 2}, .both = &both}, y = {.keys = {2, 1}, .both = &both};
    pthread_t thread;
    pthread_create(&thread, NULL, cross_thread, &x);
    cross_thread(&y);
    pthread_join(thread, NULL);
    ck_assert_int_eq(x.st, AS_OK);
    ck_assert_int_eq(y.st, AS_OK);
    ck_assert_int_ge(x.runs + y.runs, 3); /* the aborted one may begin again before the other
                                             continues */
    pthread_barrier_destroy(&both);
}
END_TEST

struct told {
    int n_finished, n_finishing;
    int64_t sweep, sum;
};

static void note_finished(void *ctx, int64_t sweep_key)
{
    struct told *told = ctx;
    told->n_finished++;
    told->sweep = sweep_key;
    told->sum += sweep_key;
}

static void note_finishing(void *ctx)
{
    struct told *told = ctx;
    told->n_finishing++;
}

/* The function for ended trials is called after the commit, and only then. */
START_TEST(only_commits_are_told)
{
    struct told told = {0};
    store_on_finished(s.db, note_finished, &told);
    store_on_finishing(s.db, note_finishing, &told);
    as_status ends[] = {AS_E_CONFLICT, AS_OK};
    for (int i = 0; i < 2; i++) {
        struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
        while (tx_run_again(&run)) {
            tx_finished(run.tx, 7);
            tx_finished(run.tx, 7);
            tx_finishing(run.tx);
            ck_assert_int_eq(told.n_finished, 0);
            run.status = ends[i];
        }
        ck_assert_int_eq(run.status, ends[i]);
        ck_assert_int_eq(told.n_finished, i);
        ck_assert_int_eq(told.n_finishing, i);
    }
    ck_assert_int_eq(told.sweep, 7);
    store_on_finished(s.db, NULL, NULL);
    store_on_finishing(s.db, NULL, NULL);
}
END_TEST

/* Of a transaction with many sweeps each is told, and once. */
START_TEST(every_sweep_of_a_commit_is_told)
{
    enum { SWEEPS = 100 };
    struct told told = {0};
    store_on_finished(s.db, note_finished, &told);
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        for (int i = 0; i < 3 * SWEEPS; i++)
            tx_finished(run.tx, 1 + i % SWEEPS);
        run.status = AS_OK;
    }
    ck_ok(run.status, err);
    store_on_finished(s.db, NULL, NULL);
    ck_assert_int_eq(told.n_finished, SWEEPS);
    ck_assert_int_eq(told.sum, SWEEPS * (SWEEPS + 1) / 2);
}
END_TEST

/* A commit that does not wait is on disk when somebody who may have seen it has answered. */
START_TEST(what_was_seen_is_on_disk)
{
    int64_t log_end = commit_unsynced(&s), key = 0;
    int runs = 0;
    struct tx_run run = tx_run_start(s.db, TX_SEEN, &err);
    while (tx_run_again(&run)) {
        runs++;
        run.status = store_sweep_key(run.tx, "a", &key, &err);
    }
    ck_ok(run.status, err);
    ck_assert_int_eq(runs, 1);
    check_synced(&s, log_end);
}
END_TEST

/* So is what a transaction saw that could have written, and wrote nothing. */
START_TEST(what_a_writer_saw_is_on_disk)
{
    int64_t log_end = commit_unsynced(&s), key = 0;
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        run.status = store_sweep_key(run.tx, "a", &key, &err);
        tx_saw(run.tx);
    }
    ck_ok(run.status, err);
    check_synced(&s, log_end);
}
END_TEST

/* The connection is lost after the read: it reads again, on the connection on which it waits. */
START_TEST(what_was_seen_is_read_again)
{
    int runs = 0;
    struct tx_run run = tx_run_start(s.db, TX_SEEN, &err);
    while (tx_run_again(&run)) {
        int64_t key = 0;
        run.status = store_sweep_key(run.tx, "a", &key, &err);
        if (++runs == 1)
            pg_fixture_kill_backends(s.url);
    }
    ck_ok(run.status, err);
    ck_assert_int_ge(runs, 2);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("tx");
    TCase *c = tcase_create("tx");
    pg_fixture_start();
    tcase_add_checked_fixture(c, open_service, close_service);
    tcase_add_test(c, success_commits);
    tcase_add_test(c, own_error_rolls_back);
    tcase_add_test(c, statement_error_rolls_back);
    tcase_add_test(c, no_status_rolls_back);
    tcase_add_test(c, serialisation_failures_run_again);
    tcase_add_test(c, gives_up_after_eight_runs);
    tcase_add_test(c, lost_connection_runs_again);
    tcase_add_test(c, a_deferred_failure_rolls_back);
    tcase_add_test(c, deferred_statements_run_in_order);
    tcase_add_test(c, what_is_sent_is_answered_together);
    tcase_add_test(c, a_failure_answers_nobody);
    tcase_add_test(c, a_batch_that_is_lost_is_unavailable);
    tcase_add_test(c, commit_without_answer_is_unavailable);
    tcase_add_test(c, no_database_no_run);
    tcase_add_test(c, deadlocks_run_again);
    tcase_add_test(c, only_commits_are_told);
    tcase_add_test(c, every_sweep_of_a_commit_is_told);
    tcase_add_test(c, what_was_seen_is_on_disk);
    tcase_add_test(c, what_a_writer_saw_is_on_disk);
    tcase_add_test(c, what_was_seen_is_read_again);
    suite_add_tcase(su, c);
    return su;
}
