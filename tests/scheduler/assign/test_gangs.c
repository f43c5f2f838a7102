/* Worlds: epochs, fences, lost and new ranks, and the ends of gangs. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "scheduler/lifecycle/gang_repair.h"
#include "tests/scheduler/assign/ranks.h"
#include "tests/support/check_main.h"

static const struct gang_caller anybody = {.is_runner = true};

START_TEST(epoch_1_begins_when_all_listen)
{
    struct gang_detail world;
    make_elastic("g", "'max_trials': 1", 1);
    int64_t a = make_runner(&s, "a", 3);
    ck_assert_uint_eq(claim_ranks("a", a, 3).n, 3);
    check_world(GANG_GATHERING, 0, 0);
    ck_fails(joins(seat(0), 1, 0), AS_E_STALE, err, "not current");
    ck_fails(writes(seat(0), 1, 1), AS_E_STALE, err, "epoch");
    ck_ok(listens(seat(0), &world), err);
    ck_ok(listens(seat(2), &world), err);
    ck_assert_int_eq(world.gang.epoch, 0);
    ck_ok(listens(seat(2), &world), err); /* a repeat */
    ck_ok(listens(seat(1), &world), err);
    ck_assert_int_eq(world.gang.epoch, 1);
    ck_assert_int_eq(world.gang.state, GANG_RUNNING);
    ck_assert_uint_eq(world.n_seats, 3);
    ck_assert(world.shows_secret && strlen(world.gang.secret) == 64);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(world.seats[i].seat, (int64_t)i);
        ck_assert(world.seats[i].is_member);
        ck_assert_int_eq(world.seats[i].at.port, (int64_t)(2000 + i));
    }
    ck_ok(joins(seat(1), 1, 0), err);
    ck_ok(joins(seat(1), 1, 0), err);
    ck_assert_int_eq(state_of(1), SEAT_RUNNING);
    ck_assert_int_eq(state_of(2), SEAT_LISTENING);
    const struct seat_address elsewhere = {"10.0.0.9:1", "10.0.0.9", 1};
    const struct seat_ref first = seat(0), ninth = seat(9);
    ck_fails(gang_listen(s.db, &s.a, &first, &anybody, &elsewhere, &world, &err), AS_E_CONFLICT,
             err, "listens at");
    ck_fails(gang_listen(s.db, &s.a, &ninth, &anybody, &elsewhere, &world, &err), AS_E_NOT_FOUND,
             err, "no seat 9");
}
END_TEST

START_TEST(only_the_leader_of_the_epoch_writes)
{
    trial_state state;
    make_elastic("g", "'max_trials': 1", 1);
    start_gang("g", "a", 3);
    ck_ok(writes(seat(0), 1, 1), err);
    ck_fails(writes(seat(1), 1, 1), AS_E_STALE, err, "does not lead");
    ck_assert_str_eq(err.pointer, STALE_WORLD);
    ck_fails(writes(seat(0), 2, 1), AS_E_STALE, err, "epoch 2 is not current");
    ck_assert_str_eq(err.pointer, STALE_WORLD);
    ck_ok(calls_lost(seat(1), 1, 0), err);
    ck_fails(writes(seat(0), 1, 2), AS_E_STALE, err, "epoch 1 is not current");
    ck_fails(writes(seat(0), 2, 2), AS_E_STALE, err, "does not lead");
    ck_ok(writes(seat(1), 2, 2), err);
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from measurement where metric = "
                                           "'val_loss'"),
                     2);
    /* without the headers */
    const struct measurement m = {.step = 9, .metric = "val_loss", .value = 0.5};
    const struct attempt_ref ref = seat(1).attempt;
    int64_t n = 0;
    ck_fails(attempt_measure(s.db, &ref, NULL, &m, 1, &n, &err), AS_E_UNSUPPORTED, err,
             "Assay-Seat");
    ck_fails(attempt_log(s.db, &ref, NULL, "x", false, &err), AS_E_UNSUPPORTED, err, "Assay-Seat");
    ck_fails(completes(seat(0), 1, OUTCOME_COMPLETED, &state), AS_E_STALE, err, "not current");
    ck_ok(completes(seat(1), 2, OUTCOME_COMPLETED, &state), err);
    ck_assert_int_eq(state, TRIAL_COMPLETED);
    check_world(GANG_OVER, 2, 1);
    ck_assert_int_eq(state_of(2), SEAT_ENDED);
    ck_ok(completes(seat(1), 2, OUTCOME_COMPLETED, &state), err); /* a repeat */
    ck_fails(writes(seat(1), 2, 3), AS_E_STALE, err, "is over");
    ck_assert_str_eq(err.pointer, ""); /* not the world only: the attempt */
    ck_fails(calls_lost(seat(1), 2, 2), AS_E_STALE, err, "over");
}
END_TEST

