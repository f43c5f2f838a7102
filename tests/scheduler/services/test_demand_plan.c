/* What waits, from sweeps and runners as rows. */
#include "scheduler/services/demand_plan.h"

#include "base/mem.h"
#include "tests/support/check_main.h"

#define GIB (INT64_C(1) << 30)

static struct arena a;
static struct as_err err;

static void close_arena(void)
{
    arena_done(&a);
}

static struct demand_sweep sweep_of(int64_t room)
{
    return (struct demand_sweep){.room = room, .group = 1, .ranks = 1, .since_ms = 1000};
}

static struct demand_runner runner_of(int64_t slots)
{
    return (struct demand_runner){
        .slots = slots, .cpus = 8, .memory_bytes = 16 * GIB, .takes_seats = true};
}

#define PLAN(sweeps, runners) plan_of(sweeps, AS_ARRAY_LEN(sweeps), runners, AS_ARRAY_LEN(runners))
static struct demand plan_of(const struct demand_sweep *sweeps, size_t n_sweeps,
                             struct demand_runner *runners, size_t n_runners)
{
    struct demand d = {0};
    ck_ok(demand_plan(sweeps, n_sweeps, runners, n_runners, &a, &d, &err), err);
    return d;
}

START_TEST(nothing_waits_for_nothing)
{
    struct demand_runner r[] = {runner_of(2)};
    struct demand d = plan_of(NULL, 0, r, 1);
    ck_assert_int_eq(d.slots, 0);
    ck_assert_int_eq(d.since_ms, 0);
    ck_assert_int_eq(d.free_slots, 2);
    ck_assert_int_eq(d.runners, 1);
    ck_assert_uint_eq(d.n, 0);
}
END_TEST

START_TEST(without_runners_all_waits)
{
    struct demand_sweep s[] = {sweep_of(5), sweep_of(3), sweep_of(2)};
    s[1].gpus = 1;
    s[2].since_ms = 500;
    struct demand d = plan_of(s, 3, NULL, 0);
    ck_assert_int_eq(d.slots, 10);
    ck_assert_int_eq(d.since_ms, 500);
    ck_assert_uint_eq(d.n, 2);
    ck_assert_int_eq(d.kinds[0].slots, 7);
    ck_assert_int_eq(d.kinds[0].sweeps, 2);
    ck_assert_int_eq(d.kinds[0].since_ms, 500);
    ck_assert_int_eq(d.kinds[1].slots, 3);
    ck_assert_int_eq(d.kinds[1].gpus, 1);
    ck_assert_int_eq(d.kinds[1].since_ms, 1000);
}
END_TEST

START_TEST(free_slots_are_taken_first)
{
    struct demand_sweep s[] = {sweep_of(5)};
    struct demand_runner r[] = {runner_of(2), runner_of(4)};
    r[1].slots_used = 3;
    ck_assert_int_eq(PLAN(s, r).slots, 2);
    struct demand_runner more[] = {runner_of(9)};
    struct demand d = PLAN(s, more);
    ck_assert_int_eq(d.slots, 0);
    ck_assert_int_eq(d.free_slots, 4);
}
END_TEST

START_TEST(cores_memory_and_gpus_bound_what_fits)
{
    struct demand_sweep cores[] = {sweep_of(5)}, memory[] = {sweep_of(5)}, gpus[] = {sweep_of(5)},
                        large[] = {sweep_of(1)};
    cores[0].cpus = 3;
    memory[0].memory_bytes = 6 * GIB;
    gpus[0].gpus = 2;
    large[0].cpus = 64;
    struct demand_runner r[] = {runner_of(4)};
    ck_assert_int_eq(PLAN(cores, r).slots, 3); /* 2 of 8 cores are left */
    r[0] = runner_of(4);
    ck_assert_int_eq(PLAN(memory, r).slots, 3);
    r[0] = runner_of(4);
    r[0].gpus = 4;
    r[0].gpus_used = 1;
    ck_assert_int_eq(PLAN(gpus, r).slots, 4);
    r[0] = runner_of(4);
    ck_assert_int_eq(PLAN(large, r).slots, 1);
    ck_assert_int_eq(PLAN(large, r).free_slots, 4);
}
END_TEST

