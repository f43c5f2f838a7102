/* Handing out trials: what each policy takes from a suggester, the order of the queue and of the
 * cells of a grid, limits, groups, and what a look leaves behind. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "scheduler/assign/assignment_priv.h"
#include "scheduler/store/client_store.h"
#include "tests/support/check_main.h"
#include "tests/scheduler/assign/grouped.h"

#define LONG_MS 30000 /* a wait whose end no test reaches */

static struct suggester *sg;
static const struct owner me = {.client = "me"};

/* While the gate is shut, the search thread stops after each suggestion that it publishes. */
static atomic_bool is_shut;
static sem_t gate;

static void on_ready(void *ctx)
{
    (void)ctx;
    if (atomic_load(&is_shut))
        (void)sem_wait(&gate);
}

static void open_gate(void)
{
    if (atomic_exchange(&is_shut, false))
        (void)sem_post(&gate);
}

static void open_all(void)
{
    (void)sem_init(&gate, 0, 0);
    open_grouped();
}

static void close_all(void)
{
    open_gate();
    suggester_free(sg);
    sg = NULL;
    close_grouped();
    (void)sem_destroy(&gate);
}

/* patience_ms: how long a look that may wait does so; negative: it does not. */
static void start_suggester(int64_t patience_ms)
{
    const struct suggester_opts opts = {
        .threads = 1, .patience_ms = patience_ms, .on_ready = on_ready};
    ck_ok(suggester_create(s.db, &opts, &sg, &err), err);
}

static int64_t key_of(const char *sweep)
{
    char sql[100];
    snprintf(sql, sizeof sql, "select key from sweep where id = '%s'", sweep);
    return pg_fixture_i64(s.url, sql);
}

static struct assignment begin(assign_policy policy)
{
    return (struct assignment){.db = s.db,
                               .a = &s.a,
                               .sg = sg,
                               .owner = &me,
                               .policy = policy,
                               .arrived_ns = clock_mono_ns()};
}

/* One look, as claims and asks make it. `asg` is open. True: another look is worth it. */
static bool look(struct assignment *asg, const char *sweep, int64_t slots, int64_t room)
{
    int64_t key = key_of(sweep), until = 0;
    struct tx_run run = tx_run_start(s.db, TX_WRITE, &err);
    while (tx_run_again(&run)) {
        struct sweep_head head;
        run.status = store_client_lease(run.tx, key, me.client, NULL, 600000, &until, &err);
        if (run.status == AS_OK)
            run.status = store_sweep_lock(run.tx, &s.a, key, &head, &err);
        if (run.status == AS_OK)
            run.status = assignment_take(run.tx, asg, &head, slots, room, &err);
    }
    ck_ok(run.status, err);
    return assignment_done(asg);
}

static struct assignment open_at(assign_policy policy, const char *sweep)
{
    struct assignment asg = begin(policy);
    ck_ok(assignment_open(&asg, key_of(sweep), &err), err);
    ck_assert(asg.is_there);
    return asg;
}

/* Open, look once, close. Returns the number of trials that began. */
static int64_t take_once(assign_policy policy, const char *sweep, int64_t slots, int64_t room)
{
    struct assignment asg = open_at(policy, sweep);
    (void)look(&asg, sweep, slots, room);
    assignment_close(&asg);
    return asg.got;
}

/* The place of the sweep. */
static struct search_place place_now(const char *sweep)
{
    struct assignment asg = open_at(ASSIGN_READY, sweep);
    (void)look(&asg, sweep, 0, 0); /* takes nothing, only finds its place */
    ck_assert_int_eq(asg.got, 0);
    assignment_close(&asg);
    return asg.place;
}

/* Ask for n suggestions, and wait until the first `ready` of them are there. */
static struct search_place prepare(const char *sweep, size_t n, size_t ready)
{
    struct search_place place = place_now(sweep);
    int64_t until = clock_mono_ns() + PATIENCE_MS * NS_PER_MS;
    (void)suggester_want(sg, &place, n, false);
    while (suggester_ready(sg, &place, n) < ready) {
        ck_assert_int_lt(clock_mono_ns(), until);
        clock_sleep_ms(1);
    }
    return place;
}

