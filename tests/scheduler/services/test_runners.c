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
        const struct lease_clock *clock = &s.reaper.clock;
        int64_t begin = clock_mono_ns();
        bool is_up = store_up_ns(s.db) >= 101 * NS_PER_MS;
        ck_ok(reaper_tick(&s.reaper, &r, &err), err);
        sum.runners_lost += r.runners_lost;
        sum.attempts_lost += r.attempts_lost;
        sum.trials_timed_out += r.trials_timed_out;
        sum.ensembles += r.ensembles;
        bool heard = clock->looked_ms - clock->hears_since_ms >= store_config(s.db)->lease_ms;
        if (is_up && heard && clock_mono_ns() - begin < NS_PER_S)
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
    ck_ok(heartbeat(&s, "r", reg.epoch, resume, 1, &d, &err), err);
    ck_assert_uint_eq(d.n, 0);
    ck_fails(heartbeat(&s, "r", e, resume, 1, &d, &err), AS_E_STALE, err, "again");
    ck_fails(heartbeat(&s, "q", 1, resume, 1, &d, &err), AS_E_NOT_FOUND, err, "q");
}
END_TEST

/* Digests as the server stores them. */
#define MINE "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static as_status register_with(const char *secret, const struct attempt_ref *resume,
                               struct registration *ret)
{
    const struct runner_register req = {
        .name = "r", .slots = 4, .secret = secret, .resume = resume, .n_resume = resume ? 1 : 0};
    return runner_register(s.db, &s.a, &req, ret, &err);
}

static as_status claim_with(int64_t epoch, const char *secret, struct claim_list *ret)
{
    const struct claim_request req = {
        .runner = "r", .epoch = epoch, .secret = secret, .claim_id = "c", .max_trials = 1};
    return claim_trials(s.db, NULL, &s.a, &req, ret, &err);
}

/* The name of a live runner is its own. When its lease has ended, another one may have it, but not
 * what the first one ran: its late success still counts. */
START_TEST(a_name_is_free_when_its_lease_has_ended)
{
    const struct attempt_writer mine = {.secret = MINE}, other = {.secret = OTHER};
    const struct measurement m = {.metric = "loss", .value = 1};
    const struct completion done = {.outcome = OUTCOME_COMPLETED, .metrics = &m, .n_metrics = 1};
    struct registration reg, taken;
    struct claim_list list;
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 9", "");
    ck_ok(register_with(MINE, NULL, &reg), err);
    keep_alive();
    ck_ok(claim_with(reg.epoch, MINE, &list), err);
    struct attempt_ref ref = ref_of(&list.rows[0]);
    keep_alive(); /* the claim has renewed the short lease */
    ck_fails(register_with(OTHER, &ref, &taken), AS_E_CONFLICT, err, "another secret");
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_RUNNING);
    expire("r");
    ck_ok(register_with(OTHER, &ref, &taken), err);
    keep_alive();
    ck_assert_int_eq(taken.epoch, reg.epoch + 1);
    ck_assert_uint_eq(taken.directives.n, 1);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_QUEUED);
    ck_fails(claim_with(taken.epoch, MINE, &list), AS_E_DENIED, err, "does not hold the secret");
    ck_fails(claim_with(taken.epoch, NULL, &list), AS_E_DENIED, err, "is missing");
    ck_fails(attempt_complete(s.db, &s.a, &ref, &other, &done, &row, &err), AS_E_DENIED, err,
             "does not hold it");
    ck_ok(attempt_complete(s.db, &s.a, &ref, &mine, &done, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
}
END_TEST

/* A runner that shows its secret resumes, also after its lease has ended. */
START_TEST(the_same_secret_resumes)
{
    struct registration reg, again;
    struct claim_list list;
    make_sweep(&s, "a", "'max_trials': 9", "");
    ck_ok(register_with(MINE, NULL, &reg), err);
    keep_alive();
    ck_ok(claim_with(reg.epoch, MINE, &list), err);
    struct attempt_ref ref = ref_of(&list.rows[0]);
    expire("r");
    ck_ok(register_with(MINE, &ref, &again), err);
    ck_assert_uint_eq(again.directives.n, 0);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_RUNNING);
}
END_TEST