/* Both halves of a partition propose the next epoch at once. */
struct half {
    struct service *sv;
    int64_t asker, lost;
    as_status st;
    pthread_barrier_t *gate;
};

static void *propose(void *arg)
{
    struct half *h = arg;
    AS_AUTO(arena_done) struct arena a = {0};
    struct gang_detail world;
    struct as_err e = {0};
    const struct attempt_ref ref = seat(0).attempt;
    const struct world_change c = {.epoch = 1, .seat = h->asker, .lost = &h->lost, .n_lost = 1};
    pthread_barrier_wait(h->gate);
    h->st = gang_change(h->sv->db, &a, &ref, &anybody, &c, &world, &e);
    return NULL;
}

START_TEST(one_half_of_a_partition_goes_on)
{
    struct service other = {0};
    const struct store_opts opts = {.url = s.url, .max_connections = 4};
    ck_ok(store_open(&opts, &other.db, &err), err);
    make_train("g", "random", "8, 16", "'max_trials': 1", ", 'resources': {'ranks': 2}");
    start_gang("g", "a", 2);
    pthread_barrier_t gate;
    pthread_t threads[2];
    pthread_barrier_init(&gate, NULL, 2);
    struct half halves[2] = {{.sv = &s, .asker = 0, .lost = 1, .gate = &gate},
                             {.sv = &other, .asker = 1, .lost = 0, .gate = &gate}};
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, propose, &halves[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gate);
    store_close(other.db);
    ck_assert_int_eq((halves[0].st == AS_OK) + (halves[1].st == AS_OK), 1);
    int winner = halves[0].st == AS_OK ? 0 : 1;
    ck_assert_int_eq(halves[!winner].st, AS_E_STALE);
    check_world(GANG_RUNNING, 2, 1);
    ck_ok(writes(seat(winner), 2, 1), err);
    ck_fails(writes(seat(!winner), 1, 1), AS_E_STALE, err, "epoch");
    ck_fails(calls_lost(seat(!winner), 2, winner), AS_E_DENIED, err, "no member");
}
END_TEST

/* A lost rank's seat is offered again, after a while to the same runner, with a new number. */
START_TEST(a_lost_rank_is_replaced)
{
    struct gang_detail world;
    make_elastic("g", "'max_trials': 1", 2);
    make_sweep(&s, "small", "'max_trials': 9", "");
    int64_t a = start_gang("g", "a", 3);
    ck_ok(ends(seat(1), OUTCOME_RETRY, -9), err);
    check_world(GANG_RUNNING, 2, 1);
    ck_assert_int_eq(state_of(1), SEAT_LOST);
    struct claim_list list = claim_ranks("a", a, 1);
    ck_assert_uint_eq(list.n, 1);
    ck_assert_str_eq(list.rows[0].sweep, "small"); /* not for 2 s */
    finish(&s, ref_of(&list.rows[0]), 1);
    int64_t b = make_runner(&s, "b", 2);
    list = claim_ranks("b", b, 2);
    ck_assert_uint_eq(list.n, 1); /* before new trials */
    ck_assert(list.rows[0].is_rank);
    ck_assert_int_eq(list.rows[0].seat, 3);
    ck_assert_int_eq(list.rows[0].timeout_ms, 0); /* the sweep has no trial_timeout */
    check_world(GANG_RUNNING, 2, 1);
    ck_ok(listens(seat(3), &world), err);
    ck_assert_int_eq(world.gang.epoch, 3);
    ck_assert_uint_eq(world.n_seats, 3);
    ck_assert_int_eq(world.seats[2].seat, 3);
    ck_ok(joins(seat(3), 3, 5), err);
    ck_assert_int_eq(world_of("g", 0, 1).gang.step, 5);
    /* the runner that lost one may have one later */
    ck_ok(ends(seat(3), OUTCOME_RETRY, -9), err);
    pg_fixture_exec(s.url, "update gang_seat set ended_at = ended_at - interval '2.1 s' where "
                           "runner = 'a' and state = 'lost'");
    list = claim_ranks("a", a, 1);
    ck_assert(list.n == 1 && list.rows[0].is_rank);
    ck_assert_int_eq(list.rows[0].seat, 4);
    ck_assert_int_eq(trial_of(&s, "g", 0).restarts, 0);
    ck_assert_int_eq(trial_of(&s, "g", 0).attempt, 1);
}
END_TEST