/* One suggestion is ready. Two more are being computed and do not become ready. */
static struct search_place prepare_one_of_three(const char *sweep)
{
    atomic_store(&is_shut, true);
    struct search_place place = prepare(sweep, 3, 1);
    ck_assert_uint_eq(suggester_ready(sg, &place, 3), 1);
    return place;
}

static void enqueue_point(const char *sweep)
{
    struct trial_row row;
    JSON_AUTO body = json_of("{'params': {'x': 0.5, 'y': 0.5}}");
    ck_ok(trial_add(s.db, &s.a, sweep, body, NULL, &row, &err), err);
}

/* A sweep "a" whose method learns, and its suggester. */
static void start_learner(int64_t patience_ms)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    start_suggester(patience_ms);
}

/* ---- policies ---- */

START_TEST(ready_takes_what_there_is_and_does_not_wait)
{
    start_learner(LONG_MS);
    prepare_one_of_three("a");
    struct assignment asg = open_at(ASSIGN_READY, "a");
    int64_t begun_ns = clock_mono_ns();
    ck_assert(!look(&asg, "a", 3, 3));
    ck_assert_int_lt(clock_mono_ns() - begun_ns, LONG_MS * NS_PER_MS);
    ck_assert_int_eq(asg.got, 1);
    ck_assert_int_eq(asg.slots, 1);
    ck_assert_uint_eq(asg.lacking, 2);
    ck_assert_int_eq(asg.place.number, 1);
    assignment_close(&asg);
    struct suggester_figures f;
    suggester_figures_get(sg, &f);
    ck_assert_int_eq(f.taken, 1);
}
END_TEST

START_TEST(ready_takes_nothing_where_nothing_is)
{
    start_learner(-1);
    struct assignment asg = open_at(ASSIGN_READY, "a");
    (void)look(&asg, "a", 3, 3);
    ck_assert_int_eq(asg.got, 0);
    ck_assert_uint_eq(asg.lacking, 3);
    assignment_close(&asg);
}
END_TEST

START_TEST(a_brief_wait_is_as_long_as_the_patience)
{
    start_learner(60);
    prepare_one_of_three("a");
    struct assignment asg = open_at(ASSIGN_BRIEF_WAIT, "a");
    int64_t begun_ns = clock_mono_ns();
    ck_assert(!look(&asg, "a", 3, 3)); /* without success */
    ck_assert_int_ge(clock_mono_ns() - begun_ns, 60 * NS_PER_MS);
    ck_assert_int_eq(asg.got, 1);
    ck_assert_uint_eq(asg.lacking, 2);
    assignment_close(&asg);
}
END_TEST

START_TEST(a_brief_wait_brings_another_look)
{
    start_learner(LONG_MS);
    struct assignment asg = open_at(ASSIGN_BRIEF_WAIT, "a");
    ck_assert(look(&asg, "a", 3, 3));
    ck_assert_int_eq(asg.got, 0);
    ck_assert(!look(&asg, "a", 3, 3));
    ck_assert_int_eq(asg.got, 3);
    ck_assert_uint_eq(asg.lacking, 0);
    assignment_close(&asg);
}
END_TEST

START_TEST(all_takes_all_or_nothing)
{
    start_learner(-1);
    prepare_one_of_three("a");
    struct assignment asg = open_at(ASSIGN_ALL, "a");
    ck_assert(!look(&asg, "a", 3, 3));
    ck_assert_int_eq(asg.got, 0);
    ck_assert_uint_eq(asg.lacking, 3);
    open_gate();
    prepare("a", 3, 3);
    (void)look(&asg, "a", 3, 3);
    ck_assert_int_eq(asg.got, 3);
    assignment_close(&asg);
}
END_TEST

START_TEST(all_leaves_the_queue_out)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    enqueue_point("a");
    start_suggester(-1);
    prepare_one_of_three("a");
    struct assignment asg = open_at(ASSIGN_ALL, "a");
    (void)look(&asg, "a", 3, 3);
    ck_assert_int_eq(asg.got, 1); /* a queued trial needs no suggestion */
    ck_assert_uint_eq(asg.lacking, 2);
    assignment_close(&asg);
}
END_TEST

