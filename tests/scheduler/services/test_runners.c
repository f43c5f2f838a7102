/* Runners: epochs, leases, and what the reaper does to runners and sweeps. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/lifecycle/reaper.h"
#include "scheduler/store/tx.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

#define NOW_MS "(extract(epoch from clock_timestamp()) * 1000)::bigint"

static struct service s;
static struct as_err err;

/* A round of the reaper that ends leases. The reaper ends none for one lease after it first
 * reached the database, and after a second without a look. If this round took so long, another one
 * follows. */
static struct reaper_report tick(void)
{
    struct reaper_report r, sum = {0};
    sweep_state any = SWEEP_RUNNING;
    const struct sweep_query query = {.state = &any};
    struct sweep_page rows;
    ck_ok(sweep_list(s.db, &s.a, &query, &rows, &err), err);
    for (;; clock_sleep_ms(5)) {
        int64_t begin = clock_mono_ns();
        if (!lease_clock_hears(&s.reaper.clock, store_config(s.db)->lease_ms,
                               pg_fixture_i64(s.url, "select " NOW_MS)) ||
            store_up_ns(s.db) < 101 * NS_PER_MS)
            continue;
        ck_ok(reaper_tick(&s.reaper, &r, &err), err);
        sum.runners_lost += r.runners_lost;
        sum.attempts_lost += r.attempts_lost;
        sum.trials_timed_out += r.trials_timed_out;
        sum.ensembles += r.ensembles;
        if (clock_mono_ns() - begin < NS_PER_S)
            return sum;
    }
}

static void expire(const char *runner)
{
    char sql[200];
    snprintf(sql, sizeof sql,
             "update runner set expires_at = now() - interval '1 s' where name = '%s'", runner);
    pg_fixture_exec(s.url, sql);
}

static void keep_alive(void)
{
    pg_fixture_exec(s.url, "update runner set expires_at = now() + interval '1 h'");
}

static void age_claims(void)
{
    pg_fixture_exec(s.url, "update trial set claimed_at = claimed_at - interval '1 h' where state "
                           "= 'running'");
}

START_TEST(registering_again_loses_what_is_not_resumed)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claim_list list = claim(&s, "r", e, 3);
    struct attempt_ref resume[] = {ref_of(&list.rows[1]), {"a", 2, 7}, {"gone", 0, 1}};
    struct registration reg;
    struct runner_register req = {.name = "r", .slots = 8, .resume = resume, .n_resume = 3};
    ck_ok(runner_register(s.db, &s.a, &req, &reg, &err), err);
    ck_assert_int_eq(reg.epoch, e + 1);
    ck_assert_int_eq(reg.lease_ms, 100);
    ck_assert_uint_eq(reg.directives.n, 2);
    ck_assert_int_eq(reg.directives.rows[0].ref.number, 2);
    ck_assert_str_eq(reg.directives.rows[1].reason, "there is no such trial");
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_QUEUED);
    ck_assert_int_eq(trial_of(&s, "a", 0).restarts, 1);
    ck_assert_int_eq(trial_of(&s, "a", 1).state, TRIAL_RUNNING);
    ck_assert_int_eq(trial_of(&s, "a", 2).state, TRIAL_QUEUED);
    struct directive_list d;
    ck_ok(runner_heartbeat(s.db, &s.a, "r", reg.epoch, resume, 1, &d, &err), err);
    ck_assert_uint_eq(d.n, 0);
    ck_fails(runner_heartbeat(s.db, &s.a, "r", e, resume, 1, &d, &err), AS_E_STALE, err, "again");
    ck_fails(runner_heartbeat(s.db, &s.a, "q", 1, resume, 1, &d, &err), AS_E_NOT_FOUND, err, "q");
}
END_TEST

