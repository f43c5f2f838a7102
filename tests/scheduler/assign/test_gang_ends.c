/* Gangs whose runners go, and gangs that end from outside or wait for each other. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "scheduler/lifecycle/gang_repair.h"
#include "tests/scheduler/assign/ranks.h"
#include "tests/support/check_main.h"

/* ---- runners ---- */

/* Two runners: a has ranks 0 and 1, b has rank 2. */
static void start_on_two(int64_t *ret_a, int64_t *ret_b)
{
    *ret_a = make_runner(&s, "a", 2);
    *ret_b = make_runner(&s, "b", 1);
    (void)claim(&s, "a", *ret_a, 1);
    const struct claim_request b = {.runner = "b", .epoch = *ret_b, .max_trials = 1, .seats = 1};
    (void)take(&b);
    ck_assert_uint_eq(claim_ranks("a", *ret_a, 2).n, 0);
    struct claim_list list = take(&b);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_uint_eq(claim_ranks("a", *ret_a, 2).n, 2);
    for (int64_t i = 0; i < 3; i++)
        ck_ok(listens(seat(i), NULL), err);
    for (int64_t i = 0; i < 3; i++)
        ck_ok(joins(seat(i), 1, 0), err);
}

/* The seats of this runner, from the first one on. */
static int64_t seats_on(const char *runner, int64_t *ret)
{
    struct gang_detail d = world_of("g", 0, 1);
    int64_t n = 0;
    for (size_t i = 0; i < d.n_seats; i++)
        if (as_streq(d.seats[i].runner, runner) && seat_state_is_live(d.seats[i].state))
            ret[n++] = d.seats[i].seat;
    return n;
}

START_TEST(a_lost_runner_loses_its_ranks)
{
    int64_t a, b, mine[3], theirs[3];
    make_elastic("g", "'max_trials': 1", 1);
    start_on_two(&a, &b);
    ck_assert_int_eq(seats_on("a", mine), 2);
    ck_assert_int_eq(seats_on("b", theirs), 1);
    ck_assert_int_eq(mine[0] < theirs[0], mine[1] < theirs[0]); /* side by side */
    pg_fixture_exec(s.url, "update runner set state = 'lost' where name = 'b'");
    int64_t n = 0;
    ck_ok(gangs_drop_orphans(s.db, NULL, &n, &err), err);
    ck_assert_int_eq(n, 1);
    check_world(GANG_RUNNING, 2, 1);
    ck_assert_int_eq(seats_on("b", theirs), 0);
    /* it comes back with the same epoch, and must stop */
    struct directive_list stop = {0};
    struct gang_detail d = world_of("g", 0, 1);
    for (size_t i = 0; i < d.n_seats; i++)
        if (as_streq(d.seats[i].runner, "b"))
            beat("b", b, &d.seats[i].seat, 1, 3, &stop);
    ck_assert_uint_eq(stop.n, 1);
    ck_assert(stop.rows[0].is_rank);
    ck_assert_ptr_nonnull(strstr(stop.rows[0].reason, "cannot be heard"));
}
END_TEST

/* It is one change of the world, not one for each of its ranks. */
START_TEST(a_lost_host_is_one_change)
{
    int64_t a, b, mine[3], n = 0;
    make_elastic("g", "'max_trials': 1", 1);
    start_on_two(&a, &b);
    ck_assert_int_eq(seats_on("a", mine), 2);
    pg_fixture_exec(s.url, "update runner set state = 'lost' where name = 'a'");
    ck_ok(gangs_drop_orphans(s.db, NULL, &n, &err), err);
    ck_assert_int_eq(n, 2);
    check_world(GANG_RUNNING, 2, 2);
    ck_assert_int_eq(seats_on("a", mine), 0);
    ck_ok(gangs_drop_orphans(s.db, NULL, &n, &err), err);
    ck_assert_int_eq(n, 0);
}
END_TEST