START_TEST(fewer_than_min_ranks_wait)
{
    struct gang_detail world;
    make_elastic("g", "'max_trials': 1", 3);
    start_gang("g", "a", 3);
    ck_ok(calls_lost(seat(0), 1, 2), err);
    check_world(GANG_WAITING, 2, 1);
    int64_t b = make_runner(&s, "b", 1);
    ck_assert_int_eq(claim_ranks("b", b, 1).rows[0].seat, 3);
    ck_ok(listens(seat(3), &world), err);
    check_world(GANG_RUNNING, 3, 1);
}
END_TEST

/* When who carries the state is gone, the attempt is lost: it goes on from its checkpoint. */
START_TEST(all_ranks_lost_is_an_attempt_lost)
{
    make_elastic("g", "'max_trials': 1, 'max_restarts': 1", 1);
    int64_t a = start_gang("g", "a", 3);
    ck_ok(ends(seat(0), OUTCOME_RETRY, -9), err);
    int64_t b = make_runner(&s, "b", 1);
    ck_assert_int_eq(claim_ranks("b", b, 1).rows[0].seat, 3); /* seated, but without the state */
    ck_ok(ends(seat(1), OUTCOME_RETRY, -9), err);
    ck_assert_int_eq(trial_of(&s, "g", 0).state, TRIAL_RUNNING);
    ck_ok(ends(seat(2), OUTCOME_RETRY, -9), err);
    struct trial_row row = trial_of(&s, "g", 0);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    ck_assert_int_eq(row.restarts, 1);
    check_world(GANG_OVER, 3, 3);
    ck_assert_int_eq(state_of(3), SEAT_ENDED);
    struct directive_list stop = {0};
    beat("b", b, (int64_t[]){3}, 1, 0, &stop);
    ck_assert_uint_eq(stop.n, 1);
    ck_assert(stop.rows[0].is_rank && stop.rows[0].seat == 3);
    /* the second attempt, and its end: no restart is left */
    ck_assert_uint_eq(claim_ranks("a", a, 3).n, 3);
    ck_assert_int_eq(world_of("g", 0, 2).gang.restarts, 1);
    for (int64_t i = 0; i < 3; i++)
        ck_ok(ends(seat_of("g", 0, 2, i), OUTCOME_RETRY, -9), err);
    row = trial_of(&s, "g", 0);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_assert_ptr_nonnull(strstr(row.reason, "max_restarts is 1"));
}
END_TEST

START_TEST(an_exit_code_fails_the_trial)
{
    make_elastic("g", "'max_trials': 1", 1);
    start_gang("g", "a", 3);
    ck_ok(ends(seat(2), OUTCOME_FAILED, 3), err);
    struct trial_row row = trial_of(&s, "g", 0);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_assert_str_eq(row.reason, "rank 2 on runner a: exit code 3");
    check_world(GANG_OVER, 1, 0);
}
END_TEST

