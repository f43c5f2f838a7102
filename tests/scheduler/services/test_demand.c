/* What waits, over a database: limits, states, gangs that gather, two servers. */
#include "scheduler/services/demand.h"

#include "base/mem.h"
#include "tests/scheduler/assign/ranks.h"
#include "tests/support/check_main.h"

static struct demand now(void)
{
    struct demand d = {0};
    ck_ok(demand_now(s.db, &s.a, &d, &err), err);
    return d;
}

START_TEST(limits_and_live_runners_bound_it)
{
    make_sweep(&s, "a", "'max_trials': 9, 'max_concurrent_trials': 4",
               ", 'resources': {'cpus': 2, 'memory': '1GiB'}");
    struct demand d = now();
    ck_assert_int_eq(d.slots, 4);
    ck_assert_uint_eq(d.n, 1);
    ck_assert_int_eq(d.kinds[0].cpus, 2);
    ck_assert_int_eq(d.kinds[0].memory_bytes, INT64_C(1) << 30);
    ck_assert(d.since_ms > 0 && d.since_ms <= d.now_ms);
    struct registration reg;
    struct runner_register r = {
        .name = "r", .slots = 3, .cpus = 4, .memory_bytes = INT64_C(8) << 30};
    ck_ok(runner_register(s.db, &s.a, &r, &reg, &err), err);
    d = now(); /* two fit in its cores, before and after it has claimed them */
    ck_assert_int_eq(d.slots, 2);
    ck_assert_int_eq(d.free_slots, 1);
    ck_assert_uint_eq(claim(&s, "r", reg.epoch, 3).n, 2);
    d = now();
    ck_assert_int_eq(d.slots, 2);
    ck_assert_int_eq(d.free_slots, 1);
    ck_assert_int_eq(d.runners, 1);
    ck_ok(runner_leave(s.db, &(struct runner_id){"r", reg.epoch, NULL}, &err), err);
    d = now();
    ck_assert_int_eq(d.slots, 4);
    ck_assert_int_eq(d.runners, 0);
    pause_sweep("a");
    ck_assert_int_eq(now().slots, 0);
}
END_TEST

START_TEST(what_clients_run_waits_for_no_runner)
{
    make_learner(&s, "a", "'max_trials': 9", ""); /* it has no trial */
    ck_assert_int_eq(now().slots, 0);
}
END_TEST

START_TEST(priorities_come_first)
{
    make_sweep(&s, "low", "'max_trials': 5", "");
    make_sweep(&s, "high", "'max_trials': 2", ", 'priority': 5, 'resources': {'gpus': 1}");
    struct demand d = now();
    ck_assert_uint_eq(d.n, 2);
    ck_assert_int_eq(d.kinds[0].gpus, 1);
    ck_assert_int_eq(d.kinds[1].slots, 5);
}
END_TEST

START_TEST(a_gang_that_gathers)
{
    make_train("g", "random", "8, 16", "'max_trials': 1", ", 'resources': {'ranks': 4}");
    int64_t a = make_runner(&s, "a", 2), b = make_runner(&s, "b", 2);
    ck_assert_int_eq(now().kinds[0].ranks, 4);
    ck_assert_int_eq(now().slots, 4); /* neither has said that it takes ranks */
    (void)claim_ranks("b", b, 1);
    ck_assert_int_eq(now().slots, 2);
    (void)claim_ranks("a", a, 2);
    ck_assert_int_eq(now().slots, 0); /* two are kept, two fit */
    ck_ok(runner_leave(s.db, &(struct runner_id){"b", b, NULL}, &err), err);
    struct demand d = now();
    ck_assert_int_eq(d.slots, 2);
    ck_assert_int_eq(d.free_slots, 0);
}
END_TEST