START_TEST(unlisted_attempts_are_lost_after_a_while)
{
    struct directive_list d;
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claimed_row c = claim_one(&s, "r", e);
    struct attempt_ref ref = ref_of(&c);
    pg_fixture_exec(s.url, "update trial set claimed_at = now() + interval '1 h'");
    for (int i = 0; i < 4; i++) /* the answer to its claim may be on its way */
        ck_ok(runner_heartbeat(s.db, &s.a, "r", e, NULL, 0, &d, &err), err);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_RUNNING);
    ck_ok(runner_heartbeat(s.db, &s.a, "r", e, &ref, 1, &d, &err), err);
    pg_fixture_exec(s.url, "update trial set claimed_at = now() - interval '1 h'");
    ck_ok(runner_heartbeat(s.db, &s.a, "r", e, NULL, 0, &d, &err), err); /* one may be a race */
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_RUNNING);
    ck_ok(runner_heartbeat(s.db, &s.a, "r", e, NULL, 0, &d, &err), err);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_QUEUED);
    ck_assert_str_eq(trial_of(&s, "a", 0).reason, "its runner no longer runs it");
    ck_ok(runner_heartbeat(s.db, &s.a, "r", e, &ref, 1, &d, &err), err);
    ck_assert_uint_eq(d.n, 1);
}
END_TEST

START_TEST(leaving_gives_back)
{
    make_sweep(&s, "a", "'max_trials': 9, 'max_restarts': 0", "");
    int64_t e = make_runner(&s, "r", 8);
    claim(&s, "r", e, 2);
    ck_fails(runner_leave(s.db, "r", e + 1, &err), AS_E_STALE, err, "epoch");
    ck_ok(runner_leave(s.db, "r", e, &err), err);
    ck_ok(runner_leave(s.db, "r", e, &err), err);
    ck_fails(runner_leave(s.db, "x", 1, &err), AS_E_NOT_FOUND, err, "'x'");
    struct sweep_row row = sweep_of_id(&s, "a");
    ck_assert_int_eq(row.counts.by_state[TRIAL_QUEUED], 2);
    ck_assert_int_eq(trial_of(&s, "a", 0).restarts, 0);
}
END_TEST

START_TEST(expired_runners_lose_their_trials)
{
    struct directive_list d;
    make_sweep(&s, "a", "'max_trials': 2, 'max_restarts': 1", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claim_list list = claim(&s, "r", e, 2);
    finish(&s, ref_of(&list.rows[1]), 1);
    expire("r");
    struct reaper_report r = tick();
    ck_assert_int_eq(r.runners_lost, 1);
    ck_assert_int_eq(r.attempts_lost, 1);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_QUEUED);
    ck_assert_str_eq(trial_of(&s, "a", 0).reason, "the lease of runner r ran out");
    r = tick();
    ck_assert_int_eq(r.runners_lost, 0);
    /* it is heard again and is live, but its trials are no longer its own */
    struct attempt_ref ref = ref_of(&list.rows[0]);
    ck_ok(runner_heartbeat(s.db, &s.a, "r", e, &ref, 1, &d, &err), err);
    ck_assert_uint_eq(d.n, 1);
    struct claimed_row c = claim_one(&s, "r", e);
    ck_assert_int_eq(c.attempt, 2);
    expire("r");
    r = tick();
    struct trial_row row = trial_of(&s, "a", 0);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_assert_ptr_nonnull(strstr(row.reason, "lost its runner 2 times"));
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_COMPLETED); /* and the sweep is over */
    ck_assert_int_eq(r.ensembles, 1);
}
END_TEST

START_TEST(nobody_expires_before_one_lease_has_passed)
{
    struct service fresh;
    struct reaper_report r;
    make_runner(&s, "r", 8);
    expire("r");
    struct store_opts opts = {.url = s.url, .config = {.lease_ms = 3600 * 1000}};
    ck_ok(store_open(&opts, &fresh.db, &err), err);
    fresh.reaper = (struct reaper){.db = fresh.db};
    for (int i = 0; i < 3; i++) {
        ck_ok(reaper_tick(&fresh.reaper, &r, &err), err);
        ck_assert_int_eq(r.runners_lost, 0);
    }
    store_close(fresh.db);
    ck_assert_int_eq(tick().runners_lost, 1);
}
END_TEST