/* A released rank leaves without a death; a completed one that does not lead needs no epoch. */
START_TEST(ranks_leave)
{
    trial_state state;
    make_elastic("g", "'max_trials': 1", 1);
    start_gang("g", "a", 3);
    ck_ok(ends(seat(1), OUTCOME_RELEASED, 0), err);
    check_world(GANG_RUNNING, 2, 0);
    ck_assert_int_eq(state_of(1), SEAT_LEFT);
    ck_ok(ends(seat(1), OUTCOME_RELEASED, 0), err); /* a repeat */
    ck_fails(ends(seat(1), OUTCOME_FAILED, 1), AS_E_STALE, err, "left");
    ck_ok(joins(seat(2), 2, 0), err);
    ck_ok(ends(seat(2), OUTCOME_COMPLETED, 0), err);
    check_world(GANG_RUNNING, 2, 0);
    int64_t b = make_runner(&s, "b", 2);
    ck_assert_uint_eq(claim_ranks("b", b, 2).n, 0); /* the gang is ending: no seat is offered */
    ck_ok(writes(seat(0), 2, 1), err);
    ck_ok(completes(seat(0), 2, OUTCOME_COMPLETED, &state), err);
    ck_assert_int_eq(state, TRIAL_COMPLETED);
}
END_TEST

/* The one that leads dies after others were done: who is left takes over, and gets help. */
START_TEST(a_gang_that_was_ending_goes_on)
{
    make_elastic("g", "'max_trials': 1", 1);
    start_gang("g", "a", 3);
    ck_ok(ends(seat(2), OUTCOME_COMPLETED, 0), err);
    ck_ok(ends(seat(0), OUTCOME_RETRY, -9), err);
    check_world(GANG_RUNNING, 2, 1);
    ck_ok(writes(seat(1), 2, 1), err);
    int64_t b = make_runner(&s, "b", 3);
    ck_assert_uint_eq(claim_ranks("b", b, 3).n, 2);
}
END_TEST

/* A rank completes while a new world begins that it never joins: nobody waits for it there. */
START_TEST(who_is_done_is_not_waited_for)
{
    make_elastic("g", "'max_trials': 1", 1);
    (void)start_gang("g", "r", 3);
    ck_ok(calls_lost(seat(1), 1, 2), err);
    check_world(GANG_RUNNING, 2, 1);
    ck_ok(ends_after(seat(1), OUTCOME_COMPLETED, 1), err);
    check_world(GANG_RUNNING, 3, 1);
    ck_ok(ends_after(seat(1), OUTCOME_COMPLETED, 1), err); /* a repeat */
    check_world(GANG_RUNNING, 3, 1);
    struct gang_detail d = world_of("g", 0, 1);
    ck_assert(d.seats[0].is_member && !d.seats[1].is_member);
    int64_t b = make_runner(&s, "b", 2);
    ck_assert_uint_eq(claim_ranks("b", b, 2).n, 0); /* it is ending: no seat is offered */
}
END_TEST

/* It has joined, but its end is heard first; or the server heard it, and its end does not say
 * so. */
START_TEST(who_is_done_in_this_world_changes_nothing)
{
    make_elastic("g", "'max_trials': 1", 1);
    (void)start_gang("g", "r", 3);
    ck_ok(ends(seat(2), OUTCOME_RETRY, 1), err);
    check_world(GANG_RUNNING, 2, 1);
    ck_ok(ends_after(seat(1), OUTCOME_COMPLETED, 2), err);
    check_world(GANG_RUNNING, 2, 1);
    make_elastic("h", "'max_trials': 1", 1);
    (void)start_gang("h", "q", 3);
    ck_ok(ends(seat_of("h", 0, 1, 1), OUTCOME_COMPLETED, 0), err);
    ck_assert_int_eq(world_of("h", 0, 1).gang.epoch, 1);
}
END_TEST

/* A connection broke, and nobody is known to be dead: the same members meet in the next epoch. */
START_TEST(members_meet_again)
{
    struct gang_detail world;
    make_elastic("g", "'max_trials': 1", 1);
    start_gang("g", "a", 3);
    const struct attempt_ref ref = seat(0).attempt;
    struct world_change change = {.epoch = 1, .seat = 2, .has_step = true, .step = 9};
    ck_ok(gang_change(s.db, &s.a, &ref, &anybody, &change, &world, &err), err);
    ck_assert_int_eq(world.gang.epoch, 2);
    ck_assert_int_eq(world.gang.step, 9);
    ck_assert_uint_eq(world.n_seats, 3);
    check_world(GANG_RUNNING, 2, 0);
    ck_fails(gang_change(s.db, &s.a, &ref, &anybody, &change, &world, &err), AS_E_STALE, err,
             "not current");
    /* a member leaves by itself */
    const int64_t own = 2;
    change = (struct world_change){.epoch = 2, .seat = 2, .left = &own, .n_left = 1};
    ck_ok(gang_change(s.db, &s.a, &ref, &anybody, &change, &world, &err), err);
    check_world(GANG_RUNNING, 3, 0);
    ck_assert_int_eq(state_of(2), SEAT_LEFT);
}
END_TEST