/* Nothing before GROUP_PATIENCE_MS have passed since the history was read; then what is ready. */
START_TEST(a_whole_group_is_waited_for_so_long)
{
    start_learner(LONG_MS);
    struct search_place place = prepare_one_of_three("a");
    int64_t end_ns = suggester_since(sg, &place) + GROUP_PATIENCE_MS * NS_PER_MS;
    struct assignment asg = open_at(ASSIGN_WHOLE_GROUP_READY, "a");
    (void)look(&asg, "a", 3, 3);
    int64_t early = asg.got, looked_ns = clock_mono_ns();
    ck_assert(early == 0 || looked_ns >= end_ns);
    if (early == 0) {
        ck_assert_uint_eq(asg.lacking, 3);
        while (clock_mono_ns() < end_ns)
            clock_sleep_ms(1);
        ck_assert(!look(&asg, "a", 3, 3));
    }
    ck_assert_int_eq(asg.got, 1);
    ck_assert_int_lt(clock_mono_ns() - looked_ns, LONG_MS * NS_PER_MS);
    assignment_close(&asg);
}
END_TEST

START_TEST(a_whole_group_is_taken_at_once_when_it_is_ready)
{
    start_learner(-1);
    prepare("a", 3, 3);
    ck_assert_int_eq(take_once(ASSIGN_WHOLE_GROUP, "a", 3, 3), 3);
    prepare("a", 2, 2);
    ck_assert_int_eq(take_once(ASSIGN_WHOLE_GROUP_READY, "a", 2, 2), 2);
}
END_TEST

START_TEST(queued_trials_do_not_wait_for_the_rest_of_a_group)
{
    make_learner(&s, "a", "'max_trials': 20", "");
    enqueue_point("a");
    start_suggester(LONG_MS);
    prepare_one_of_three("a");
    ck_assert_int_eq(take_once(ASSIGN_WHOLE_GROUP_READY, "a", 3, 3), 2);
}
END_TEST

START_TEST(a_whole_group_waits_in_the_thread)
{
    start_learner(LONG_MS);
    struct assignment asg = open_at(ASSIGN_WHOLE_GROUP, "a");
    ck_assert(look(&asg, "a", 3, 3));
    ck_assert_int_eq(asg.got, 0);
    ck_assert(!look(&asg, "a", 3, 3));
    ck_assert_int_eq(asg.got, 3);
    assignment_close(&asg);
}
END_TEST

START_TEST(methods_that_do_not_learn_give_at_once)
{
    static const assign_policy all[] = {ASSIGN_READY, ASSIGN_BRIEF_WAIT, ASSIGN_WHOLE_GROUP_READY,
                                        ASSIGN_WHOLE_GROUP, ASSIGN_ALL};
    make_sweep(&s, "a", "'max_trials': 20", "");
    for (size_t i = 0; i < AS_ARRAY_LEN(all); i++)
        ck_assert_int_eq(take_once(all[i], "a", 2, 9), 2);
    ck_assert_int_eq(count("state = 'running'"), 10);
}
END_TEST

/* ---- cells and limits ---- */

/* Take in a transaction that is rolled back. */
static void take_in_vain(struct assignment *asg, const char *sweep, int64_t slots)
{
    struct tx_run run = tx_run_start(s.db, TX_WRITE, NULL);
    while (tx_run_again(&run)) {
        struct sweep_head head;
        int64_t until;
        ck_ok(store_client_lease(run.tx, key_of(sweep), me.client, NULL, 600000, &until, &err),
              err);
        ck_ok(store_sweep_lock(run.tx, &s.a, key_of(sweep), &head, &err), err);
        ck_ok(assignment_take(run.tx, asg, &head, slots, slots, &err), err);
        ck_assert_int_eq(asg->got, slots);
        run.status = AS_E_CONFLICT;
    }
    ck_assert_int_eq(run.status, AS_E_CONFLICT);
}

static void check_cells(int n)
{
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(distinct params->>'i') from trial"), n);
    ck_assert_int_eq(count("true"), n);
    ck_assert_int_eq(count("number <> (params->>'i')::int - 1"), 0); /* in the grid's order */
}

START_TEST(each_cell_of_a_grid_is_handed_out_once)
{
    static const int64_t slots[] = {1, 4, 2, 3, 5, 1};
    make_grid(&s, "a", 12, "");
    int64_t got = 0;
    for (size_t i = 0; i < AS_ARRAY_LEN(slots); i++)
        got += take_once(ASSIGN_READY, "a", slots[i], 99);
    ck_assert_int_eq(got, 12);
    check_cells(12);
}
END_TEST