/* A reaper that did not look for half a lease could not hear runners either, for any reason. */
START_TEST(a_break_gives_every_runner_a_lease)
{
    struct service fresh;
    struct reaper_report r;
    make_runner(&s, "r", 8);
    expire("r");
    int64_t now = pg_fixture_i64(s.url, "select " NOW_MS);
    struct store_opts opts = {.url = s.url, .config = {.lease_ms = 20000}};
    ck_ok(store_open(&opts, &fresh.db, &err), err);
    fresh.reaper = (struct reaper){.db = fresh.db};
    int64_t at = now - 100000;
    for (int i = 0; i < 3; i++, at += 10000)
        (void)lease_clock_hears(&fresh.reaper.clock, opts.config.lease_ms, at);
    ck_assert(lease_clock_hears(&fresh.reaper.clock, opts.config.lease_ms, at));
    ck_ok(reaper_tick(&fresh.reaper, &r, &err), err);
    ck_assert_int_eq(r.runners_lost, 0);
    store_close(fresh.db);
}
END_TEST

/* A lease that is about as short as the time between two looks also ends. */
START_TEST(short_leases_end)
{
    static const int64_t leases_ms[] = {100, 1000, 2000, 3000, 15000};
    for (size_t i = 0; i < AS_ARRAY_LEN(leases_ms); i++) {
        struct store *db = NULL;
        struct store_opts opts = {
            .url = s.url, .config = {.lease_ms = leases_ms[i], .heartbeat_ms = leases_ms[i] / 4}};
        ck_ok(store_open(&opts, &db, &err), err);
        int64_t every_ms = store_config(db)->reaper_ms, at = 1000000;
        ck_assert_int_le(every_ms * 4, leases_ms[i] < 4000 ? leases_ms[i] : 4000);
        struct lease_clock clock = {0};
        bool hears = false;
        for (int64_t end = at + leases_ms[i]; at <= end + every_ms; at += every_ms * 3 / 2)
            hears =
                lease_clock_hears(&clock, leases_ms[i], at); /* the looks themselves take time */
        ck_assert_msg(hears, "a lease of %lld ms", (long long)leases_ms[i]);
        store_close(db);
    }
}
END_TEST

START_TEST(timeouts_have_a_backstop)
{
    make_sweep(&s, "a", "'max_trials': 9, 'trial_timeout': 10, 'grace': 1", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claimed_row c = claim_one(&s, "r", e);
    ck_assert_int_eq(c.timeout_ms, 10000);
    keep_alive(); /* the claim has set its lease */
    ck_assert_int_eq(tick().trials_timed_out, 0);
    age_claims();
    ck_assert_int_eq(tick().trials_timed_out, 1);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_FAILED);
    ck_assert_ptr_nonnull(strstr(trial_of(&s, "a", 0).reason, "trial_timeout"));
}
END_TEST

START_TEST(wall_time_ends_a_sweep)
{
    make_sweep(&s, "a", "'max_trials': 9, 'wall_time': 60", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claim_list list = claim(&s, "r", e, 2);
    finish(&s, ref_of(&list.rows[0]), 1);
    keep_alive();
    tick();
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING);
    pg_fixture_exec(s.url, "update sweep set started_at = now() - interval '2 min'");
    tick();
    struct sweep_row row = sweep_of_id(&s, "a");
    ck_assert_int_eq(row.state, SWEEP_COMPLETED);
    ck_assert_str_eq(row.reason, "wall_time is over");
    ck_assert_int_eq(row.counts.by_state[TRIAL_CANCELLED], 1);
    ck_assert_int_eq(row.counts.by_state[TRIAL_COMPLETED], 1);
    make_sweep(&s, "b", "'max_trials': 9, 'wall_time': 60", "");
    list = claim(&s, "r", e, 2);
    pg_fixture_exec(s.url, "update sweep set started_at = now() - interval '2 min'");
    keep_alive();
    tick();
    row = sweep_of_id(&s, "b");
    ck_assert_int_eq(row.state, SWEEP_FAILED);
    ck_assert_str_eq(row.reason, "wall_time is over, and no trial completed");
}
END_TEST