START_TEST(who_never_joined_accuses_itself)
{
    make_elastic("g", "'max_trials': 1", 1);
    start_gang("g", "a", 3);
    ck_ok(ends(seat(2), OUTCOME_RETRY, -9), err);
    int64_t b = make_runner(&s, "b", 1);
    ck_assert_int_eq(claim_ranks("b", b, 1).rows[0].seat, 3);
    ck_ok(listens(seat(3), NULL), err); /* epoch 3 */
    ck_ok(calls_lost(seat(3), 3, 0), err);
    check_world(GANG_RUNNING, 4, 2);
    ck_assert_int_eq(state_of(3), SEAT_LOST);
    ck_assert_int_eq(state_of(0), SEAT_RUNNING);
    /* the other way round, the accused goes */
    int64_t c = make_runner(&s, "c", 1);
    ck_assert_int_eq(claim_ranks("c", c, 1).rows[0].seat, 4);
    ck_ok(listens(seat(4), NULL), err); /* epoch 5 */
    ck_ok(calls_lost(seat(0), 5, 4), err);
    ck_assert_int_eq(state_of(4), SEAT_LOST);
    ck_fails(calls_lost(seat(0), 6, 0), AS_E_INVAL, err, "itself");
    ck_fails(calls_lost(seat(0), 6, 4), AS_E_INVAL, err, "no member");
    ck_fails(calls_lost(seat(4), 6, 0), AS_E_DENIED, err, "no member");
}
END_TEST

/* 3 R + max_restarts deaths without a step, then the attempt ends; a step begins the count anew. */
START_TEST(deaths_without_a_step_are_bounded)
{
    make_elastic("g", "'max_trials': 1, 'max_restarts': 2", 1);
    start_gang("g", "a", 3);
    int64_t b = make_runner(&s, "b", 4);
    struct directive_list none = {0};
    for (int i = 0; i < 15; i++) {
        ck_ok(ends(seat(2 + i), OUTCOME_RETRY, -9), err);
        pg_fixture_exec(s.url, "update gang_seat set ended_at = ended_at - interval '61 s' where "
                               "state = 'lost'");
        if (trial_of(&s, "g", 0).state != TRIAL_RUNNING)
            break;
        if (i == 2) { /* a step: the three before do not count */
            const struct seat_said said = {.ref = seat(0), .has_step = true, .step = 40};
            const struct heartbeat h = {.epoch = 1, .seats = &said, .n_seats = 1};
            const struct runner_id id = {"a", 1, NULL};
            ck_ok(runner_heartbeat(s.db, &s.a, &id, &h, &none, &err), err);
            ck_assert_int_eq(world_of("g", 0, 1).gang.idle_deaths, 0);
        }
        struct claim_list list = claim_ranks("b", b, 1);
        ck_assert_uint_eq(list.n, 1);
        ck_assert_int_eq(list.rows[0].seat, 3 + i);
        ck_ok(listens(seat(3 + i), NULL), err);
    }
    struct gang_detail d = world_of("g", 0, 1);
    ck_assert_int_eq(d.gang.deaths, 3 + 3 * 3 + 2 + 1);
    ck_assert_int_eq(d.gang.state, GANG_OVER);
    struct trial_row row = trial_of(&s, "g", 0);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    ck_assert_int_eq(row.restarts, 1);
    ck_assert_ptr_nonnull(strstr(row.reason, "without a step"));
    ck_assert_int_eq(pg_fixture_i64(s.url, "select count(*) from attempt where outcome = 'retry'"),
                     1);
}
END_TEST

/* ---- gangs of commands ---- */

