/* The world of one gang while it is changed.
 *
 * Whoever changes a world holds the rows of the sweep, the trial and the gang, in this order,
 * because every change may turn out to be the attempt's end. The rules are in sweep/seat_state.h;
 * this file counts the seats for them and writes what they say. The epoch is raised by one
 * statement that compares it, after the seats were read under the same locks.
 *
 * A rank that completed in an elastic gang has left, but stays a member: the others are about to
 * complete too, and need no new epoch for it. */
#include "scheduler/lifecycle/gang_world.h"

#include "base/str.h"
#include "scheduler/lifecycle/feasibility.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"

as_status gang_world_open(struct tx *t, struct arena *a, const struct gang_key *key,
                          struct gang_world *ret, struct as_err *err)
{
    *ret = (struct gang_world){.t = t, .a = a, .key = *key};
    as_status st = store_sweep_lock(t, a, key->sweep_key, &ret->sweep, err);
    if (st == AS_OK)
        st = store_trial_lock(t, a, key->sweep_key, key->number, &ret->trial, err);
    if (st == AS_OK)
        st = store_gang_lock(t, a, key, &ret->gang, err);
    if (st != AS_OK)
        return st;
    return store_gang_seats_now(t, a, key, &ret->seats, &ret->n_seats, err);
}

struct gang_seat_row *gang_world_seat(const struct gang_world *w, int64_t seat)
{
    for (size_t i = 0; i < w->n_seats; i++)
        if (w->seats[i].seat == seat)
            return &w->seats[i];
    return NULL;
}

struct gang_seat_row *gang_world_leader(const struct gang_world *w)
{
    for (size_t i = 0; i < w->n_seats; i++)
        if (w->seats[i].is_member)
            return &w->seats[i];
    return NULL;
}

const char *gang_world_blame(const struct gang_world *w, const struct gang_seat_row *seat,
                             const char *reason)
{
    int64_t rank = 0;
    for (size_t i = 0; i < w->n_seats && w->seats[i].seat < seat->seat; i++)
        rank += w->seats[i].is_member;
    if (!seat->is_member)
        rank = seat->seat;
    return arena_printf(w->a, "rank %lld on runner %s: %s", (long long)rank, seat->runner, reason);
}

static as_status write_event(const struct gang_world *w, const char *state, int64_t epoch,
                             const struct gang_seat_row *seat, const char *reason,
                             struct as_err *err)
{
    struct event_new e = {.type = "gang.changed",
                          .sweep_key = w->key.sweep_key,
                          .sweep = w->sweep.id,
                          .has_number = true,
                          .number = w->key.number,
                          .state = state,
                          .attempt = w->key.attempt,
                          .reason = reason,
                          .runner = seat ? seat->runner : NULL,
                          .has_epoch = true,
                          .epoch = epoch,
                          .has_seat = seat != NULL,
                          .seat = seat ? seat->seat : 0};
    return store_event_add(w->t, &e, err);
}

as_status gang_world_apply(struct gang_world *w, struct gang_seat_row *seat, seat_event ev,
                           const char *reason, struct as_err *err)
{
    seat_state to;
    as_status st = seat_step(seat->state, ev, &to, err);
    if (st != AS_OK)
        return st;
    bool goes = to == SEAT_LOST || to == SEAT_LEFT;
    seat->state = to;
    w->died += to == SEAT_LOST;
    w->went += goes;
    if (!goes)
        return AS_OK;
    w->why = reason;
    return write_event(w, seat_state_format(to), w->gang.epoch, seat, reason, err);
}

as_status gang_world_step(struct gang_world *w, int64_t step, struct as_err *err)
{
    if (w->gang.has_step && step <= w->gang.step)
        return AS_OK;
    w->gang.has_step = true;
    w->gang.step = step;
    w->gang.idle_deaths = 0;
    return store_gang_step(w->t, &w->key, step, err);
}

/* Has it gone because it was done? */
static bool is_done(const struct gang_seat_row *s)
{
    return s->state == SEAT_LEFT &&
           (as_streq(s->outcome, "completed") || as_streq(s->outcome, "paused") ||
            as_streq(s->outcome, "pruned"));
}

