/* Servers, runners and the database die in the middle of sweeps. Every sweep still ends with
 * exactly the trials that it asked for, none counted twice, and no acknowledged write is lost.
 *
 * Each "machine" is a thread with its own store: a server and a runner in one. It repeats every
 * call that returned "unavailable", and sometimes forgets what it ran, as if it was killed. fsync
 * is on. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "scheduler/lifecycle/reaper.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

#define MACHINES 5
#define CELLS 32

static struct service s;
static atomic_bool over;
static atomic_int acknowledged; /* completions that returned AS_OK */
static atomic_int answered;     /* calls that the database answered */
static atomic_int broken;       /* results that no operation may return */

struct machine {
    int id;
    struct rng rng;
    struct service own;
    char name[16];
    int64_t epoch;
    int claims;
};

/* Is the result final? AS_E_UNAVAILABLE is not: the call is repeated. */
static bool final(as_status st)
{
    if (st == AS_E_UNAVAILABLE)
        clock_sleep_ms(3);
    else
        atomic_fetch_add(&answered, 1);
    return st != AS_E_UNAVAILABLE || atomic_load(&over);
}

static void register_machine(struct machine *m)
{
    struct registration reg = {0};
    struct runner_register r = {.name = m->name, .slots = 3};
    as_status st;
    do
        st = runner_register(m->own.db, &m->own.a, &r, &reg, NULL);
    while (!final(st));
    m->epoch = reg.epoch;
}

/* Run one trial: measure, end. Any error except a fence is our fault. */
static void run_trial(struct machine *m, const struct claimed_row *c)
{
    struct attempt_ref ref = ref_of(c);
    struct measurement point = {1, "loss", (double)c->number};
    struct completion done = {.outcome = OUTCOME_COMPLETED};
    struct trial_row row;
    struct as_err e = {0};
    int64_t n;
    as_status st;
    do
        st = attempt_measure(m->own.db, &ref, NULL, &point, 1, &n, &e);
    while (!final(st));
    do
        st = st == AS_OK || st == AS_E_UNAVAILABLE
                 ? attempt_complete(m->own.db, &m->own.a, &ref, NULL, &done, &row, &e)
                 : st;
    while (!final(st));
    if (st == AS_OK && row.attempt == ref.attempt && row.state == TRIAL_COMPLETED)
        atomic_fetch_add(&acknowledged, 1);
    else if (!atomic_load(&over)) {
        fprintf(stderr, "trial %lld: %s\n", (long long)ref.number, e.msg);
        atomic_fetch_add(&broken, 1);
    }
}

static void work(struct machine *m)
{
    struct claim_list list = {0};
    char id[32];
    as_status st;
    snprintf(id, sizeof id, "%d-%d", m->id, m->claims++);
    struct claim_request req = {
        .runner = m->name, .epoch = m->epoch, .claim_id = id, .max_trials = 2};
    do
        st = claim_trials(m->own.db, NULL, &m->own.a, &req, &list, NULL);
    while (!final(st));
    if (st != AS_OK && !atomic_load(&over))
        atomic_fetch_add(&broken, 1);
    if (st == AS_OK && list.n == 0)
        clock_sleep_ms(10); /* others hold what is left */
    if (st == AS_OK && list.n > 0 && rng_uniform(&m->rng) < 0.15) {
        register_machine(m); /* "killed": it returns without its state */
        return;
    }
    for (size_t i = 0; st == AS_OK && i < list.n; i++)
        run_trial(m, &list.rows[i]);
}

static void *machine_thread(void *p)
{
    struct machine *m = p;
    struct store_opts opts = {.url = s.url, .max_connections = 3};
    struct reaper_report r;
    struct as_err e;
    opts.config.lease_ms = 3600 * 1000; /* a machine that stops for a while is not lost */
    if (store_open(&opts, &m->own.db, &e) != AS_OK)
        return NULL;
    m->own.reaper = (struct reaper){.db = m->own.db};
    snprintf(m->name, sizeof m->name, "m%d", m->id);
    rng_init(&m->rng, 1, (uint64_t)m->id);
    register_machine(m);
    while (!atomic_load(&over)) {
        work(m);
        as_status st = reaper_tick(&m->own.reaper, &r, &e);
        if (st != AS_OK && st != AS_E_UNAVAILABLE)
            atomic_fetch_add(&broken, 1);
    }
    service_close(&m->own);
    return NULL;
}

