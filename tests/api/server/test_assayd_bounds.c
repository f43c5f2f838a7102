/* Two servers over one database come to the bound of the last results of one sweep at the same
 * time, and one of them is killed: there is one row for each count, and the best trial is of all
 * results. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "scheduler/services/regret_checks.h"
#include "tests/api/server/assayd_process.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"
#include "tests/support/temp_folder.h"

#define TRIALS 37 /* a bound is scheduled after 36 and 38 */
#define SERVERS 2
#define DEATHS 8

static struct service s;
static struct as_err err;
static char dir[TEMP_FOLDER_SIZE];

static void make_folder(void)
{
    temp_folder_make(dir);
}

static void end_servers(void)
{
    assayd_end_all();
    temp_folder_remove(dir);
}

static pid_t start_server(void)
{
    const char *const args[] = {"--listen", "127.0.0.1:0", "--database",        s.url,
                                "--web",    dir,           "--die-with-parent", NULL};
    return assayd_start(dir, args);
}

static void kill_server(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(assayd_wait(pid, -1000 - SIGKILL), -1000 - SIGKILL);
}

/* Wait until the query returns `want`. */
static void await(const char *what, const char *query, int64_t want)
{
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS, got;
    while ((got = pg_fixture_i64(s.url, query)) != want) {
        ck_assert_msg(clock_mono_ns() < until, "%s: %lld, wanted %lld", what, (long long)got,
                      (long long)want);
        clock_sleep_ms(10);
    }
}

/* Complete n trials of a bowl with noise that is as large as what is left of it. */
static void run_trials(const char *sweep, int n)
{
    struct rng r;
    for (int i = 0; i < n; i++) {
        struct suggestion_row t = ask_one(&s, sweep, "c");
        json_t *params = json_plain(t.params);
        double x = json_number_value(json_object_get(params, "x"));
        double y = json_number_value(json_object_get(params, "y"));
        json_decref(params);
        rng_init(&r, 5, (uint64_t)t.number);
        tell(&s, sweep, t.number, "c",
             (x - 0.3) * (x - 0.3) + (y - 0.6) * (y - 0.6) + 0.2 * rng_normal(&r));
    }
}

static void check_rounds(struct store *db, int n)
{
    AS_AUTO(regret_checks_freep) struct regret_checks *c = regret_checks_create(db, false);
    struct regret_report one;
    ck_assert_ptr_nonnull(c);
    for (int i = 0; i < n; i++)
        ck_ok(regret_checks_round(c, NULL, &one, &err), err);
}

static struct regret_check_list bounds_of(const char *sweep)
{
    struct regret_check_list l = {0};
    ck_ok(regret_checks_list(s.db, &s.a, sweep, &l, &err), err);
    return l;
}

/* The last bound of the sweep is of so many trials, is the one that a process alone computes, and
 * says which trial is the best. Only the last one may be between two counts. */
static void check_last(const char *sweep, int64_t completed)
{
    struct regret_check_list l = bounds_of(sweep);
    for (size_t i = 0; i + 1 < l.n; i++)
        ck_assert_int_lt(l.rows[i].completed, l.rows[i + 1].completed);
    ck_assert_int_eq(pg_fixture_i64(s.url,
                                    "select count(*) from regret_check r where not scheduled "
                                    "and completed < (select max(completed) from "
                                    "regret_check where sweep_key = r.sweep_key)"),
                     0);
    const struct regret_check *last = &l.rows[l.n - 1];
    ck_assert_int_eq(last->completed, completed);
    ck_assert(last->has_best);
    struct sweep_row w = sweep_of_id(&s, sweep);
    ck_assert(w.best_is_by_model && w.best_number == last->best);
    pg_fixture_exec(s.url, "delete from regret_check where not scheduled;"
                           "update sweep_base set regret_open = true");
    check_rounds(s.db, 2); /* in the second one it is quiet, if it lives */
    struct regret_check_list again = bounds_of(sweep);
    ck_assert_uint_eq(again.n, l.n);
    ck_assert(again.rows[l.n - 1].completed == completed && again.rows[l.n - 1].seq == last->seq);
    ck_assert(again.rows[l.n - 1].best == last->best && last->bound == again.rows[l.n - 1].bound);
    ck_assert(again.rows[l.n - 1].best_mean == last->best_mean);
}

/* A sweep that has ended after TRIALS results, of which the last one is in no bound. */
static const char *make_ended(void)
{
    char limits[40];
    (void)snprintf(limits, sizeof limits, "'max_trials': %d", TRIALS);
    const char *sweep = make_learner(&s, "a", limits, "");
    run_trials(sweep, TRIALS - 1);
    check_rounds(s.db, 1);
    run_trials(sweep, 1);
    reap(&s);
    ck_assert_int_eq(sweep_of_id(&s, sweep).state, SWEEP_COMPLETED);
    return sweep;
}