START_TEST(a_command_completes_when_all_have)
{
    trial_state state;
    make_fixed("g", "'max_trials': 1");
    start_gang("g", "a", 3);
    ck_ok(ends(seat(1), OUTCOME_COMPLETED, 0), err);
    check_world(GANG_RUNNING, 1, 0);
    ck_assert_int_eq(state_of(1), SEAT_ENDED);
    ck_assert_int_eq(trial_of(&s, "g", 0).state, TRIAL_RUNNING);
    ck_fails(completes(seat(0), 1, OUTCOME_COMPLETED, &state), AS_E_UNSUPPORTED, err, "'loss'");
    ck_ok(writes(seat(0), 1, 1), err);
    ck_ok(completes(seat(0), 1, OUTCOME_COMPLETED, &state), err);
    ck_assert_int_eq(state, TRIAL_RUNNING); /* held until the last rank has completed */
    ck_ok(completes(seat(0), 1, OUTCOME_COMPLETED, &state), err);
    ck_assert_int_eq(state, TRIAL_RUNNING);
    ck_ok(ends(seat(2), OUTCOME_COMPLETED, 0), err);
    ck_assert_int_eq(trial_of(&s, "g", 0).state, TRIAL_COMPLETED);
    ck_ok(completes(seat(0), 1, OUTCOME_COMPLETED, &state), err);
    ck_assert_int_eq(state, TRIAL_COMPLETED);
    ck_ok(ends(seat(2), OUTCOME_COMPLETED, 0), err);
}
END_TEST

START_TEST(a_note_says_that_there_are_too_few_slots)
{
    make_fixed("g", "'max_trials': 1");
    int64_t a = make_runner(&s, "a", 2);
    ck_assert_uint_eq(claim_ranks("a", a, 2).n, 0);
    ck_assert_str_eq(sweep_of_id(&s, "g").note,
                     "a trial has 3 ranks, and the runners have slots for 2");
    int64_t b = make_runner(&s, "b", 1);
    const struct claim_request of_b = {.runner = "b", .epoch = b, .max_trials = 1, .seats = 1};
    (void)take(&of_b);
    ck_assert_ptr_null(sweep_of_id(&s, "g").note);
}
END_TEST

/* A launcher of the program's own runs on the first rank; the others are only seats. */
START_TEST(launch_first_completes_with_the_first)
{
    trial_state state;
    static const char *const text =
        "{'name': 'g', 'metric': {'name': 'loss', 'goal': 'minimize'}, 'parameters': {'x': "
        "{'type': 'float', 'min': 0, 'max': 1}}, 'search': {'method': 'random'}, 'limits': "
        "{'max_trials': 1}, 'trial': {'command': ['true'], 'launch': 'first'}, 'resources': "
        "{'ranks': 3}}";
    JSON_AUTO doc = json_of(text);
    struct sweep_row row;
    ck_ok(sweep_create(s.db, &s.a, doc, NULL, &row, &err), err);
    int64_t a = make_runner(&s, "a", 3);
    struct claim_list list = claim_ranks("a", a, 3);
    ck_assert_uint_eq(list.n, 3);
    ck_assert_str_eq(list.rows[2].launch, "first");
    ck_assert(!list.rows[2].elastic && list.rows[2].min_ranks == 3);
    for (int64_t i = 0; i < 3; i++)
        ck_ok(listens(seat(i), NULL), err);
    ck_ok(writes(seat(0), 1, 1), err);
    ck_ok(completes(seat(0), 1, OUTCOME_COMPLETED, &state), err);
    ck_assert_int_eq(state, TRIAL_COMPLETED);
    ck_assert_int_eq(state_of(2), SEAT_ENDED);
}
END_TEST

START_TEST(the_leader_may_be_the_last_to_complete)
{
    trial_state state;
    make_fixed("g", "'max_trials': 1");
    start_gang("g", "a", 3);
    ck_ok(writes(seat(0), 1, 1), err);
    ck_ok(ends(seat(1), OUTCOME_COMPLETED, 0), err);
    ck_ok(ends(seat(2), OUTCOME_COMPLETED, 0), err);
    ck_ok(completes(seat(0), 1, OUTCOME_COMPLETED, &state), err);
    ck_assert_int_eq(state, TRIAL_COMPLETED);
}
END_TEST