static struct gang_standing standing_of(const struct gang_world *w)
{
    struct gang_standing s = {.ranks = w->gang.ranks,
                              .min_ranks = w->gang.min_ranks,
                              .elastic = w->gang.elastic,
                              .epoch = w->gang.epoch,
                              .has_joined = w->gang.has_joined,
                              .lost = w->went,
                              .idle_deaths = w->gang.idle_deaths + w->died,
                              .max_restarts = w->sweep.max_restarts};
    for (size_t i = 0; i < w->n_seats; i++) {
        const struct gang_seat_row *x = &w->seats[i];
        bool lives = seat_state_is_live(x->state);
        s.live += lives;
        s.listening += x->state == SEAT_LISTENING || x->state == SEAT_RUNNING;
        s.joined += x->state == SEAT_RUNNING;
        s.members += x->is_member && lives;
        s.gone += x->is_member && !lives && x->state != SEAT_ENDED && !is_done(x);
        s.completed += x->state == SEAT_ENDED;
    }
    return s;
}

static as_status write_seats(const struct gang_world *w, struct as_err *err)
{
    return store_gang_set(w->t, &w->key, w->seats, w->n_seats, w->why, err);
}

/* The next epoch: its members are all ranks that listen or run. */
static as_status begin_epoch(struct gang_world *w, struct as_err *err)
{
    int64_t members = 0;
    for (size_t i = 0; i < w->n_seats; i++) {
        struct gang_seat_row *x = &w->seats[i];
        x->is_member = x->state == SEAT_LISTENING || x->state == SEAT_RUNNING ||
                       (x->is_member && x->state == SEAT_ENDED);
        members += x->is_member;
    }
    gang_state state = members < w->gang.min_ranks ? GANG_WAITING : GANG_RUNNING;
    as_status st = store_gang_epoch(w->t, &w->key, w->gang.epoch, state, err);
    if (st == AS_OK)
        st = write_seats(w, err);
    if (st == AS_OK && w->gang.is_ending) /* who was done has gone with the epoch */
        st = store_gang_ending(w->t, &w->key, false, err);
    if (st != AS_OK)
        return st;
    w->gang.epoch++;
    w->gang.state = state;
    w->gang.is_ending = false;
    return write_event(w, gang_state_format(state), w->gang.epoch, NULL, w->why, err);
}

/* Every rank of a gang that is not elastic has completed. The one that leads said its end first,
 * and the trial had the values that its sweep requires then. */
static as_status complete_all(struct gang_world *w, struct as_err *err)
{
    const struct gang_seat_row *leader = gang_world_leader(w);
    bool is_told = w->trial.at.decision != DECIDED_NOTHING; /* each ended as it was told, or not */
    struct trial_change c = {.event = TRIAL_EV_COMPLETE,
                             .outcome = "completed",
                             .reported = is_told && leader && leader->outcome ? leader->outcome
                                                                              : "completed"};
    as_status st = write_seats(w, err);
    if (st == AS_OK && !is_told)
        st = trial_judge(w->t, w->a, &w->sweep, &w->trial, &c, err);
    if (st != AS_OK)
        return st;
    if (leader) {
        c.has_exit_code = leader->has_exit_code;
        c.exit_code = leader->exit_code;
        c.has_ran = leader->has_ran;
        c.ran_ms = leader->ran_ms;
    }
    return gang_world_end(w, &c, err);
}

void gang_world_spare(const struct gang_world *w, struct trial_change *c)
{
    int64_t spared = w->trial.attempt - 1 - w->trial.restarts;
    if (w->sweep.shrinks && c->event == TRIAL_EV_LOSE &&
        spared < gang_deaths_max(w->sweep.ranks, w->sweep.max_restarts))
        c->event = TRIAL_EV_RELEASE;
}

