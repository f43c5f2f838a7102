/* Claims for slots that are not free yet: which sweeps give, whose turn it is, how many are left
 * for others, and where the time of a trial begins that waited. */
#include <stdio.h>
#include <string.h>

#include "scheduler/assign/sharing.h"
#include "tests/support/check_main.h"
#include "tests/support/service.h"

static struct service s;
static struct as_err err;

/* Claim ahead of the ends of these attempts, for as many slots. */
static struct claim_list claim_ahead(const char *runner, int64_t epoch,
                                     const struct claim_list *running)
{
    static int serial;
    struct claim_list list;
    char id[40];
    struct attempt_ref refs[8];
    for (size_t i = 0; i < running->n; i++)
        refs[i] = ref_of(&running->rows[i]);
    (void)snprintf(id, sizeof id, "ahead-%d", serial++);
    const struct claim_request req = {.runner = runner,
                                      .epoch = epoch,
                                      .claim_id = id,
                                      .max_trials = (int64_t)running->n,
                                      .seats = (int64_t)running->n,
                                      .ending = refs,
                                      .n_ending = running->n,
                                      .is_ahead = true};
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &list, &err), err);
    return list;
}

static int64_t make_runner_with_gpu(const char *name)
{
    static const char *const gpu = "0";
    struct registration r;
    const struct runner_register req = {.name = name,
                                        .slots = 1,
                                        .gpus = &gpu,
                                        .n_gpus = 1,
                                        .cpus = 4,
                                        .memory_bytes = INT64_C(1) << 30};
    ck_ok(runner_register(s.db, &s.a, &req, &r, &err), err);
    return r.epoch;
}

/* A sweep that gives ahead says so with each trial, and others do not, and give nothing ahead. */
static const struct {
    const char *limits, *more;
    bool gives;
} kinds[] = {
    {"'max_trials': 9", "", true},
    {"'max_trials': 9, 'max_failed_trials': 3, 'trial_timeout': '1m'", ", 'priority': 3", true},
    {"'max_trials': 9, 'max_concurrent_trials': 8", "", false},
    {"'max_trials': 9, 'max_restarts': 0", "", false},
    {"'max_trials': 9", ", 'resources': {'gpus': 1}", false},
    {"'max_trials': 9", ", 'resources': {'cpus': 1}", false},
    {"'max_trials': 9", ", 'resources': {'memory': '1MiB'}", false},
    {"'max_trials': 9", ", 'resources': {'exclusive': true}", false},
    {"'max_trials': 9",
     ", 'early_stopping': {'method': 'asha', 'min_steps': 1, 'max_steps': 4, 'eta': 2}", false},
    {"'max_trials': 9, 'max_steps': 1000",
     ", 'early_stopping': {'method': 'asha', 'min_steps': 1, 'max_steps': 4, 'eta': 2}", false},
};

START_TEST(which_sweeps_give)
{
    int64_t e = make_runner_with_gpu("r");
    (void)make_sweep(&s, "a", kinds[_i].limits, kinds[_i].more);
    struct claim_list list;
    const struct claim_request req = {
        .runner = "r", .epoch = e, .claim_id = "first", .max_trials = 1, .seats = 1, .gpus = 1};
    ck_ok(claim_trials(s.db, NULL, &s.a, &req, &list, &err), err);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_int_eq(list.rows[0].gives_ahead, kinds[_i].gives);
    ck_assert_uint_eq(claim_ahead("r", e, &list).n, kinds[_i].gives);
}
END_TEST

START_TEST(a_method_that_learns_gives_nothing)
{
    int64_t e = make_runner(&s, "r", 1);
    (void)make_learner(&s, "a", "'max_trials': 9", ", 'trial': {'command': ['true']}");
    struct claim_list list = claim(&s, "r", e, 1);
    ck_assert_uint_eq(list.n, 1);
    ck_assert(!list.rows[0].gives_ahead);
    struct claim_list more = claim_ahead("r", e, &list);
    ck_assert_uint_eq(more.n, 0);
    ck_assert(!more.awaits_ends); /* it is no reason to wait */
}
END_TEST