START_TEST(a_look_that_is_rolled_back_loses_no_cell)
{
    make_grid(&s, "a", 6, "");
    struct assignment asg = open_at(ASSIGN_READY, "a");
    take_in_vain(&asg, "a", 3);
    ck_assert_int_eq(count("true"), 0);
    (void)look(&asg, "a", 2, 2);
    take_in_vain(&asg, "a", 4);
    (void)look(&asg, "a", 4, 4);
    ck_assert_int_eq(asg.got, 4);
    assignment_close(&asg);
    check_cells(6);
}
END_TEST

START_TEST(what_was_released_comes_before_new_cells)
{
    struct trial_row row;
    make_grid(&s, "a", 4, "");
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 3, 3), 3);
    const struct ask_ref ref = {.sweep = "a", .number = 1, .client = "me"};
    const struct completion released = {.outcome = OUTCOME_RELEASED};
    ck_ok(ask_complete(s.db, &s.a, &ref, &released, &row, &err), err);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 1, 9), 1);
    ck_assert_int_eq(trial_of(&s, "a", 1).attempt, 2);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 9, 9), 1);
    check_cells(4);
}
END_TEST

START_TEST(slots_room_and_max_trials_bound)
{
    make_sweep(&s, "a", "'max_trials': 7", "");
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 2, 9), 2);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 9, 1), 1);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 0, 9), 0);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 9, 0), 0);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", -3, 9), 0);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 9, -3), 0);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 9, 9), 4);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 9, 9), 0);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 7);
}
END_TEST

START_TEST(max_trials_bounds_a_search_that_learns)
{
    make_learner(&s, "a", "'max_trials': 3", "");
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 9, 9), 0);
    struct assignment asg = open_at(ASSIGN_ALL, "a"); /* with its own suggester */
    ck_assert_ptr_nonnull(asg.own);
    ck_assert(look(&asg, "a", 9, 9));
    ck_assert_uint_eq(asg.lacking, 3);
    ck_assert(!look(&asg, "a", 9, 9));
    ck_assert_int_eq(asg.got, 3);
    assignment_close(&asg);
    ck_assert_int_eq(sweep_of_id(&s, "a").counts.total, 3);
}
END_TEST

START_TEST(a_sweep_that_is_gone_is_no_error)
{
    struct assignment asg = begin(ASSIGN_READY);
    ck_ok(assignment_open(&asg, 77, &err), err);
    ck_assert(!asg.is_there);
    assignment_close(&asg);
}
END_TEST

/* ---- groups ---- */

/* Groups are for runners. */
static struct assignment open_group_at(const char *sweep, const struct group_limits *limits)
{
    static const struct owner runner = {.runner = "r", .epoch = 1, .claim_id = "c"};
    struct assignment asg = open_at(ASSIGN_READY, sweep);
    asg.owner = &runner;
    asg.groups = limits;
    return asg;
}

START_TEST(a_group_takes_one_slot)
{
    const struct group_limits limits = {.members = 4};
    ck_assert_int_eq(make_runner(&s, "r", 9), 1);
    make_train("a", "random", "8", "'max_trials': 30", "");
    struct assignment asg = open_group_at("a", &limits);
    (void)look(&asg, "a", 2, 99);
    ck_assert_int_eq(asg.got, 8);
    ck_assert_int_eq(asg.slots, 2);
    assignment_close(&asg);
    ck_assert_int_eq(count("group_id = 'a.g0.1'"), 4);
    ck_assert_int_eq(count("group_id = 'a.g4.1'"), 4);
    ck_assert_int_eq(take_once(ASSIGN_READY, "a", 2, 99), 2); /* without limits: each alone */
    ck_assert_int_eq(count("group_id is null"), 2);
}
END_TEST