START_TEST(the_reaper_finds_them)
{
    int64_t a, b;
    make_elastic("g", "'max_trials': 1", 1);
    start_on_two(&a, &b);
    pg_fixture_exec(s.url,
                    "update runner set expires_at = now() - interval '1 h' where name = 'b'");
    struct reaper_report report = {0};
    int64_t until_ns = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    while (report.runners_lost == 0 && clock_mono_ns() < until_ns) {
        struct timespec pause = {.tv_nsec = 100000000};
        nanosleep(&pause, NULL);
        pg_fixture_exec(s.url, "update runner set expires_at = now() + interval '1 h' where name = "
                               "'a'");
        ck_ok(reaper_tick(&s.reaper, &report, &err), err);
    }
    ck_assert_int_eq(report.runners_lost, 1);
    ck_assert_int_eq(report.gangs_changed, 1);
    check_world(GANG_RUNNING, 2, 1);
}
END_TEST

START_TEST(a_runner_that_leaves_is_no_death)
{
    int64_t a, b;
    make_elastic("g", "'max_trials': 1", 1);
    start_on_two(&a, &b);
    const struct runner_id id = {"b", b, NULL};
    ck_ok(runner_leave(s.db, &id, &err), err);
    check_world(GANG_RUNNING, 2, 0);
    /* all leave: nothing is left */
    const struct runner_id other = {"a", a, NULL};
    ck_ok(runner_leave(s.db, &other, &err), err);
    ck_assert_int_eq(trial_of(&s, "g", 0).state, TRIAL_QUEUED);
    ck_assert_int_eq(trial_of(&s, "g", 0).restarts, 0); /* it was handed back */
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from attempt where outcome = "
                                           "'released'"),
                     1);
}
END_TEST

/* The rank that leads is told first; another finds that it has gone, and asks for a new try. */
START_TEST(a_rank_that_stops_after_a_decision_is_no_death)
{
    make_elastic("g", "'max_trials': 1", 1);
    (void)start_gang("g", "a", 3);
    pg_fixture_exec(s.url, "update trial set decision = 'prune', reason = 'it was behind'");
    ck_ok(ends_after(seat(1), OUTCOME_RETRY, 1), err);
    check_world(GANG_RUNNING, 2, 0);
    ck_assert_int_eq(state_of(1), SEAT_LEFT);
    pg_fixture_exec(s.url, "update trial set decision = null, reason = null");
    ck_ok(ends_after(seat(2), OUTCOME_RETRY, 2), err); /* without one it is */
    check_world(GANG_RUNNING, 3, 1);
}
END_TEST

START_TEST(a_runner_that_registers_again_resumes_its_ranks)
{
    int64_t a, b, mine[3];
    make_elastic("g", "'max_trials': 1", 1);
    start_on_two(&a, &b);
    ck_assert_int_eq(seats_on("a", mine), 2);
    struct registration reg;
    /* both of a first registration without a secret are not its own later: so it has one here */
    pg_fixture_exec(s.url, "update runner set secret = repeat('0', 64) where name = 'a'; update "
                           "gang_seat set secret = repeat('0', 64) where runner = 'a'");
    const struct seat_said said[] = {{.ref = seat(mine[0])}, {.ref = seat(9)}};
    struct runner_register req = {
        .name = "a",
        .slots = 2,
        .seats = said,
        .n_seats = 2,
        .secret = "0000000000000000000000000000000000000000000000000000000000000000"};
    ck_ok(runner_register(s.db, &s.a, &req, &reg, &err), err);
    ck_assert_uint_eq(reg.directives.n, 1);
    ck_assert_int_eq(reg.directives.rows[0].seat, 9);
    check_world(GANG_RUNNING, 2, 1); /* the one that it did not list is lost */
    ck_assert_int_eq(state_of(mine[0]), SEAT_RUNNING);
    ck_assert_int_eq(state_of(mine[1]), SEAT_LOST);
    /* writes of its older life need the secret */
    ck_fails(writes(seat(mine[0]), 2, 1), AS_E_DENIED, err, "is missing");
    ck_fails(calls_lost(seat(mine[0]), 2, mine[1]), AS_E_DENIED, err, "is missing");
    ck_fails(ends(seat(mine[0]), OUTCOME_RETRY, 1), AS_E_DENIED, err, "is missing");
    struct gang_detail d;
    const struct attempt_ref ref = seat(0).attempt;
    const struct gang_caller stranger = {.secret = "1"}, admin = {.is_admin = true};
    ck_ok(gang_world_get(s.db, &s.a, &ref, &stranger, &d, &err), err);
    ck_assert(!d.shows_secret);
    ck_ok(gang_world_get(s.db, &s.a, &ref, &admin, &d, &err), err);
    ck_assert(d.shows_secret);
}
END_TEST