START_TEST(a_grid_gives)
{
    int64_t e = make_runner(&s, "r", 1);
    (void)make_grid(&s, "a", 9, "");
    struct claim_list list = claim(&s, "r", e, 1);
    ck_assert_uint_eq(claim_ahead("r", e, &list).n, 1);
}
END_TEST

START_TEST(one_for_each_slot)
{
    int64_t e = make_runner(&s, "r", 2);
    (void)make_sweep(&s, "a", "'max_trials': 99", "");
    struct claim_list list = claim(&s, "r", e, 2);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_uint_eq(claim_ahead("r", e, &list).n, 2);
    ck_assert_uint_eq(claim_ahead("r", e, &list).n, 0);
    ck_assert_uint_eq(claim(&s, "r", e, 2).n, 0);
}
END_TEST

/* Nothing waits while it might run elsewhere: as many trials as run or wait are left. */
START_TEST(the_last_ones_are_not_given)
{
    int64_t e = make_runner(&s, "r", 1), other = make_runner(&s, "other", 2);
    (void)make_sweep(&s, "a", "'max_trials': 6", "");
    struct claim_list one = claim(&s, "r", e, 1), two = claim(&s, "other", other, 2);
    ck_assert_uint_eq(claim_ahead("other", other, &two).n, 0); /* 3 run, 3 are left */
    finish(&s, ref_of(&one.rows[0]), 1);
    ck_assert_uint_eq(claim_ahead("other", other, &two).n, 0); /* 2 and 3 */
    finish(&s, ref_of(&two.rows[0]), 1);
    two.rows++;
    two.n = 1;
    ck_assert_uint_eq(claim_ahead("other", other, &two).n, 1); /* 1 and 3, 2 and 2 afterwards */
    ck_assert_uint_eq(claim_ahead("r", e, &(struct claim_list){.rows = one.rows, .n = 1}).n, 0);
    ck_assert_uint_eq(claim(&s, "r", e, 1).n, 1);
}
END_TEST

START_TEST(a_paused_sweep_gives_nothing)
{
    int64_t e = make_runner(&s, "r", 1);
    (void)make_sweep(&s, "a", "'max_trials': 99", "");
    struct claim_list list = claim(&s, "r", e, 1);
    struct sweep_changed changed;
    const sweep_state paused = SWEEP_PAUSED;
    const struct sweep_patch patch = {.state = &paused};
    ck_ok(sweep_change(s.db, &s.a, "a", &patch, NULL, &changed, &err), err);
    ck_assert_uint_eq(claim_ahead("r", e, &list).n, 0);
}
END_TEST

/* The slot belongs to the sweep whose turn it will be. If that gives nothing ahead, nor does
 * another. */
START_TEST(turns_hold)
{
    int64_t e = make_runner(&s, "r", 1);
    (void)make_sweep(&s, "a", "'max_trials': 99", "");
    struct claim_list list = claim(&s, "r", e, 1);
    (void)make_sweep(&s, "b", "'max_trials': 99, 'max_concurrent_trials': 9", "");
    ck_assert_uint_eq(claim_ahead("r", e, &list).n, 0);
    finish(&s, ref_of(&list.rows[0]), 1);
    list = claim(&s, "r", e, 1);
    ck_assert_str_eq(list.rows[0].sweep, "b");
    struct claim_list more = claim_ahead("r", e, &list);
    ck_assert_uint_eq(more.n, 1);
    ck_assert_str_eq(more.rows[0].sweep, "a");
}
END_TEST

START_TEST(what_a_sweep_lacks_is_nobodys)
{
    int64_t want = 5;
    ck_assert_int_eq(share_ahead(3, 3, &want), 3);
    ck_assert_int_eq(want, 5);
    ck_assert_int_eq(share_ahead(3, 2, &want), 2);
    ck_assert_int_eq(want, 2);
    ck_assert_int_eq(share_ahead(1, 0, &want), 0);
    ck_assert_int_eq(want, 0);
}
END_TEST

/* ---- times ---- */