#define WAIT_OF_A_BOUND                                                                            \
    " from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.datname = "    \
    "current_database() and "
/* It has written its row, and waits with its event: nobody else sees the row. */
#define HOLDS                                                                                      \
    "select count(*)" WAIT_OF_A_BOUND "l.relation = 'event'::regclass and a.query like "           \
    "'insert into event %'"
/* It waits for the transaction of the first one. */
#define WAITS                                                                                      \
    "select count(*)" WAIT_OF_A_BOUND                                                              \
    "l.locktype = 'transactionid' and a.query like 'select from sweep_base %'"
#define TOLD                                                                                       \
    "select count(*) from event_each where type = 'sweep.changed' and state = 'completed' and "    \
    "number is null"

/* Both servers have computed the bound. One is in the transaction that keeps it, the other one
 * waits for that. `dies`: which of them is killed there; SERVERS: none. */
static void race_for_a_bound(int dies)
{
    pid_t servers[SERVERS];
    const char *sweep = make_ended();
    int64_t told = pg_fixture_i64(s.url, TOLD);
    struct pg_session *holds =
        pg_fixture_session(s.url, "begin; lock table event in exclusive mode");
    servers[0] = start_server();
    await("a server keeps its bound", HOLDS, 1);
    servers[1] = start_server();
    await("another server has the same bound", WAITS, 1);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from regret_check"), 1);
    if (dies < SERVERS)
        kill_server(servers[dies]);
    pg_fixture_session_end(holds);
    await("the bound", "select count(*) from regret_check where completed = 37", 1);
    await("the sweep is closed", "select count(*) from sweep_base where regret_open", 0);
    await("both transactions ended", HOLDS, 0);
    await("both transactions ended", WAITS, 0);
    for (int i = 0; i < SERVERS; i++) {
        if (i == dies)
            continue;
        ck_assert(assayd_runs(servers[i]));
        ck_assert_int_eq(kill(servers[i], SIGTERM), 0);
        ck_assert_int_eq(assayd_wait(servers[i], 0), 0);
    }
    ck_assert_int_eq(pg_fixture_i64(s.url, TOLD), told + 1);
    check_last(sweep, TRIALS);
}

START_TEST(the_one_that_keeps_it_dies)
{
    race_for_a_bound(0);
}
END_TEST

START_TEST(the_one_that_waits_dies)
{
    race_for_a_bound(1);
}
END_TEST

START_TEST(nobody_dies)
{
    race_for_a_bound(SERVERS);
}
END_TEST

/* Add one result to a sweep that has ended, so that it ends again. */
static void add_result(const char *sweep, int trials)
{
    struct sweep_patch p;
    struct sweep_changed got;
    char text[60];
    (void)snprintf(text, sizeof text, "{'limits': {'max_trials': %d}}", trials);
    json_t *j = json_of(text);
    ck_ok(sweep_patch_parse(j, &p, &err), err);
    ck_ok(sweep_change(s.db, &s.a, sweep, &p, NULL, &got, &err), err);
    json_decref(j);
    run_trials(sweep, 1);
}

/* Wherever its round is: before its look, while it computes, while it writes. */
START_TEST(one_dies_at_any_time)
{
    pid_t servers[SERVERS];
    struct rng r;
    char bounds[120];
    const char *sweep = make_ended();
    rng_init(&r, 1, 0);
    for (int i = 0; i < SERVERS; i++)
        servers[i] = start_server();
    for (int i = 0; i < DEATHS; i++) {
        int trials = TRIALS + 1 + i;
        add_result(sweep, trials);
        clock_sleep_ms((int64_t)rng_below(&r, 700));
        kill_server(servers[i % SERVERS]);
        (void)snprintf(bounds, sizeof bounds,
                       "select count(*) from regret_check where completed = %d", trials);
        await("the bound of all results", bounds, 1);
        servers[i % SERVERS] = start_server();
    }
    for (int i = 0; i < SERVERS; i++)
        kill_server(servers[i]);
    check_last(sweep, TRIALS + DEATHS);
    for (int n = TRIALS - 1; n <= TRIALS + DEATHS; n += 2) { /* none was left out */
        (void)snprintf(bounds, sizeof bounds,
                       "select count(*) from regret_check where scheduled and completed = %d", n);
        ck_assert_int_eq(pg_fixture_i64(s.url, bounds), 1);
    }
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("api/server/assayd_bounds");
    TCase *t = service_case_alone(suite, "bounds", &s, 0);
    tcase_add_checked_fixture(t, make_folder, end_servers);
    tcase_set_timeout(t, 300);
    tcase_add_test(t, the_one_that_keeps_it_dies);
    tcase_add_test(t, the_one_that_waits_dies);
    tcase_add_test(t, nobody_dies);
    tcase_add_test(t, one_dies_at_any_time);
    return suite;
}