START_TEST(a_rank_that_is_not_listed_is_lost)
{
    int64_t a, b, mine[3];
    struct directive_list none = {0};
    make_elastic("g", "'max_trials': 1", 1);
    start_on_two(&a, &b);
    ck_assert_int_eq(seats_on("a", mine), 2);
    beat("a", a, mine, 2, 17, &none);
    ck_assert_int_eq(world_of("g", 0, 1).gang.step, 17);
    ck_assert_int_eq(world_of("g", 0, 1).seats[mine[0]].sent_bytes, 7);
    beat("a", a, mine, 1, 18, &none);
    beat("a", a, mine, 1, 18, &none);
    ck_assert_int_eq(state_of(mine[1]),
                     SEAT_RUNNING); /* the answer to its claim may be on its way */
    pg_fixture_exec(s.url, "update gang_seat set seated_at = now() - interval '1 h'");
    beat("a", a, mine, 1, 18, &none);
    ck_assert_int_eq(state_of(mine[1]), SEAT_LOST);
    ck_assert_int_eq(state_of(mine[0]), SEAT_RUNNING);
    check_world(GANG_RUNNING, 2, 1);
    ck_assert_uint_eq(none.n, 0);
}
END_TEST

/* ---- ends from outside ---- */

START_TEST(a_cancelled_trial_stops_every_rank)
{
    struct trial_row row;
    struct directive_list stop = {0};
    make_elastic("g", "'max_trials': 1", 1);
    int64_t a = start_gang("g", "a", 3);
    ck_ok(trial_cancel(s.db, &s.a, "g", 0, &row, &err), err);
    beat("a", a, (int64_t[]){0, 1, 2}, 3, 1, &stop);
    ck_assert_uint_eq(stop.n, 3);
    for (int64_t i = 0; i < 3; i++) {
        ck_assert(stop.rows[i].is_rank && stop.rows[i].seat == i);
        ck_assert_str_eq(stop.rows[i].reason, "cancelled by a user");
    }
    check_world(GANG_OVER, 1, 0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from held"), 0);
}
END_TEST

START_TEST(a_paused_sweep_keeps_its_ranks)
{
    struct directive_list stop = {0};
    make_elastic("g", "'max_trials': 2", 1);
    int64_t a = start_gang("g", "a", 3);
    pause_sweep("g");
    beat("a", a, (int64_t[]){0, 1, 2}, 3, 1, &stop);
    ck_assert_uint_eq(stop.n, 0);
    ck_ok(writes(seat(0), 1, 1), err);
    cancel_sweep("g");
    beat("a", a, (int64_t[]){0, 1, 2}, 3, 1, &stop);
    ck_assert_uint_eq(stop.n, 3);
    ck_assert_ptr_nonnull(strstr(stop.rows[0].reason, "the sweep is cancelled"));
    ck_ok(sweep_delete(s.db, "g", &err), err);
    beat("a", a, (int64_t[]){0, 1, 2}, 3, 1, &stop);
    ck_assert_uint_eq(stop.n, 3);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gang_seat"), 0);
}
END_TEST

START_TEST(a_timeout_ends_the_gang)
{
    make_elastic("g", "'max_trials': 1, 'trial_timeout': 60", 1);
    start_gang("g", "a", 3);
    ck_fails(ends(seat(1), OUTCOME_TIMEOUT, -15), AS_E_UNSUPPORTED, err, "trial_timeout");
    ck_assert_str_eq(err.pointer, "/outcome");
    /* who takes a place gets the time that is left */
    ck_ok(ends(seat(2), OUTCOME_RETRY, -9), err);
    pg_fixture_exec(s.url, "update gang set started_at = started_at - interval '50 s', begun_at = "
                           "begun_at - interval '50 s'");
    int64_t b = make_runner(&s, "b", 1);
    int64_t left = claim_ranks("b", b, 1).rows[0].timeout_ms;
    ck_assert(left > 5000 && left <= 10000);
    pg_fixture_exec(s.url, "update gang set begun_at = begun_at - interval '11 s'");
    ck_ok(ends(seat(1), OUTCOME_TIMEOUT, -15), err);
    struct trial_row row = trial_of(&s, "g", 0);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_assert_ptr_nonnull(strstr(row.reason, "rank 1 on runner a"));
}
END_TEST

START_TEST(the_backstop_counts_from_epoch_1)
{
    static const char *const overdue =
        "select count(*) from trial where state = 'failed' and reason like '%trial_timeout%'";
    make_elastic("g", "'max_trials': 1, 'trial_timeout': 60, 'grace': 1", 1);
    start_gang("g", "a", 3);
    pg_fixture_exec(s.url,
                    "update trial set claimed_at = now() - interval '1 h'; update runner set "
                    "expires_at = now() + interval '1 h'");
    struct reaper_report report = {0};
    int64_t until = clock_mono_ns() + 17 * NS_PER_S;
    while (clock_mono_ns() < until) { /* until it hears: for a lease */
        struct timespec pause = {.tv_nsec = 200000000};
        nanosleep(&pause, NULL);
        ck_ok(reaper_tick(&s.reaper, &report, &err), err);
    }
    ck_assert_int_eq(pg_fixture_i64(s.url, overdue), 0); /* they prepared for most of the hour */
    pg_fixture_exec(s.url, "update gang set started_at = now() - interval '1 h'; update gang_seat "
                           "set phase = 'ended', ran_ms = 59000 where seat = 0");
    ck_ok(reaper_tick(&s.reaper, &report, &err), err);
    ck_assert_int_eq(pg_fixture_i64(s.url, overdue), 0); /* its result is on the way */
    pg_fixture_exec(s.url, "update gang_seat set phase = 'running'");
    ck_ok(reaper_tick(&s.reaper, &report, &err), err);
    ck_assert_int_eq(report.trials_timed_out, 1);
    check_world(GANG_OVER, 1, 0);
}
END_TEST

/* Two gangs that each wait for what the other holds: the younger one starts again. */
START_TEST(two_gangs_do_not_wait_for_each_other)
{
    make_elastic("g", "'max_trials': 1", 3);
    start_gang("g", "a", 3);
    make_elastic("h", "'max_trials': 1", 3);
    int64_t b = make_runner(&s, "b", 3);
    ck_assert_uint_eq(claim_ranks("b", b, 3).n, 3);
    for (int64_t i = 0; i < 3; i++)
        ck_ok(listens(seat_of("h", 0, 1, i), NULL), err);
    ck_ok(calls_lost(seat(0), 1, 1), err);
    ck_ok(calls_lost(seat_of("h", 0, 1, 0), 1, 1), err);
    int64_t n = 0;
    ck_ok(gangs_tend(s.db, &n, &err), err);
    ck_assert_int_eq(n, 0); /* not yet */
    pg_fixture_exec(s.url, "update gang set changed_at = now() - interval '1 h'");
    ck_ok(gangs_tend(s.db, &n, &err), err);
    check_world(GANG_WAITING, 2, 1);
    ck_assert_int_eq(trial_of(&s, "h", 0).state, TRIAL_QUEUED);
    ck_assert_int_eq(trial_of(&s, "h", 0).restarts, 0);
    /* its slots go to the older one, before it gathers itself */
    pg_fixture_exec(s.url, "update gang_seat set ended_at = now() - interval '1 h' where state = "
                           "'lost'");
    struct claim_list list = claim_ranks("b", b, 3);
    ck_assert_uint_ge(list.n, 1);
    ck_assert_str_eq(list.rows[0].sweep, "g");
}
END_TEST

/* A gang that waits comes before the one that gathers, which gives slots back for it. */
START_TEST(a_waiting_gang_comes_before_a_gathering_one)
{
    make_elastic("g", "'max_trials': 1", 3);
    start_gang("g", "a", 3);
    make_train("h", "random", "8, 16", "'max_trials': 1", ", 'resources': {'ranks': 4}");
    int64_t b = make_runner(&s, "b", 1);
    ck_assert_uint_eq(claim_ranks("b", b, 1).n, 0);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gathering_seat"), 1);
    ck_ok(calls_lost(seat(0), 1, 1), err);
    struct claim_list list = claim_ranks("b", b, 1);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_str_eq(list.rows[0].sweep, "g");
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from gathering_seat"), 0);
}
END_TEST

/* One runner dies before its rank listens, and nobody takes its place. */
START_TEST(a_gang_begins_late_with_fewer)
{
    make_elastic("g", "'max_trials': 1", 2);
    int64_t a = make_runner(&s, "a", 3);
    ck_assert_uint_eq(claim_ranks("a", a, 3).n, 3);
    ck_ok(listens(seat(1), NULL), err);
    ck_ok(listens(seat(2), NULL), err);
    ck_ok(ends(seat(0), OUTCOME_RETRY, -9), err);
    check_world(GANG_GATHERING, 0, 1);
    int64_t n = 0;
    ck_ok(gangs_tend(s.db, &n, &err), err);
    check_world(GANG_GATHERING, 0, 1);
    pg_fixture_exec(s.url, "update gang_seat set since = now() - interval '1 h'");
    ck_ok(gangs_tend(s.db, &n, &err), err);
    check_world(GANG_RUNNING, 1, 1);
    ck_ok(writes(seat(1), 1, 1), err);
}
END_TEST

START_TEST(events_tell_what_happened)
{
    char text[400];
    make_elastic("g", "'max_trials': 1", 3);
    start_gang("g", "a", 3);
    ck_ok(calls_lost(seat(0), 1, 2), err);
    pg_fixture_text(s.url,
                    "select string_agg(state || ' ' || epoch || coalesce(' ' || seat || ' ' || "
                    "runner, ''), ', ' order by id) from event_each where type = 'gang.changed'",
                    text, sizeof text);
    ck_assert_str_eq(text, "gathering 0, running 1, running 1 0 a, running 1 1 a, running 1 2 a, "
                           "lost 1 2 a, waiting 2");
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/assign/gang_ends");
    TCase *t = tcase_create("gangs");
    pg_fixture_start();
    tcase_add_checked_fixture(t, open_grouped, close_grouped);
    tcase_add_test(t, a_lost_runner_loses_its_ranks);
    tcase_add_test(t, a_lost_host_is_one_change);
    tcase_add_test(t, the_reaper_finds_them);
    tcase_add_test(t, a_runner_that_leaves_is_no_death);
    tcase_add_test(t, a_rank_that_stops_after_a_decision_is_no_death);
    tcase_add_test(t, a_runner_that_registers_again_resumes_its_ranks);
    tcase_add_test(t, a_rank_that_is_not_listed_is_lost);
    tcase_add_test(t, a_cancelled_trial_stops_every_rank);
    tcase_add_test(t, a_paused_sweep_keeps_its_ranks);
    tcase_add_test(t, a_timeout_ends_the_gang);
    tcase_add_test(t, the_backstop_counts_from_epoch_1);
    tcase_add_test(t, two_gangs_do_not_wait_for_each_other);
    tcase_add_test(t, a_waiting_gang_comes_before_a_gathering_one);
    tcase_add_test(t, a_gang_begins_late_with_fewer);
    tcase_add_test(t, events_tell_what_happened);
    suite_add_tcase(suite, t);
    return suite;
}