/* Let everything have been claimed ten seconds ago. */
static void age(void)
{
    pg_fixture_exec(s.url, "update trial set claimed_at = claimed_at - interval '10 s', started_at "
                           "= started_at - interval '10 s'");
    pg_fixture_exec(s.url, "update attempt set started_at = started_at - interval '10 s'");
}

/* How long after its claim the trial, and its latest attempt, started. */
static int64_t trial_after_ms(void)
{
    return pg_fixture_i64(s.url, "select coalesce(round(extract(epoch from started_at - "
                                 "claimed_at) * 1000), -1)::bigint from trial");
}

static int64_t attempt_after_ms(void)
{
    return pg_fixture_i64(s.url, "select round(extract(epoch from x.started_at - t.claimed_at) * "
                                 "1000)::bigint from trial t join attempt x on x.sweep_key = "
                                 "t.sweep_key and x.number = t.number and x.attempt = t.attempt");
}

static void end_after(const struct claimed_row *c, attempt_outcome outcome, int64_t waited_ms,
                      int64_t ran_ms)
{
    const struct attempt_ref ref = ref_of(c);
    const struct measurement m = {-1, "loss", 1};
    struct completion end = {.outcome = outcome,
                             .has_ran = true,
                             .ran_ms = ran_ms,
                             .waited_ms = waited_ms,
                             .metrics = &m,
                             .n_metrics = outcome == OUTCOME_COMPLETED};
    struct trial_row row;
    ck_ok(attempt_complete(s.db, &s.a, &ref, NULL, &end, &row, &err), err);
}

START_TEST(a_trial_starts_when_it_has_waited)
{
    int64_t e = make_runner(&s, "r", 1);
    (void)make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", e);
    age();
    end_after(&c, OUTCOME_COMPLETED, 4000, 50);
    ck_assert_int_eq(trial_after_ms(), 4000);
    ck_assert_int_eq(attempt_after_ms(), 4000);
}
END_TEST

START_TEST(it_never_starts_after_its_end)
{
    int64_t e = make_runner(&s, "r", 1);
    (void)make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", e);
    end_after(&c, OUTCOME_COMPLETED, INT64_C(1000000000), 50);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from trial where started_at <= "
                                           "finished_at"),
                     1);
    ck_assert_int_eq(
        pg_fixture_i64(s.url, "select count(*) from attempt where started_at <= ended_at"), 1);
}
END_TEST

/* What is given back before it had a process starts with the next attempt; a trial that ran has
 * started with its first one. */
START_TEST(a_trial_that_never_ran_has_no_start)
{
    int64_t e = make_runner(&s, "r", 1);
    (void)make_sweep(&s, "a", "'max_trials': 1", "");
    struct claimed_row c = claim_one(&s, "r", e);
    age();
    end_after(&c, OUTCOME_RELEASED, 0, 0);
    ck_assert_int_eq(trial_after_ms(), -1);
    c = claim_one(&s, "r", e);
    ck_assert_int_eq(trial_after_ms(), 0);
    age();
    end_after(&c, OUTCOME_RELEASED, 3000, 70);
    ck_assert_int_eq(trial_after_ms(), 3000);
    int64_t before = trial_of(&s, "a", 0).started_ms;
    c = claim_one(&s, "r", e);
    end_after(&c, OUTCOME_RELEASED, 0, 0);
    ck_assert_int_eq(trial_of(&s, "a", 0).started_ms, before);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("claims_ahead");
    TCase *c = service_case(su, "ahead", &s, 0);
    tcase_add_loop_test(c, which_sweeps_give, 0, (int)AS_ARRAY_LEN(kinds));
    tcase_add_test(c, a_method_that_learns_gives_nothing);
    tcase_add_test(c, a_grid_gives);
    tcase_add_test(c, one_for_each_slot);
    tcase_add_test(c, the_last_ones_are_not_given);
    tcase_add_test(c, a_paused_sweep_gives_nothing);
    tcase_add_test(c, turns_hold);
    tcase_add_test(c, what_a_sweep_lacks_is_nobodys);
    tcase_add_test(c, a_trial_starts_when_it_has_waited);
    tcase_add_test(c, it_never_starts_after_its_end);
    tcase_add_test(c, a_trial_that_never_ran_has_no_start);
    return su;
}