/* A rank that dies ends the attempt for all, which is tried again within max_restarts; one that
 * fails on the only runner ends the trial, as the failure of a trial without ranks does. */
START_TEST(a_command_that_dies_is_tried_again_and_one_that_fails_is_not)
{
    trial_state state;
    make_fixed("g", "'max_trials': 1, 'max_restarts': 2");
    int64_t a = start_gang("g", "a", 3);
    ck_ok(writes(seat(0), 1, 1), err);
    ck_ok(completes(seat(0), 1, OUTCOME_COMPLETED, &state), err); /* held, and then in vain */
    ck_ok(ends(seat(2), OUTCOME_RETRY, -9), err);
    struct trial_row row = trial_of(&s, "g", 0);
    ck_assert_int_eq(row.state, TRIAL_QUEUED);
    ck_assert_int_eq(row.restarts, 1);
    ck_assert_str_eq(row.reason, "rank 2 on runner a: signal 9");
    ck_fails(completes(seat(0), 1, OUTCOME_COMPLETED, &state), AS_E_STALE, err, "is over");
    ck_assert_uint_eq(claim_ranks("a", a, 3).n, 3);
    for (int64_t i = 0; i < 3; i++)
        ck_ok(listens(seat_of("g", 0, 2, i), NULL), err);
    ck_ok(completes(seat_of("g", 0, 2, 0), 1, OUTCOME_FAILED, &state), err);
    ck_assert_int_eq(state, TRIAL_FAILED);
    ck_ok(completes(seat_of("g", 0, 2, 0), 1, OUTCOME_FAILED, &state), err);
}
END_TEST

/* Of a gang on one runner: deaths are told before failures. */
START_TEST(a_failure_on_one_runner_is_final)
{
    make_fixed("g", "'max_trials': 1, 'max_restarts': 2");
    (void)start_gang("g", "a", 3);
    ck_ok(ends(seat(2), OUTCOME_FAILED, 1), err);
    struct trial_row row = trial_of(&s, "g", 0);
    ck_assert_int_eq(row.state, TRIAL_FAILED);
    ck_assert_int_eq(row.restarts, 0);
    ck_assert_str_eq(row.reason, "rank 2 on runner a: exit code 1");
}
END_TEST

/* On several the first failure may be the echo of a death that the server hears of later. */
START_TEST(a_failure_on_several_runners_is_final_the_second_time)
{
    make_fixed("g", "'max_trials': 1, 'max_restarts': 3");
    int64_t a = make_runner(&s, "a", 2), b = make_runner(&s, "b", 1);
    static const attempt_outcome first[] = {OUTCOME_FAILED, OUTCOME_RETRY, OUTCOME_FAILED,
                                            OUTCOME_FAILED};
    for (int64_t at = 1; at <= 4; at++) {
        const struct claim_request of_b = {.runner = "b", .epoch = b, .max_trials = 1, .seats = 1};
        (void)claim_ranks("a", a, 2);
        (void)take(&of_b);
        (void)claim_ranks("a", a, 2);
        for (int64_t i = 0; i < 3; i++)
            ck_ok(listens(seat_of("g", 0, at, i), NULL), err);
        attempt_outcome how = first[at - 1];
        ck_ok(ends(seat_of("g", 0, at, 1), how, how == OUTCOME_RETRY ? -9 : 1), err);
        struct trial_row row = trial_of(&s, "g", 0);
        ck_assert_int_eq(row.state, at < 4 ? TRIAL_QUEUED : TRIAL_FAILED);
        ck_assert_int_eq(row.restarts, at < 4 ? at : 3);
    }
}
END_TEST