/* A runner, and its attempts, of a server before there were secrets. */
START_TEST(a_runner_without_a_secret_gets_one)
{
    const struct attempt_writer mine = {.secret = MINE};
    struct registration reg;
    struct claim_list list;
    int64_t n = 0;
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t e = make_runner(&s, "r", 4);
    keep_alive();
    struct claimed_row c = claim_one(&s, "r", e);
    struct attempt_ref ref = ref_of(&c);
    ck_ok(register_with(MINE, &ref, &reg), err);
    keep_alive();
    ck_assert_uint_eq(reg.directives.n, 0);
    ck_fails(claim_with(reg.epoch, NULL, &list), AS_E_DENIED, err, "is missing");
    const struct measurement m = {.metric = "loss", .value = 1};
    ck_ok(attempt_measure(s.db, &ref, &mine, &m, 1, &n, &err), err);
    ck_assert_int_eq(n, 1);
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
        ck_ok(heartbeat(&s, "r", e, NULL, 0, &d, &err), err);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_RUNNING);
    ck_ok(heartbeat(&s, "r", e, &ref, 1, &d, &err), err);
    pg_fixture_exec(s.url, "update trial set claimed_at = now() - interval '1 h'");
    ck_ok(heartbeat(&s, "r", e, NULL, 0, &d, &err), err); /* one may be a race */
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_RUNNING);
    ck_ok(heartbeat(&s, "r", e, NULL, 0, &d, &err), err);
    ck_assert_int_eq(trial_of(&s, "a", 0).state, TRIAL_QUEUED);
    ck_assert_str_eq(trial_of(&s, "a", 0).reason, "its runner no longer runs it");
    ck_ok(heartbeat(&s, "r", e, &ref, 1, &d, &err), err);
    ck_assert_uint_eq(d.n, 1);
}
END_TEST

