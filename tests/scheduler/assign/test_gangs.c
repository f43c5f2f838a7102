/* Worlds: epochs, fences, lost and new ranks, and the ends of gangs. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "scheduler/lifecycle/gang_care.h"
#include "tests/scheduler/assign/ranks.h"
#include "tests/support/check_main.h"

static const struct gang_caller anybody = {.is_runner = true};

/* An elastic gang of 3 that needs `min_ranks`. */
static void make_elastic(const char *name, const char *limits, int min_ranks)
{
    char more[100];
    snprintf(more, sizeof more, ", 'resources': {'ranks': 3, 'min_ranks': %d}", min_ranks);
    make_train(name, "random", "8, 16", limits, more);
}

/* A command on 3 ranks. */
static void make_fixed(const char *name, const char *limits)
{
    make_sweep(&s, name, limits, ", 'resources': {'ranks': 3}");
}

static struct seat_ref seat(int64_t n)
{
    return seat_of("g", 0, 1, n);
}

static seat_state state_of(int64_t n)
{
    struct gang_detail d = world_of("g", 0, 1);
    ck_assert_int_lt(n, (int64_t)d.n_seats);
    return d.seats[n].state;
}

static void check_world(gang_state state, int64_t epoch, int64_t deaths)
{
    struct gang_detail d = world_of("g", 0, 1);
    ck_assert_str_eq(gang_state_format(d.gang.state), gang_state_format(state));
    ck_assert_int_eq(d.gang.epoch, epoch);
    ck_assert_int_eq(d.gang.deaths, deaths);
}

/* What a runner lists, as a heartbeat. */
static void beat(const char *runner, int64_t epoch, const int64_t *seats, size_t n, int64_t step,
                 struct directive_list *ret)
{
    struct seat_said said[8] = {0};
    for (size_t i = 0; i < n; i++)
        said[i] = (struct seat_said){.ref = seat(seats[i]),
                                     .has_step = true,
                                     .step = step,
                                     .has_sent = true,
                                     .sent_bytes = 7};
    const struct heartbeat b = {.epoch = epoch, .seats = said, .n_seats = n};
    const struct runner_id id = {runner, epoch, NULL};
    ck_ok(runner_heartbeat(s.db, &s.a, &id, &b, ret, &err), err);
}

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

/* A rank that fails ends the attempt for all; it is tried again within max_restarts. */
START_TEST(a_command_that_fails_is_tried_again)
{
    static const struct {
        attempt_outcome outcome;
        int64_t exit_code;
        const char *reason;
    } cases[] = {{OUTCOME_FAILED, 1, "rank 2 on runner a: exit code 1"},
                 {OUTCOME_RETRY, -9, "rank 2 on runner a: signal 9"}};
    trial_state state;
    make_fixed("g", "'max_trials': 1, 'max_restarts': 2");
    int64_t a = start_gang("g", "a", 3);
    ck_ok(writes(seat(0), 1, 1), err);
    ck_ok(completes(seat(0), 1, OUTCOME_COMPLETED, &state), err); /* held, and then in vain */
    for (int64_t i = 0; i < 2; i++) {
        ck_ok(ends(seat_of("g", 0, i + 1, 2), cases[i].outcome, cases[i].exit_code), err);
        struct trial_row row = trial_of(&s, "g", 0);
        ck_assert_int_eq(row.state, TRIAL_QUEUED);
        ck_assert_int_eq(row.restarts, i + 1);
        ck_assert_str_eq(row.reason, cases[i].reason);
        ck_fails(completes(seat_of("g", 0, i + 1, 0), 1, OUTCOME_COMPLETED, &state), AS_E_STALE,
                 err, "is over");
        ck_assert_uint_eq(claim_ranks("a", a, 3).n, 3);
    }
    for (int64_t i = 0; i < 3; i++)
        ck_ok(listens(seat_of("g", 0, 3, i), NULL), err);
    ck_ok(completes(seat_of("g", 0, 3, 0), 1, OUTCOME_FAILED, &state), err);
    ck_assert_int_eq(state, TRIAL_FAILED);
    ck_ok(completes(seat_of("g", 0, 3, 0), 1, OUTCOME_FAILED, &state), err);
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
    pg_fixture_exec(s.url,
                    "update runner set expires_at = now() - interval '1 s' where name = 'b'");
    ck_assert_int_eq(mine[0] < theirs[0], mine[1] < theirs[0]); /* side by side */
    struct as_err e = {0};
    bool lost = pg_fixture_i64(s.url, "select 1") == 1;
    ck_assert(lost);
    pg_fixture_exec(s.url, "update runner set state = 'lost' where name = 'b'");
    int64_t n = 0;
    ck_ok(gangs_drop_orphans(s.db, NULL, &n, &e), e);
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

START_TEST(the_reaper_finds_them)
{
    int64_t a, b;
    make_elastic("g", "'max_trials': 1", 1);
    start_on_two(&a, &b);
    pg_fixture_exec(s.url,
                    "update runner set expires_at = now() - interval '1 h' where name = 'b'");
    struct reaper_report report = {0};
    for (int i = 0; i < 250 && report.runners_lost == 0; i++) {
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
    /* all leave: nothing is left, and the attempt is lost */
    const struct runner_id other = {"a", a, NULL};
    ck_ok(runner_leave(s.db, &other, &err), err);
    ck_assert_int_eq(trial_of(&s, "g", 0).state, TRIAL_QUEUED);
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
                    "runner, ''), ', ' order by id) from event where type = 'gang.changed'",
                    text, sizeof text);
    ck_assert_str_eq(text, "gathering 0, running 1, running 1 0 a, running 1 1 a, running 1 2 a, "
                           "lost 1 2 a, waiting 2");
}
END_TEST

Suite *test_suite(void)
{
    Suite *suite = suite_create("scheduler/assign/gangs");
    TCase *t = tcase_create("gangs");
    pg_fixture_start();
    tcase_add_checked_fixture(t, open_grouped, close_grouped);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, epoch_1_begins_when_all_listen);
    tcase_add_test(t, only_the_leader_of_the_epoch_writes);
    tcase_add_test(t, one_half_of_a_partition_goes_on);
    tcase_add_test(t, a_lost_rank_is_replaced);
    tcase_add_test(t, fewer_than_min_ranks_wait);
    tcase_add_test(t, all_ranks_lost_is_an_attempt_lost);
    tcase_add_test(t, an_exit_code_fails_the_trial);
    tcase_add_test(t, ranks_leave);
    tcase_add_test(t, a_gang_that_was_ending_goes_on);
    tcase_add_test(t, members_meet_again);
    tcase_add_test(t, who_never_joined_accuses_itself);
    tcase_add_test(t, deaths_without_a_step_are_bounded);
    tcase_add_test(t, a_command_completes_when_all_have);
    tcase_add_test(t, launch_first_completes_with_the_first);
    tcase_add_test(t, the_leader_may_be_the_last_to_complete);
    tcase_add_test(t, a_command_that_fails_is_tried_again);
    tcase_add_test(t, a_command_that_is_released_uses_no_restart);
    tcase_add_test(t, a_command_accuses_its_whole_gang);
    tcase_add_test(t, a_lost_runner_loses_its_ranks);
    tcase_add_test(t, the_reaper_finds_them);
    tcase_add_test(t, a_runner_that_leaves_is_no_death);
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