START_TEST(an_elastic_gang_that_lacks_ranks)
{
    make_elastic("g", "'max_trials': 1", 1);
    (void)start_gang("g", "r", 3);
    ck_assert_int_eq(now().slots, 0);
    ck_ok(ends(seat(1), OUTCOME_RELEASED, 0), err);
    ck_assert_int_eq(now().slots, 0); /* its runner has a free slot again */
    pg_fixture_exec(s.url, "update runner set slots = 2");
    struct demand d = now();
    ck_assert_int_eq(d.slots, 1);
    ck_assert_int_eq(d.kinds[0].ranks, 3);
}
END_TEST

/* The other one has only just begun, and knows nothing but rows. */
START_TEST(each_server_answers_the_same)
{
    struct store *other = NULL;
    struct demand d, same;
    make_sweep(&s, "a", "'max_trials': 9", ", 'resources': {'cpus': 1}");
    make_sweep(&s, "b", "'max_trials': 3", ", 'resources': {'exclusive': true}");
    make_runner(&s, "r", 2);
    d = now();
    ck_ok(store_open(&(struct store_opts){.url = s.url}, &other, &err), err);
    ck_ok(demand_now(other, &s.a, &same, &err), err);
    store_close(other);
    ck_assert_int_eq(same.slots, d.slots);
    ck_assert_int_eq(same.since_ms, d.since_ms);
    ck_assert_int_eq(same.free_slots, d.free_slots);
    ck_assert_uint_eq(same.n, d.n);
    for (size_t i = 0; i < d.n; i++) {
        ck_assert_int_eq(same.kinds[i].slots, d.kinds[i].slots);
        ck_assert_int_eq(same.kinds[i].since_ms, d.kinds[i].since_ms);
        ck_assert_int_eq(same.kinds[i].is_exclusive, d.kinds[i].is_exclusive);
    }
}
END_TEST

/* Trials that are queued say their ranks; those that are not made count as the smallest. */
START_TEST(ranks_that_the_search_chooses)
{
    struct sweep_row row;
    json_t *doc = json_of("{'name': 'g', 'metric': {'name': 'loss', 'goal': 'minimize'}, "
                          "'parameters': {'n': {'type': 'categorical', 'values': [4, 2, 3]}}, "
                          "'search': {'method': 'grid'}, 'trial': {'command': ['a']}, 'resources': "
                          "{'ranks': '${n}', 'gpus': 0}, 'ensemble': false}");
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    json_decref(doc);
    struct demand d = now();
    ck_assert_uint_eq(d.n, 1);
    ck_assert_int_eq(d.kinds[0].ranks, 2);
    ck_assert_int_eq(d.slots, 6);
    int64_t a = make_runner(&s, "a", 4);
    const struct claim_request one = {.runner = "a", .epoch = a, .max_trials = 4, .seats = 1};
    (void)take(&one); /* trial 0 is made, and one slot kept for it */
    d = now();
    ck_assert_uint_eq(d.n, 1); /* three slots are free for its other ranks, and one is over */
    ck_assert_int_eq(d.kinds[0].ranks, 2);
    ck_assert_int_eq(d.slots, 4);
    ck_ok(runner_leave(s.db, &(struct runner_id){"a", a, NULL}, &err), err);
    pg_fixture_exec(s.url, "delete from gathering_seat"); /* as the next claim does */
    d = now();
    ck_assert_uint_eq(d.n, 2);
    ck_assert_int_eq(d.kinds[0].ranks, 4);
    ck_assert_int_eq(d.kinds[0].slots, 4);
    ck_assert_int_eq(d.kinds[1].slots, 4);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("demand");
    TCase *t = tcase_create("demand");
    pg_fixture_start();
    tcase_add_checked_fixture(t, open_grouped, close_grouped);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, limits_and_live_runners_bound_it);
    tcase_add_test(t, what_clients_run_waits_for_no_runner);
    tcase_add_test(t, priorities_come_first);
    tcase_add_test(t, a_gang_that_gathers);
    tcase_add_test(t, ranks_that_the_search_chooses);
    tcase_add_test(t, an_elastic_gang_that_lacks_ranks);
    tcase_add_test(t, each_server_answers_the_same);
    suite_add_tcase(suite, t);
    return suite;
}