START_TEST(too_many_failures_fail_a_sweep)
{
    make_sweep(&s, "a", "'max_trials': 9, 'max_failed_trials': 1", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claim_list list = claim(&s, "r", e, 4);
    end(&s, ref_of(&list.rows[0]), OUTCOME_FAILED);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_RUNNING); /* one is allowed */
    end(&s, ref_of(&list.rows[1]), OUTCOME_FAILED);
    struct sweep_row row = sweep_of_id(&s, "a");
    ck_assert_int_eq(row.state, SWEEP_FAILED);
    ck_assert_str_eq(row.reason, "2 trials failed (max_failed_trials is 1)");
    ck_assert_int_eq(row.counts.by_state[TRIAL_CANCELLED], 2);
    ck_assert_uint_eq(claim(&s, "r", e, 4).n, 0);
}
END_TEST

START_TEST(a_sweep_without_a_result_fails)
{
    make_sweep(&s, "a", "'max_trials': 1", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claimed_row c = claim_one(&s, "r", e);
    end(&s, ref_of(&c), OUTCOME_FAILED);
    ck_assert_int_eq(sweep_of_id(&s, "a").state, SWEEP_FINISHING);
    tick();
    struct sweep_row row = sweep_of_id(&s, "a");
    ck_assert_int_eq(row.state, SWEEP_FAILED);
    ck_assert_str_eq(row.reason, "no trial completed");
}
END_TEST

START_TEST(lists)
{
    struct runner_page page;
    struct page_req req = {.size = 2};
    const char *const gpus[] = {"GPU-1", "GPU-2"};
    struct registration reg;
    make_sweep(&s, "a", "'max_trials': 9", "");
    struct runner_register r = {
        .name = "m", .slots = 2, .gpus = gpus, .n_gpus = 2, .host = "h", .version = "0.1"};
    ck_ok(runner_register(s.db, &s.a, &r, &reg, &err), err);
    claim(&s, "m", reg.epoch, 2);
    int64_t e = make_runner(&s, "a", 1);
    make_runner(&s, "z", 1);
    ck_ok(runner_leave(s.db, "a", e, &err), err);
    ck_ok(runner_list(s.db, &s.a, &req, &page, &err), err);
    ck_assert_uint_eq(page.n, 2);
    ck_assert_str_eq(page.rows[0].name, "m"); /* live runners first */
    ck_assert_int_eq(page.rows[0].running, 2);
    ck_assert_str_eq(page.rows[0].gpus, "[\"GPU-1\",\"GPU-2\"]");
    ck_assert_str_eq(page.rows[1].name, "z");
    req.cursor = page.next_cursor;
    ck_ok(runner_list(s.db, &s.a, &req, &page, &err), err);
    ck_assert_uint_eq(page.n, 1);
    ck_assert_str_eq(page.rows[0].state, "left");
    ck_assert_ptr_null(page.next_cursor);
    r.name = "Bad Name";
    ck_fails(runner_register(s.db, &s.a, &r, &reg, &err), AS_E_INVAL, err, "Bad Name");
    r = (struct runner_register){.name = "x", .slots = 0};
    ck_fails(runner_register(s.db, &s.a, &r, &reg, &err), AS_E_INVAL, err, "1024");
}
END_TEST

Suite *test_suite(void)
{
    Suite *su = suite_create("runners");
    /* the shortest lease; the reaper waits for one lease first */
    TCase *c = service_case(su, "runners", &s, 100);
    tcase_add_test(c, registering_again_loses_what_is_not_resumed);
    tcase_add_test(c, unlisted_attempts_are_lost_after_a_while);
    tcase_add_test(c, leaving_gives_back);
    tcase_add_test(c, expired_runners_lose_their_trials);
    tcase_add_test(c, nobody_expires_before_one_lease_has_passed);
    tcase_add_test(c, a_break_gives_every_runner_a_lease);
    tcase_add_test(c, short_leases_end);
    tcase_add_test(c, timeouts_have_a_backstop);
    tcase_add_test(c, wall_time_ends_a_sweep);
    tcase_add_test(c, too_many_failures_fail_a_sweep);
    tcase_add_test(c, a_sweep_without_a_result_fails);
    tcase_add_test(c, lists);
    return su;
}