/* A later look of the same assignment fills the groups that it opened; a fresh one opens others. */
START_TEST(a_group_stays_open_between_looks)
{
    const struct group_limits limits = {.members = 4};
    ck_assert_int_eq(make_runner(&s, "r", 9), 1);
    make_train("a", "gp", "8", "'max_trials': 30", ", 'resources': {'group': 4}");
    start_suggester(-1);
    struct assignment asg = open_group_at("a", &limits);
    prepare("a", 3, 3);
    (void)look(&asg, "a", 1, 99);
    ck_assert_int_eq(asg.got, 3);
    ck_assert_int_eq(asg.slots, 1);
    ck_assert_uint_eq(asg.lacking, 1);
    prepare("a", 3, 3);
    (void)look(&asg, "a", 0, 99);
    ck_assert_int_eq(asg.got, 1);
    ck_assert_int_eq(asg.slots, 0);
    assignment_close(&asg);
    ck_assert_int_eq(count("group_id = 'a.g0.1' and state = 'running'"), 4);
    asg = open_group_at("a", &limits);
    prepare("a", 2, 2);
    (void)look(&asg, "a", 1, 99);
    assignment_close(&asg);
    ck_assert_int_eq(count("group_id = 'a.g0.1'"), 4);
    ck_assert_int_ge(count("group_id = 'a.g4.1'"), 2);
}
END_TEST

START_TEST(a_fit_takes_no_slot)
{
    const struct group_limits limits = {.members = 4}, fit = {.fit = {"a.g0.1", 2}};
    ck_assert_int_eq(make_runner(&s, "r", 9), 1);
    make_train("a", "random", "8", "'max_trials': 30", "");
    struct assignment asg = open_group_at("a", &limits);
    (void)look(&asg, "a", 1, 2);
    ck_assert_int_eq(asg.got, 2);
    assignment_close(&asg);
    asg = open_group_at("a", &fit);
    asg.fit = (struct open_group){
        .id = "a.g0.1", .shape = trial_of(&s, "a", 0).shape, .places = 4, .free = 2};
    (void)look(&asg, "a", 5, 99);
    ck_assert_int_eq(asg.got, 2);
    assignment_close(&asg);
    ck_assert_int_eq(count("group_id = 'a.g0.1'"), 4);
    ck_assert_int_eq(count("true"), 4);
}
END_TEST

/* ---- names ---- */

START_TEST(inactive_parameters_are_named_in_order)
{
    JSON_AUTO doc = json_of("{'parameters': {'c': {}, 'a': {}, 'b': {}}}");
    JSON_AUTO params = json_of("{'a': 1}");
    JSON_AUTO none = json_object();
    const char **names = NULL;
    size_t n = 0;
    ck_ok(inactive_names(&s.a, doc, params, &names, &n, &err), err);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(names[0], "c");
    ck_assert_str_eq(names[1], "b");
    ck_ok(inactive_names(&s.a, doc, none, &names, &n, &err), err);
    ck_assert_uint_eq(n, 3);
    ck_ok(inactive_names(&s.a, none, params, &names, &n, &err), err);
    ck_assert_uint_eq(n, 0);
}
END_TEST

TEST_SUITE()
{
    Suite *su = suite_create("assignment");
    TCase *c = tcase_create("assignment");
    pg_fixture_start();
    tcase_add_checked_fixture(c, open_all, close_all);
    tcase_add_test(c, ready_takes_what_there_is_and_does_not_wait);
    tcase_add_test(c, ready_takes_nothing_where_nothing_is);
    tcase_add_test(c, a_brief_wait_is_as_long_as_the_patience);
    tcase_add_test(c, a_brief_wait_brings_another_look);
    tcase_add_test(c, all_takes_all_or_nothing);
    tcase_add_test(c, all_leaves_the_queue_out);
    tcase_add_test(c, a_whole_group_is_waited_for_so_long);
    tcase_add_test(c, a_whole_group_is_taken_at_once_when_it_is_ready);
    tcase_add_test(c, queued_trials_do_not_wait_for_the_rest_of_a_group);
    tcase_add_test(c, a_whole_group_waits_in_the_thread);
    tcase_add_test(c, methods_that_do_not_learn_give_at_once);
    tcase_add_test(c, each_cell_of_a_grid_is_handed_out_once);
    tcase_add_test(c, a_look_that_is_rolled_back_loses_no_cell);
    tcase_add_test(c, what_was_released_comes_before_new_cells);
    tcase_add_test(c, slots_room_and_max_trials_bound);
    tcase_add_test(c, max_trials_bounds_a_search_that_learns);
    tcase_add_test(c, a_sweep_that_is_gone_is_no_error);
    tcase_add_test(c, a_group_takes_one_slot);
    tcase_add_test(c, a_group_stays_open_between_looks);
    tcase_add_test(c, a_fit_takes_no_slot);
    tcase_add_test(c, inactive_parameters_are_named_in_order);
    suite_add_tcase(su, c);
    return su;
}