static bool all_over(void)
{
    return pg_fixture_i64(s.url, "select count(*) from sweep where state in ('running', 'paused', "
                                 "'finishing')") == 0;
}

/* Let the machines run while `fault` strikes, until the sweeps are over. */
static void run_with(void (*fault)(int round))
{
    struct machine machines[MACHINES] = {0};
    pthread_t threads[MACHINES];
    atomic_store(&over, false);
    atomic_store(&acknowledged, 0);
    for (int i = 0; i < MACHINES; i++) {
        machines[i].id = i;
        pthread_create(&threads[i], NULL, machine_thread, &machines[i]);
    }
    int64_t end = clock_mono_ns() + 2 * PATIENCE_MS * NS_PER_MS;
    for (int round = 0; !all_over() && clock_mono_ns() < end; round++)
        fault(round);
    bool ended = all_over();
    atomic_store(&over, true);
    for (int i = 0; i < MACHINES; i++)
        pthread_join(threads[i], NULL);
    ck_assert_msg(ended, "the sweeps did not end");
    ck_assert_int_eq(atomic_load(&broken), 0);
}

/* Between two faults some work must complete, however slow the machine is. After each one all
 * machines connect again, and PostgreSQL plans their statements again, which is what this test
 * costs: ASSAY_LONG_FAULTS has eight times as many. */
static void kill_connections(int round)
{
    static int before;
    int between = getenv("ASSAY_LONG_FAULTS") ? MACHINES : 8 * MACHINES;
    clock_sleep_ms(80 + round % 60); /* vary what the fault hits */
    if (round > 0 && atomic_load(&answered) - before < between)
        return;
    before = atomic_load(&answered);
    pg_fixture_kill_backends(s.url);
}

static void restart_database(int round)
{
    clock_sleep_ms(100);
    if (round > 3)
        return; /* enough faults: let the sweeps end */
    pg_fixture_stop();
    pg_fixture_continue();
}

static void check_end(void)
{
    check_invariants(&s);
    struct sweep_row grid = sweep_of_id(&s, "grid"), few = sweep_of_id(&s, "few");
    ck_assert_int_eq(grid.state, SWEEP_COMPLETED);
    ck_assert_int_eq(grid.counts.by_state[TRIAL_COMPLETED], CELLS);
    ck_assert_int_eq(grid.counts.total, CELLS);
    ck_assert_int_eq(few.counts.by_state[TRIAL_COMPLETED], 20);
    ck_assert_int_eq(few.counts.total, 20);
    ck_assert_int_eq(
        pg_fixture_i64(s.url, "select count(distinct params::text) from trial t join sweep s on "
                              "s.key = t.sweep_key where s.id = 'grid'"),
        CELLS);
    ck_assert_int_ge(atomic_load(&acknowledged), 0);
    ck_assert_int_le(atomic_load(&acknowledged), CELLS + 20);
}

static void open_service(void)
{
    service_open(&s, 0);
    make_grid(&s, "grid", CELLS, "'max_restarts': 100");
    make_sweep(&s, "few", "'max_trials': 20, 'max_concurrent_trials': 2, 'max_restarts': 100", "");
}

static void close_service(void)
{
    service_close(&s);
}

START_TEST(connections_are_killed)
{
    run_with(kill_connections);
    check_end();
}
END_TEST

START_TEST(the_database_is_restarted)
{
    run_with(restart_database);
    check_end();
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("faults");
    TCase *c = tcase_create("faults");
    setenv("CK_FORK", "no", 1); /* the database is restarted by the process that started it */
    pg_fixture_start_with_fsync();
    tcase_add_checked_fixture(c, open_service, close_service);
    tcase_add_test(c, connections_are_killed);
    tcase_add_test(c, the_database_is_restarted);
    suite_add_tcase(su, c);
    return su;
}