/* No rank is left, or none may be tried any more: the ordinary way of a lost attempt. */
static as_status lose_all(struct gang_world *w, const char *outcome, const char *what,
                          struct as_err *err)
{
    bool is_released = w->is_released && w->died == 0;
    const char *reason = w->why ? arena_printf(w->a, "%s; the last one: %s", what, w->why) : what;
    struct trial_change c = {.event = is_released ? TRIAL_EV_RELEASE : TRIAL_EV_LOSE,
                             .outcome = is_released ? "released" : outcome,
                             .reason = w->gang.elastic ? reason : w->why};
    as_status st = write_seats(w, err);
    if (st != AS_OK)
        return st;
    gang_world_spare(w, &c);
    if (!is_released)
        atomic_fetch_add(&store_counters(tx_store(w->t))->attempts_lost, 1);
    return gang_world_end(w, &c, err);
}

as_status gang_world_settle(struct gang_world *w, struct as_err *err)
{
    const struct gang_standing s = standing_of(w);
    gang_verdict verdict = gang_verdict_of(&s);
    as_status st = AS_OK;
    if (w->died > 0) {
        st = store_gang_deaths(w->t, &w->key, w->died, err);
        atomic_fetch_add(&store_counters(tx_store(w->t))->ranks_lost, w->died);
    }
    if (st != AS_OK)
        return st;
    if (w->must_change && verdict == GANG_GOES_ON)
        verdict = GANG_NEW_EPOCH;
    switch (verdict) {
    case GANG_NEW_EPOCH:
        return begin_epoch(w, err);
    case GANG_COMPLETES:
        return complete_all(w, err);
    case GANG_IS_LOST:
        return lose_all(w, "lost", "no rank is left that could go on", err);
    case GANG_KEEPS_DYING:
        return lose_all(w, "retry", "too many ranks were lost without a step in between", err);
    case GANG_GOES_ON:
        break;
    }
    return write_seats(w, err);
}

as_status gang_world_complete(struct gang_world *w, int64_t seat, const struct trial_change *c,
                              struct as_err *err)
{
    struct gang_seat_row *x = gang_world_seat(w, seat);
    if (!x)
        return as_fail(err, AS_E_STALE, "seat %lld does not live any more", (long long)seat);
    x->outcome = "completed";
    x->has_exit_code = c->has_exit_code;
    x->exit_code = c->exit_code;
    x->has_ran = c->has_ran;
    x->ran_ms = c->ran_ms;
    as_status st = store_gang_said(w->t, &w->key, x, err);
    if (st == AS_OK)
        st = gang_world_apply(w, x, SEAT_EV_END, NULL, err);
    return st == AS_OK ? gang_world_settle(w, err) : st;
}

as_status gang_world_may_echo(const struct gang_world *w, bool *ret, struct as_err *err)
{
    bool spread = false, failed_before = false;
    for (size_t i = 1; i < w->n_seats; i++)
        spread = spread || !as_streq(w->seats[i].runner, w->seats[0].runner);
    *ret = false;
    if (!spread)
        return AS_OK;
    as_status st = store_attempt_failed_before(w->t, w->key.sweep_key, w->key.number,
                                               w->key.attempt, &failed_before, err);
    *ret = st == AS_OK && !failed_before;
    return st;
}

as_status gang_world_check_timeout(const struct gang_world *w, struct as_err *err)
{
    if (w->sweep.trial_timeout_ms > 0 && w->gang.age_ms >= w->sweep.trial_timeout_ms)
        return AS_OK;
    return as_fail_at(err, AS_E_UNSUPPORTED, "/outcome",
                      "/outcome: found timeout, but the gang is %lld ms old and the trial_timeout "
                      "%lld ms",
                      (long long)w->gang.age_ms, (long long)w->sweep.trial_timeout_ms);
}

as_status gang_world_end(struct gang_world *w, const struct trial_change *c, struct as_err *err)
{
    as_status st = trial_transition(w->t, w->a, &w->sweep, &w->trial, c, NULL, err);
    if (st != AS_OK)
        return st;
    w->gang.state = GANG_OVER;
    return sweep_settle(w->t, w->a, w->sweep.key, NULL, err);
}