/* Two runners of one machine that use its cores together; a third one has its own. */
START_TEST(cores_that_are_shared_are_taken_once)
{
    struct demand_sweep s[] = {sweep_of(9)};
    s[0].cpus = 2;
    struct demand_runner r[] = {runner_of(4), runner_of(4)};
    r[0].machine = r[1].machine = "m";
    r[0].shares = r[1].shares = true;
    ck_assert_int_eq(PLAN(s, r).slots, 5); /* 4 pairs of 8 cores */
    struct demand_runner own[] = {runner_of(4), runner_of(4)};
    own[0].machine = own[1].machine = "m";
    ck_assert_int_eq(PLAN(s, own).slots, 1);
}
END_TEST

START_TEST(a_whole_machine)
{
    struct demand_sweep s[] = {sweep_of(3), sweep_of(4)};
    s[0].is_exclusive = true;
    struct demand_runner r[] = {runner_of(2), runner_of(2), runner_of(2), runner_of(2)};
    r[0].machine = r[1].machine = "busy";
    r[1].slots_used = 1;
    r[2].machine = r[3].machine = "idle";
    struct demand d = PLAN(s, r);
    ck_assert_uint_eq(d.n, 2);
    ck_assert(d.kinds[0].is_exclusive);
    ck_assert_int_eq(d.kinds[0].slots, 2);
    ck_assert_int_eq(d.kinds[1].slots, 1); /* 3 on the busy machine, none beside the trial */
    ck_assert_int_eq(d.free_slots, 0);
}
END_TEST

START_TEST(the_ranks_of_a_gang)
{
    struct demand_sweep s[] = {sweep_of(2)};
    s[0].is_gang = true;
    s[0].ranks = 4;
    s[0].gpus = 1;
    struct demand d = plan_of(s, 1, NULL, 0);
    ck_assert_int_eq(d.slots, 8);
    ck_assert_int_eq(d.kinds[0].ranks, 4);
    s[0].kept = 3; /* of the gang that gathers; they are used on their runner */
    s[0].missing = 1;
    ck_assert_int_eq(plan_of(s, 1, NULL, 0).slots, 6);
    struct demand_runner r[] = {runner_of(4), runner_of(4)};
    r[0].gpus = r[1].gpus = 8;
    r[1].takes_seats = false; /* such as one that fills a group */
    ck_assert_int_eq(PLAN(s, r).slots, 2);
}
END_TEST

START_TEST(trials_of_one_shape_share_a_slot)
{
    struct demand_sweep s[] = {sweep_of(65)};
    s[0].group = 64;
    ck_assert_int_eq(plan_of(s, 1, NULL, 0).slots, 2);
    s[0].room = 64;
    ck_assert_int_eq(plan_of(s, 1, NULL, 0).slots, 1);
    s[0].room = 0;
    ck_assert_int_eq(plan_of(s, 1, NULL, 0).slots, 0);
}
END_TEST

START_TEST(more_kinds_than_are_listed)
{
    static struct demand_sweep s[DEMAND_KINDS_MAX + 10];
    for (size_t i = 0; i < AS_ARRAY_LEN(s); i++) {
        s[i] = sweep_of(1);
        s[i].cpus = (int64_t)i + 1;
    }
    struct demand d = plan_of(s, AS_ARRAY_LEN(s), NULL, 0);
    ck_assert_int_eq(d.slots, DEMAND_KINDS_MAX + 10);
    ck_assert_uint_eq(d.n, DEMAND_KINDS_MAX);
}
END_TEST

TEST_SUITE()
{
    Suite *s = suite_create("demand_plan");
    TCase *t = tcase_create("demand_plan");
    tcase_add_checked_fixture(t, NULL, close_arena);
    tcase_add_test(t, nothing_waits_for_nothing);
    tcase_add_test(t, without_runners_all_waits);
    tcase_add_test(t, free_slots_are_taken_first);
    tcase_add_test(t, cores_memory_and_gpus_bound_what_fits);
    tcase_add_test(t, cores_that_are_shared_are_taken_once);
    tcase_add_test(t, a_whole_machine);
    tcase_add_test(t, the_ranks_of_a_gang);
    tcase_add_test(t, trials_of_one_shape_share_a_slot);
    tcase_add_test(t, more_kinds_than_are_listed);
    suite_add_tcase(s, t);
    return s;
}