/* The last heartbeat is before the end: the end says how far the rank came. */
START_TEST(an_end_says_how_far_its_rank_came)
{
    struct trial_row row;
    struct gang_detail world;
    make_elastic("g", "'max_trials': 1", 1);
    start_gang("g", "a", 3);
    const struct seat_ref other = seat(2), leader = seat(0);
    const struct seat_end done = {
        .outcome = OUTCOME_COMPLETED, .has_step = true, .step = 661, .sent_bytes = 2353560};
    ck_ok(gang_end(s.db, &s.a, &other, &anybody, &done, &world, &err), err);
    ck_ok(writes(leader, 1, 1), err);
    const struct attempt_writer by = {.has_seat = true, .epoch = 1};
    const struct completion c = {
        .outcome = OUTCOME_COMPLETED, .has_rank = true, .rank_step = 661, .rank_sent_bytes = 41};
    ck_ok(attempt_complete(s.db, &s.a, &leader.attempt, &by, &c, &row, &err), err);
    ck_assert_int_eq(row.state, TRIAL_COMPLETED);
    struct gang_detail d = world_of("g", 0, 1);
    ck_assert(d.gang.has_step && d.gang.step == 661);
    ck_assert(d.seats[2].step == 661 && d.seats[2].sent_bytes == 2353560);
    ck_assert(d.seats[0].step == 661 && d.seats[0].sent_bytes == 41);
    ck_assert(d.seats[1].step == 661 && d.seats[1].sent_bytes == 0);
    const struct seat_ref late = seat(1); /* its runner was slower than the leader's */
    const struct seat_end said = {
        .outcome = OUTCOME_COMPLETED, .has_step = true, .step = 661, .sent_bytes = 5};
    ck_ok(gang_end(s.db, &s.a, &late, &anybody, &said, &world, &err), err);
    d = world_of("g", 0, 1);
    ck_assert(d.seats[1].sent_bytes == 5 && d.seats[0].sent_bytes == 41);
}
END_TEST

START_TEST(a_command_that_is_released_uses_no_restart)
{
    make_fixed("g", "'max_trials': 1, 'max_restarts': 0");
    start_gang("g", "a", 3);
    ck_ok(ends(seat(1), OUTCOME_RELEASED, 0), err);
    ck_assert_int_eq(trial_of(&s, "g", 0).state, TRIAL_QUEUED);
    ck_assert_int_eq(trial_of(&s, "g", 0).restarts, 0);
}
END_TEST

START_TEST(a_command_accuses_its_whole_gang)
{
    make_fixed("g", "'max_trials': 1");
    start_gang("g", "a", 3);
    ck_ok(calls_lost(seat(0), 1, 2), err);
    ck_assert_int_eq(trial_of(&s, "g", 0).state, TRIAL_QUEUED);
    check_world(GANG_OVER, 1, 1);
}
END_TEST

TEST_SUITE()
{
    Suite *suite = suite_create("scheduler/assign/gangs");
    TCase *t = tcase_create("gangs");
    pg_fixture_start();
    tcase_add_checked_fixture(t, open_grouped, close_grouped);
    tcase_add_test(t, epoch_1_begins_when_all_listen);
    tcase_add_test(t, only_the_leader_of_the_epoch_writes);
    tcase_add_test(t, one_half_of_a_partition_goes_on);
    tcase_add_test(t, a_lost_rank_is_replaced);
    tcase_add_test(t, fewer_than_min_ranks_wait);
    tcase_add_test(t, all_ranks_lost_is_an_attempt_lost);
    tcase_add_test(t, an_exit_code_fails_the_trial);
    tcase_add_test(t, ranks_leave);
    tcase_add_test(t, a_gang_that_was_ending_goes_on);
    tcase_add_test(t, who_is_done_is_not_waited_for);
    tcase_add_test(t, who_is_done_in_this_world_changes_nothing);
    tcase_add_test(t, members_meet_again);
    tcase_add_test(t, who_never_joined_accuses_itself);
    tcase_add_test(t, deaths_without_a_step_are_bounded);
    tcase_add_test(t, a_command_completes_when_all_have);
    tcase_add_test(t, launch_first_completes_with_the_first);
    tcase_add_test(t, the_leader_may_be_the_last_to_complete);
    tcase_add_test(t, a_command_that_dies_is_tried_again_and_one_that_fails_is_not);
    tcase_add_test(t, a_failure_on_one_runner_is_final);
    tcase_add_test(t, a_note_says_that_there_are_too_few_slots);
    tcase_add_test(t, a_failure_on_several_runners_is_final_the_second_time);
    tcase_add_test(t, an_end_says_how_far_its_rank_came);
    tcase_add_test(t, a_command_that_is_released_uses_no_restart);
    tcase_add_test(t, a_command_accuses_its_whole_gang);
    suite_add_tcase(suite, t);
    return suite;
}