START_TEST(leaving_gives_back)
{
    make_sweep(&s, "a", "'max_trials': 9, 'max_restarts': 0", "");
    int64_t e = make_runner(&s, "r", 8);
    claim(&s, "r", e, 2);
    ck_fails(runner_leave(s.db, &(struct runner_id){"r", e + 1, NULL}, &err), AS_E_STALE, err,
             "epoch");
    ck_ok(runner_leave(s.db, &(struct runner_id){"r", e, NULL}, &err), err);
    ck_ok(runner_leave(s.db, &(struct runner_id){"r", e, NULL}, &err), err);
    ck_fails(runner_leave(s.db, &(struct runner_id){"x", 1, NULL}, &err), AS_E_NOT_FOUND, err,
             "'x'");
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
    ck_ok(heartbeat(&s, "r", e, &ref, 1, &d, &err), err);
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

/* What the runner `r` says of an attempt: trial `number` of sweep a. It holds six. */
static void say(int64_t e, int64_t number, run_phase phase, int64_t ran_ms)
{
    struct attempt_ref all[6];
    for (int64_t i = 0; i < 6; i++)
        all[i] = (struct attempt_ref){.sweep = "a", .number = i, .attempt = 1};
    struct attempt_said said = {.ref = all[number], .phase = phase, .ran_ms = ran_ms};
    struct heartbeat beat = {.epoch = e, .attempts = all, .n = 6, .said = &said, .n_said = 1};
    struct directive_list d;
    ck_ok(runner_heartbeat(s.db, &s.a, &(struct runner_id){"r", e, NULL}, &beat, &d, &err), err);
}

/* All that runners said was said an hour earlier. */
static void age_sayings(void)
{
    pg_fixture_exec(s.url, "update attempt set said_at = said_at - interval '1 h'");
}

static trial_state state_of(int64_t number)
{
    return trial_of(&s, "a", number).state;
}

/* The time of a process counts, not that of an outage, a preparation or a delivery. */
START_TEST(what_ended_in_time_is_no_timeout)
{
    struct trial_row row;
    make_sweep(&s, "a", "'max_trials': 9, 'trial_timeout': 600, 'grace': 1", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claim_list list = claim(&s, "r", e, 6);
    ck_assert_uint_eq(list.n, 6);
    say(e, 0, RUN_ENDED, 600000);
    say(e, 1, RUN_PREPARING, 0);
    say(e, 2, RUN_RUNNING, 1000);
    say(e, 3, RUN_ENDED, 600001);
    say(e, 4, RUN_ENDED, 2000);
    say(e, 4, RUN_RUNNING, 99000); /* an earlier phase: too late */
    keep_alive();
    age_claims();
    ck_assert_int_eq(tick().trials_timed_out, 1); /* of 5 nothing is said */
    ck_assert_int_eq(state_of(5), TRIAL_FAILED);
    age_sayings();
    ck_assert_int_eq(tick().trials_timed_out, 2);
    ck_assert_int_eq(state_of(2), TRIAL_FAILED);
    ck_assert_int_eq(state_of(3), TRIAL_FAILED);
    for (int64_t i = 0; i < 5; i += i ? 3 : 1)
        ck_assert_msg(state_of(i) == TRIAL_RUNNING, "trial %lld", (long long)i);
    /* a process that has begun by now has its whole time */
    say(e, 1, RUN_RUNNING, 10);
    keep_alive();
    ck_assert_int_eq(tick().trials_timed_out, 0);
    struct attempt_ref first = ref_of(&list.rows[0]);
    measure(&s, first, "loss", 1, 0.5);
    struct completion c = {.outcome = OUTCOME_TIMEOUT, .has_ran = true, .ran_ms = 599999};
    ck_fails(attempt_complete(s.db, &s.a, &first, NULL, &c, &row, &err), AS_E_UNSUPPORTED, err,
             "expected at least the trial_timeout");
    ck_assert_str_eq(err.pointer, "/ran_ms");
    c = (struct completion){.outcome = OUTCOME_COMPLETED, .has_ran = true, .ran_ms = 9876};
    ck_ok(attempt_complete(s.db, &s.a, &first, NULL, &c, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    struct trial_detail detail;
    ck_ok(trial_get(s.db, &s.a, "a", 0, &detail, &err), err);
    ck_assert(detail.attempts[0].has_ran && detail.attempts[0].ran_ms == 9876);
}
END_TEST

/* After a restart, and after a break, a runner has a lease to say how its trials are. A runner that
 * registers again says it at once. */
START_TEST(nobody_times_out_while_nobody_can_be_heard)
{
    struct reaper fresh = {.db = s.db};
    struct reaper_report r;
    struct registration reg;
    make_sweep(&s, "a", "'max_trials': 9, 'trial_timeout': 10, 'grace': 1", "");
    int64_t e = make_runner(&s, "r", 8);
    struct claimed_row c = claim_one(&s, "r", e);
    keep_alive();
    age_claims();
    ck_ok(reaper_tick(&fresh, &r, &err), err);
    ck_assert_int_eq(r.trials_timed_out, 0);
    struct attempt_ref ref = ref_of(&c);
    struct attempt_said said = {.ref = ref, .phase = RUN_ENDED, .ran_ms = 2000};
    struct runner_register req = {
        .name = "r", .slots = 8, .resume = &ref, .n_resume = 1, .said = &said, .n_said = 1};
    ck_ok(runner_register(s.db, &s.a, &req, &reg, &err), err);
    keep_alive();
    ck_assert_int_eq(tick().trials_timed_out, 0);
    ck_assert_int_eq(state_of(0), TRIAL_RUNNING);
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
    pg_fixture_exec(s.url, "update sweep_base set started_at = now() - interval '2 min'");
    tick();
    struct sweep_row row = sweep_of_id(&s, "a");
    ck_assert_int_eq(row.state, SWEEP_COMPLETED);
    ck_assert_str_eq(row.reason, "wall_time is over");
    ck_assert_int_eq(row.counts.by_state[TRIAL_CANCELLED], 1);
    ck_assert_int_eq(row.counts.by_state[TRIAL_COMPLETED], 1);
    make_sweep(&s, "b", "'max_trials': 9, 'wall_time': 60", "");
    list = claim(&s, "r", e, 2);
    pg_fixture_exec(s.url, "update sweep_base set started_at = now() - interval '2 min'");
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

static const char *faults_of(const char *name)
{
    struct page_req req = {0};
    struct runner_page page;
    ck_ok(runner_list(s.db, &s.a, &req, &page, &err), err);
    for (size_t i = 0; i < page.n; i++)
        if (strcmp(page.rows[i].name, name) == 0)
            return page.rows[i].gpu_faults;
    return "no such runner";
}

/* They are of an epoch: a runner that starts again begins with the GPUs that it finds then. */
START_TEST(gpus_that_are_set_aside)
{
    static const char one[] = "[{\"gpu\":\"GPU-1\",\"reason\":\"it broke\"}]";
    const char *const gpus[] = {"GPU-1", "GPU-2"};
    struct registration reg;
    struct directive_list d;
    struct runner_register r = {.name = "m", .slots = 2, .gpus = gpus, .n_gpus = 2};
    ck_ok(runner_register(s.db, &s.a, &r, &reg, &err), err);
    ck_assert_str_eq(faults_of("m"), "[]");
    ck_ok(runner_gpu_faults(s.db, &(struct runner_id){"m", reg.epoch, NULL}, one, &err), err);
    ck_assert_str_eq(faults_of("m"), one);
    ck_fails(runner_gpu_faults(s.db, &(struct runner_id){"m", reg.epoch + 1, NULL}, "[]", &err),
             AS_E_STALE, err, "epoch");
    ck_fails(runner_gpu_faults(s.db, &(struct runner_id){"q", 1, NULL}, "[]", &err), AS_E_STALE,
             err, "epoch");
    ck_ok(heartbeat(&s, "m", reg.epoch, NULL, 0, &d, &err), err);
    ck_assert_str_eq(faults_of("m"), one); /* a heartbeat without the list changes nothing */
    r.gpu_faults = one;
    ck_ok(runner_register(s.db, &s.a, &r, &reg, &err), err);
    ck_assert_str_eq(faults_of("m"), one);
    r.gpu_faults = NULL;
    ck_ok(runner_register(s.db, &s.a, &r, &reg, &err), err);
    ck_assert_str_eq(faults_of("m"), "[]");
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
    ck_ok(runner_leave(s.db, &(struct runner_id){"a", e, NULL}, &err), err);
    ck_ok(runner_list(s.db, &s.a, &req, &page, &err), err);
    ck_assert_uint_eq(page.n, 2);
    ck_assert_str_eq(page.rows[0].name, "m"); /* live runners first */
    ck_assert_int_eq(page.rows[0].running, 2);
    ck_assert_str_eq(page.rows[0].gpus, "[\"GPU-1\",\"GPU-2\"]");
    ck_assert_str_eq(page.rows[0].gpu_faults, "[]");
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

static size_t count_runners(void)
{
    struct runner_page page;
    struct page_req req = {.size = 10};
    ck_ok(runner_list(s.db, &s.a, &req, &page, &err), err);
    return page.n;
}

/* A live one stays, however old its row is, and one that holds a trial. */
START_TEST(runners_that_are_gone_are_removed_after_a_day)
{
    make_sweep(&s, "a", "'max_trials': 9", "");
    int64_t gone = make_runner(&s, "gone", 1);
    make_runner(&s, "holds", 1);
    make_runner(&s, "live", 1);
    claim(&s, "holds", 1, 1);
    ck_ok(runner_leave(s.db, &(struct runner_id){"gone", gone, NULL}, &err), err);
    pg_fixture_exec(s.url, "update runner set state = 'lost' where name = 'holds'; update runner "
                           "set expires_at = now() + interval '1 h', seen_at = now() - interval "
                           "'23 h'");
    s.reaper.clock.prune_at_ns = 0;
    tick();
    ck_assert_uint_eq(count_runners(), 3);
    pg_fixture_exec(s.url, "update runner set seen_at = now() - interval '25 h'");
    s.reaper.clock.prune_at_ns = 0;
    tick();
    ck_assert_uint_eq(count_runners(), 2);
}
END_TEST

START_TEST(the_job_and_the_fleet_of_a_runner)
{
    struct runner_page page;
    struct page_req req = {.size = 2};
    struct registration reg;
    struct runner_register r = {.name = "m", .slots = 1, .job = "slurm/1234_7", .fleet = "lab"};
    ck_ok(runner_register(s.db, &s.a, &r, &reg, &err), err);
    ck_ok(runner_list(s.db, &s.a, &req, &page, &err), err);
    ck_assert_str_eq(page.rows[0].job, "slurm/1234_7");
    ck_assert_str_eq(page.rows[0].fleet, "lab");
    r = (struct runner_register){.name = "m", .slots = 1}; /* it was started by hand this time */
    ck_ok(runner_register(s.db, &s.a, &r, &reg, &err), err);
    ck_ok(runner_list(s.db, &s.a, &req, &page, &err), err);
    ck_assert_ptr_null(page.rows[0].job);
    ck_assert_ptr_null(page.rows[0].fleet);
    r.fleet = "My Fleet";
    ck_fails(runner_register(s.db, &s.a, &r, &reg, &err), AS_E_INVAL, err, "My Fleet");
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("runners");
    /* the shortest lease; the reaper waits for one lease first */
    TCase *c = service_case(su, "runners", &s, 100);
    tcase_add_test(c, registering_again_loses_what_is_not_resumed);
    tcase_add_test(c, a_name_is_free_when_its_lease_has_ended);
    tcase_add_test(c, the_same_secret_resumes);
    tcase_add_test(c, a_runner_without_a_secret_gets_one);
    tcase_add_test(c, unlisted_attempts_are_lost_after_a_while);
    tcase_add_test(c, leaving_gives_back);
    tcase_add_test(c, expired_runners_lose_their_trials);
    tcase_add_test(c, nobody_expires_before_one_lease_has_passed);
    tcase_add_test(c, a_break_gives_every_runner_a_lease);
    tcase_add_test(c, short_leases_end);
    tcase_add_test(c, timeouts_have_a_backstop);
    tcase_add_test(c, what_ended_in_time_is_no_timeout);
    tcase_add_test(c, nobody_times_out_while_nobody_can_be_heard);
    tcase_add_test(c, wall_time_ends_a_sweep);
    tcase_add_test(c, too_many_failures_fail_a_sweep);
    tcase_add_test(c, a_sweep_without_a_result_fails);
    tcase_add_test(c, lists);
    tcase_add_test(c, gpus_that_are_set_aside);
    tcase_add_test(c, runners_that_are_gone_are_removed_after_a_day);
    tcase_add_test(c, the_job_and_the_fleet_of_a_runner);
    return su;
}
