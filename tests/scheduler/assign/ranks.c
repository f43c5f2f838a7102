#include "tests/scheduler/assign/ranks.h"

#include <stdio.h>

#include "tests/support/check_main.h"

static const struct gang_caller anybody = {.is_runner = true};

struct claim_list claim_ranks(const char *runner, int64_t epoch, int64_t slots)
{
    const struct claim_request like = {
        .runner = runner, .epoch = epoch, .max_trials = slots, .seats = slots};
    struct claim_list list = take(&like);
    ck_assert_msg(list.n != SIZE_MAX, "%s", err.msg);
    return list;
}

struct seat_ref seat_of(const char *sweep, int64_t number, int64_t attempt, int64_t seat)
{
    return (struct seat_ref){.attempt = {.sweep = sweep, .number = number, .attempt = attempt},
                             .seat = seat};
}

as_status listens(struct seat_ref ref, struct gang_detail *ret)
{
    struct gang_detail world;
    char endpoint[40];
    snprintf(endpoint, sizeof endpoint, "10.0.0.1:%d", (int)(2000 + ref.seat));
    const struct seat_address at = {endpoint, "10.0.0.1", 2000 + ref.seat};
    as_status st = gang_listen(s.db, &s.a, &ref, &anybody, &at, &world, &err);
    if (st == AS_OK && ret)
        *ret = world;
    return st;
}

as_status joins(struct seat_ref ref, int64_t epoch, int64_t step)
{
    struct gang_detail world;
    const struct seat_joined joined = {epoch, step};
    return gang_join(s.db, &s.a, &ref, &anybody, &joined, &world, &err);
}

as_status ends(struct seat_ref ref, attempt_outcome outcome, int64_t exit_code)
{
    struct gang_detail world;
    const struct seat_end end = {.outcome = outcome, .has_exit_code = true, .exit_code = exit_code};
    return gang_end(s.db, &s.a, &ref, &anybody, &end, &world, &err);
}

as_status ends_after(struct seat_ref ref, attempt_outcome outcome, int64_t epoch)
{
    struct gang_detail world;
    const struct seat_end end = {.outcome = outcome, .has_exit_code = true, .epoch = epoch};
    return gang_end(s.db, &s.a, &ref, &anybody, &end, &world, &err);
}

as_status calls_lost(struct seat_ref asker, int64_t epoch, int64_t lost)
{
    struct gang_detail world;
    const struct world_change change = {
        .epoch = epoch, .seat = asker.seat, .lost = &lost, .n_lost = 1};
    return gang_change(s.db, &s.a, &asker.attempt, &anybody, &change, &world, &err);
}

struct gang_detail world_of(const char *sweep, int64_t number, int64_t attempt)
{
    struct gang_detail world = {0};
    const struct attempt_ref ref = {.sweep = sweep, .number = number, .attempt = attempt};
    ck_ok(gang_get(s.db, &s.a, &ref, &anybody, &world, &err), err);
    return world;
}

int64_t start_gang(const char *sweep, const char *runner, int64_t ranks)
{
    int64_t epoch = make_runner(&s, runner, ranks);
    struct claim_list list = claim_ranks(runner, epoch, ranks);
    ck_assert_uint_eq(list.n, (size_t)ranks);
    for (int64_t i = 0; i < ranks; i++) {
        ck_assert(list.rows[i].is_rank);
        ck_assert_str_eq(list.rows[i].sweep, sweep);
        ck_assert_int_eq(list.rows[i].seat, i);
        ck_ok(listens(seat_of(sweep, 0, 1, i), NULL), err);
    }
    for (int64_t i = 0; i < ranks; i++)
        ck_ok(joins(seat_of(sweep, 0, 1, i), 1, 0), err);
    return epoch;
}

as_status writes(struct seat_ref ref, int64_t epoch, int64_t step)
{
    const struct measurement m[] = {{.step = step, .metric = "val_loss", .value = 0.5},
                                    {.step = step, .metric = "loss", .value = 0.5}};
    const struct attempt_writer by = {.has_seat = true, .seat = ref.seat, .epoch = epoch};
    int64_t n = 0;
    return attempt_measure(s.db, &ref.attempt, &by, m, 2, &n, &err);
}

as_status completes(struct seat_ref ref, int64_t epoch, attempt_outcome outcome, trial_state *ret)
{
    const struct attempt_writer by = {.has_seat = true, .seat = ref.seat, .epoch = epoch};
    const struct completion c = {.outcome = outcome, .has_exit_code = true};
    struct trial_row row;
    as_status st = attempt_complete(s.db, &s.a, &ref.attempt, &by, &c, &row, &err);
    if (st == AS_OK)
        *ret = row.state;
    return st;
}

static void set_state(const char *id, sweep_state state)
{
    const struct sweep_patch patch = {.state = &state};
    struct sweep_changed changed;
    ck_ok(sweep_change(s.db, &s.a, id, &patch, NULL, &changed, &err), err);
}

void pause_sweep(const char *id)
{
    set_state(id, SWEEP_PAUSED);
}

void cancel_sweep(const char *id)
{
    set_state(id, SWEEP_CANCELLED);
}

void make_elastic(const char *name, const char *limits, int min_ranks)
{
    char more[100];
    snprintf(more, sizeof more, ", 'resources': {'ranks': 3, 'min_ranks': %d}", min_ranks);
    make_train(name, "random", "8, 16", limits, more);
}

void make_fixed(const char *name, const char *limits)
{
    make_sweep(&s, name, limits, ", 'resources': {'ranks': 3}");
}

struct seat_ref seat(int64_t n)
{
    return seat_of("g", 0, 1, n);
}

seat_state state_of(int64_t n)
{
    struct gang_detail d = world_of("g", 0, 1);
    ck_assert_int_lt(n, (int64_t)d.n_seats);
    return d.seats[n].state;
}

void check_world(gang_state state, int64_t epoch, int64_t deaths)
{
    struct gang_detail d = world_of("g", 0, 1);
    ck_assert_str_eq(gang_state_format(d.gang.state), gang_state_format(state));
    ck_assert_int_eq(d.gang.epoch, epoch);
    ck_assert_int_eq(d.gang.deaths, deaths);
}

void beat(const char *runner, int64_t epoch, const int64_t *seats, size_t n, int64_t step,
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
