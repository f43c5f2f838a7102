/* Transitions: the tables of scheduler/sweep/trial_state.h decide. The decision is performed as one
 * guarded statement, the end of the attempt and an event, in the caller's transaction.
 *
 * No other code writes a state, so the counts, the attempts and the events cannot disagree with it.
 * Trials of one sweep change in sets: the number of statements does not grow with a set. A sweep
 * that is over ends its live trials in the same transaction, CHUNK at a time, so that no statement
 * runs for long. What people see is one change: until the commit the sweep runs, and claims wait
 * for its row or leave it out. The order of locks is runner, sweeps by key, trials; see
 * README.md. */
#include "scheduler/lifecycle/transition.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/dataset_store.h"
#include "scheduler/store/ensemble_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/file_store.h"
#include "scheduler/store/gang_store.h"
#include "scheduler/store/regret_store.h"
#include "scheduler/lifecycle/rungs.h"
#include "scheduler/store/sweep_change_store.h"
#include "scheduler/store/sweep_store.h"

#define CHUNK 1000 /* trials of a set */

/* A trial that loses its last restart gets a longer reason. */
static const char *step_reason(struct arena *a, const struct sweep_head *s,
                               const struct trial_head *x, const struct trial_change *c,
                               const struct trial_step *step)
{
    const char *why = c->reason ? c->reason : step->reason;
    if (c->event != TRIAL_EV_LOSE || step->to != TRIAL_FAILED)
        return why;
    if (as_streq(c->outcome, "lost"))
        return arena_printf(a, "lost its runner %lld times (max_restarts is %lld): %s",
                            (long long)x->restarts + 1, (long long)s->max_restarts, why);
    return arena_printf(a,
                        "asked to be tried again when no restart was left (max_restarts is "
                        "%lld): %s",
                        (long long)s->max_restarts, why);
}

/* A decision of early stopping stands, whatever its attempt did then. Only people, and the end of
 * the sweep, come before it. */
static struct trial_change stand(const struct trial_head *x, const struct trial_change *c)
{
    static const trial_event events[] = {[DECIDED_PRUNE] = TRIAL_EV_PRUNE,
                                         [DECIDED_PAUSE] = TRIAL_EV_PAUSE,
                                         [DECIDED_RESUME] = TRIAL_EV_RELEASE};
    trial_decision d = x->at.decision;
    struct trial_change ret = *c;
    bool is_ours = c->event == TRIAL_EV_CANCEL || (c->event == TRIAL_EV_PRUNE && !c->reported);
    if (x->state != TRIAL_RUNNING || d == DECIDED_NOTHING || is_ours)
        return ret;
    ret.event = events[d];
    ret.reason = x->at.reason;
    if (c->reported)
        ret.outcome = d == DECIDED_PRUNE ? "pruned" : "paused";
    return ret;
}

as_status trial_change_plan(struct arena *a, const struct sweep_head *s, const struct trial_head *x,
                            const struct trial_change *given, struct trial_plan *ret,
                            struct as_err *err)
{
    const struct trial_change standing = stand(x, given), *c = &standing;
    struct trial_step step;
    as_status st = trial_step(x->state, c->event, x->restarts, s->max_restarts, &step, err);
    if (st != AS_OK)
        return st;
    const char *reason = step_reason(a, s, x, c, &step);
    /* A success has no reason. */
    const char *kept = c->event == TRIAL_EV_COMPLETE ? NULL : reason;
    bool unbegun = step.to == TRIAL_QUEUED && c->has_ran && c->ran_ms == 0;
    *ret = (struct trial_plan){.reason = reason,
                               .move = {.from = x->state,
                                        .to = step.to,
                                        .attempt = x->attempt,
                                        .burns_restart = step.burns_restart,
                                        .feasible = c->feasible,
                                        .timed_out = c->event == TRIAL_EV_KEEP,
                                        .reason = kept,
                                        .waited_ms = c->waited_ms,
                                        .never_began = unbegun},
                               .ends_attempt =
                                   x->attempt > 0 && (x->state == TRIAL_RUNNING || c->reported),
                               .end = {.outcome = c->outcome,
                                       .reported = c->reported,
                                       .reason = kept,
                                       .has_exit_code = c->has_exit_code,
                                       .exit_code = c->exit_code,
                                       .has_ran = c->has_ran,
                                       .ran_ms = c->ran_ms,
                                       .waited_ms = c->waited_ms},
                               .event = {.type = "trial.changed",
                                         .sweep_key = s->key,
                                         .sweep = s->id,
                                         .has_number = true,
                                         .number = x->number,
                                         .state = trial_state_format(step.to),
                                         .attempt = x->attempt,
                                         .has_value = x->has_value,
                                         .value = x->value,
                                         .reason = kept,
                                         .runner = x->runner}};
    return AS_OK;
}

/* The rows that a set of transitions writes. */
struct set {
    struct trial_moved *moves;
    struct attempt_ended *ends;
    struct gang_over *gangs;
    struct event_new *events;
    size_t n, n_ends, n_gangs;
};

static as_status set_alloc(struct set *set, struct arena *a, size_t n, struct as_err *err)
{
    set->moves = arena_alloc(a, n, sizeof *set->moves);
    set->ends = arena_alloc(a, n, sizeof *set->ends);
    set->gangs = arena_alloc(a, n, sizeof *set->gangs);
    set->events = arena_alloc(a, n, sizeof *set->events);
    if (!set->moves || !set->ends || !set->gangs || !set->events)
        return as_fail_nomem(err);
    return AS_OK;
}

/* Add the rows of one transition. */
static as_status set_add(struct set *set, struct arena *a, const struct sweep_head *s,
                         const struct trial_head *x, const struct trial_change *c,
                         trial_state *ret_to, struct as_err *err)
{
    struct trial_plan p;
    as_status st = trial_change_plan(a, s, x, c, &p, err);
    if (st != AS_OK)
        return st;
    set->events[set->n] = p.event;
    set->moves[set->n++] = (struct trial_moved){x->sweep_key, x->number, p.move};
    if (p.ends_attempt)
        set->ends[set->n_ends++] =
            (struct attempt_ended){x->sweep_key, x->number, x->attempt, p.end};
    if (x->attempt > 0 && x->gang && x->state == TRIAL_RUNNING)
        set->gangs[set->n_gangs++] =
            (struct gang_over){.key = {x->sweep_key, x->number, x->attempt}, .reason = p.reason};
    if (ret_to)
        *ret_to = p.move.to;
    return AS_OK;
}

/* The change of n trials of one sweep, whose rows the transaction holds. */
static as_status change_set(struct tx *t, struct arena *a, const struct sweep_head *s,
                            const struct trial_head *xs, size_t n, const struct trial_change *c,
                            trial_state *ret_to, struct as_err *err)
{
    struct set set = {0};
    as_status st = set_alloc(&set, a, n, err);
    for (size_t i = 0; i < n && st == AS_OK; i++)
        st = set_add(&set, a, s, &xs[i], c, ret_to, err);
    if (st != AS_OK || (st = store_trial_move_many(t, set.moves, n, err)) != AS_OK ||
        (st = store_attempt_end_many(t, set.ends, set.n_ends, err)) != AS_OK ||
        (st = store_gang_over_many(t, set.gangs, set.n_gangs, err)) != AS_OK)
        return st;
    return store_event_add_many(t, set.events, n, err);
}

/* A trial that has ended goes back to the queue. */
static as_status retry_trial(struct tx *t, struct arena *a, const struct sweep_head *s,
                             const struct trial_head *x, const struct trial_change *c,
                             trial_state *ret_to, struct as_err *err)
{
    struct trial_plan p;
    as_status st = trial_change_plan(a, s, x, c, &p, err);
    if (st == AS_OK)
        st = store_trial_retry(t, x, p.reason, c->by, err);
    if (st != AS_OK)
        return st;
    if (ret_to)
        *ret_to = p.move.to;
    return store_event_add(t, &p.event, err);
}

as_status trial_transition(struct tx *t, struct arena *a, const struct sweep_head *s,
                           const struct trial_head *x, const struct trial_change *c,
                           trial_state *ret_to, struct as_err *err)
{
    if (c->event == TRIAL_EV_RETRY)
        return retry_trial(t, a, s, x, c, ret_to, err);
    return change_set(t, a, s, x, 1, c, ret_to, err);
}

/* Is this running attempt one of those that were read? */
static bool is_among(const struct trial_head *x, const struct trial_head *heads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (heads[i].number == x->number)
            return x->state == TRIAL_RUNNING && x->attempt == heads[i].attempt &&
                   x->epoch == heads[i].epoch;
    }
    return false;
}

/* Lose trials, but those that ended or changed since their heads were read. */
static as_status lose_trials(struct tx *t, struct arena *a, const struct sweep_head *s,
                             const struct trial_head *heads, size_t n, const struct trial_change *c,
                             int64_t *ret_n, struct as_err *err)
{
    struct trial_list_heads now;
    as_status st = store_trial_lock_many(t, a, heads, n, &now, err);
    if (st != AS_OK)
        return st;
    size_t n_lost = 0;
    for (size_t i = 0; i < now.n; i++) {
        if (is_among(&now.rows[i], heads, n))
            now.rows[n_lost++] = now.rows[i];
    }
    st = n_lost > 0 ? change_set(t, a, s, now.rows, n_lost, c, NULL, err) : AS_OK;
    *ret_n += st == AS_OK ? (int64_t)n_lost : 0;
    return st;
}

/* Lose the trials of one sweep: heads[0..n). */
static as_status lose_in_sweep(struct tx *t, struct arena *a, const struct trial_head *heads,
                               size_t n, const struct trial_change *c, int64_t *ret_n,
                               struct as_err *err)
{
    struct sweep_head s;
    as_status st = store_sweep_lock(t, a, heads[0].sweep_key, &s, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < n; i += CHUNK) {
        st = lose_trials(t, a, &s, heads + i, n - i < CHUNK ? n - i : CHUNK, c, ret_n, err);
        if (st != AS_OK)
            return st;
    }
    return sweep_settle(t, a, s.key, NULL, err);
}

as_status trials_lose(struct tx *t, struct arena *a, const struct trial_list_heads *heads,
                      const char *outcome, const char *reason, int64_t *ret_n, struct as_err *err)
{
    bool released = as_streq(outcome, "released");
    struct trial_change c = {
        .event = released ? TRIAL_EV_RELEASE : TRIAL_EV_LOSE, .reason = reason, .outcome = outcome};
    *ret_n = 0;
    for (size_t i = 0; i < heads->n;) {
        size_t end = i;
        while (end < heads->n && heads->rows[end].sweep_key == heads->rows[i].sweep_key)
            end++;
        as_status st = lose_in_sweep(t, a, heads->rows + i, end - i, &c, ret_n, err);
        if (st != AS_OK && st != AS_E_NOT_FOUND) /* AS_E_NOT_FOUND: the sweep was deleted with
                                                    its trials */
            return st;
        i = end;
    }
    if (!released)
        atomic_fetch_add(&store_counters(tx_store(t))->attempts_lost, *ret_n);
    return AS_OK;
}

/* Move those that early stopping told to wait or to stop to the end; returns how many others there
 * are. One that was promoted since is live like any that is queued. */
static size_t part_told(struct trial_head *rows, size_t n)
{
    for (size_t i = 0; i < n;) {
        if (rows[i].at.decision == DECIDED_NOTHING || rows[i].at.decision == DECIDED_RESUME) {
            i++;
            continue;
        }
        struct trial_head told = rows[i];
        rows[i] = rows[--n];
        rows[n] = told;
    }
    return n;
}

/* End the trials that live. is_done: the sweep has what it wanted, or no budget left: what waits
 * for a promotion is pruned then. */
static as_status end_live(struct tx *t, struct arena *a, const struct sweep_head *s, bool is_done,
                          const char *reason, const char *why, struct as_err *err)
{
    const struct trial_change c = {
        .event = TRIAL_EV_CANCEL, .reason = reason, .outcome = "cancelled"};
    const struct trial_change told = {
        .event = TRIAL_EV_PRUNE,
        .reason = arena_printf(a, "it was not promoted before the sweep ended: %s", why),
        .outcome = "pruned"};
    if (!told.reason)
        return as_fail_nomem(err);
    for (int64_t last = -1;;) {
        struct trial_list_heads live = {0}; /* measurements change them without the sweep's lock */
        as_status st = store_trial_lock_live(t, a, s->key, last, CHUNK, &live, err);
        if (st != AS_OK || live.n == 0)
            return st;
        last = live.rows[live.n - 1].number;
        size_t n = is_done ? part_told(live.rows, live.n) : live.n;
        if (n > 0 && (st = change_set(t, a, s, live.rows, n, &c, NULL, err)) != AS_OK)
            return st;
        if (n < live.n &&
            (st = change_set(t, a, s, live.rows + n, live.n - n, &told, NULL, err)) != AS_OK)
            return st;
    }
}

/* A sweep that runs on needs its data sets, which may be deleted while no live sweep uses them.
 * Their rows are held, as when a sweep is created. */
static as_status hold_datasets(struct tx *t, struct arena *a, const struct sweep_head *s,
                               struct as_err *err)
{
    const char **names = NULL;
    size_t n = 0;
    as_status st = store_sweep_datasets(t, a, s->key, &names, &n, err);
    for (size_t i = 0; i < n && st == AS_OK; i++) {
        st = store_dataset_lock(t, names[i], err);
        if (st == AS_E_NOT_FOUND)
            return as_fail(err, AS_E_CONFLICT,
                           "the sweep '%s' cannot run on: its data set '%s' was deleted; add it "
                           "again first",
                           s->id, names[i]);
    }
    return st;
}

as_status sweep_transition(struct tx *t, struct arena *a, const struct sweep_head *s,
                           sweep_event ev, const char *reason, struct as_err *err)
{
    struct sweep_step step;
    as_status st = sweep_step(s->state, ev, &step, err);
    if (st != AS_OK)
        return st;
    if (ev == SWEEP_EV_REOPEN && (st = hold_datasets(t, a, s, err)) != AS_OK)
        return st;
    const char *why = reason ? reason : step.reason;
    if (step.to != SWEEP_RUNNING && step.to != SWEEP_PAUSED) {
        const char *told = arena_printf(a, "the sweep is %s: %s", sweep_state_format(step.to), why);
        if (!told)
            return as_fail_nomem(err);
        st = end_live(t, a, s, step.to == SWEEP_FINISHING, told, why, err);
        if (st == AS_OK && s->stops)
            st = store_file_drop_kept(t, s->key, err);
        if (st != AS_OK)
            return st;
    }
    st = store_sweep_move(t, s->key, s->state, step.to, step.to == SWEEP_RUNNING ? NULL : why, err);
    if (st != AS_OK)
        return st;
    if (step.to == SWEEP_FINISHING)
        tx_finishing(t);
    if (ev == SWEEP_EV_REOPEN && (st = store_ensemble_reset(t, s->key, err)) < 0)
        return st;
    struct event_new e = {.type = "sweep.changed",
                          .sweep_key = s->key,
                          .sweep = s->id,
                          .state = sweep_state_format(step.to),
                          .reason = why};
    return store_event_add(t, &e, err);
}

struct sweep_standing sweep_standing_of(const struct sweep_head *s)
{
    const int64_t *n = s->counts.by_state;
    /* known results report at no rung */
    int64_t n_ended = n[TRIAL_COMPLETED] - (s->known - s->known_failed) + n[TRIAL_PRUNED];
    return (struct sweep_standing){.planned = s->planned,
                                   .total = s->counts.total,
                                   .live = n[TRIAL_QUEUED] + n[TRIAL_RUNNING],
                                   .failed = n[TRIAL_FAILED] - s->known_failed,
                                   .max_failed = s->max_failed,
                                   .wall_time_over = s->wall_time_over,
                                   .is_spent = s->is_spent,
                                   .is_blind = s->is_strict && n_ended > 0,
                                   .target_reached = s->target_reached,
                                   .little_left = s->little_left};
}

sweep_end sweep_end_due(sweep_state state, const struct sweep_standing *now)
{
    return state == SWEEP_RUNNING || state == SWEEP_PAUSED ? sweep_end_of(now) : SWEEP_GOES_ON;
}

/* Which trial reached the target, for people. */
static as_status target_reason(struct tx *t, struct arena *a, const struct sweep_head *s,
                               const char **ret, struct as_err *err)
{
    struct sweep_target best;
    char value[32], target[32];
    as_status st = store_sweep_target(t, s->key, &best, err);
    if (st != AS_OK)
        return st;
    *ret = arena_printf(a, "trial %lld reached the target: %s is %s, target is %s",
                        (long long)best.number, s->metric,
                        as_format_double(best.value, value, sizeof value),
                        as_format_double(best.target, target, sizeof target));
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* The bound that is within stop_when, for people. */
static as_status little_left_reason(struct tx *t, struct arena *a, const struct sweep_head *s,
                                    const char **ret, struct as_err *err)
{
    struct regret_latest x;
    char limit[32];
    as_status st = store_regret_latest(t, s->key, &x, err);
    if (st != AS_OK)
        return st;
    const bool is_relative = isnan(x.stop_regret);
    const char *stop =
        as_format_double(is_relative ? x.stop_relative : x.stop_regret, limit, sizeof limit);
    *ret = is_relative
               ? arena_printf(a,
                              "at most %.3g of %s was left to gain after %lld completed trials, "
                              "%.3g of their span (stop_when.relative is %s)",
                              x.check.bound, s->metric, (long long)x.check.completed,
                              x.check.relative, stop)
               : arena_printf(a,
                              "at most %.3g of %s was left to gain after %lld completed trials "
                              "(stop_when.regret is %s)",
                              x.check.bound, s->metric, (long long)x.check.completed, stop);
    return *ret ? AS_OK : as_fail_nomem(err);
}

/* Why a sweep ends, for people; NULL: as the table says. */
static as_status end_reason(struct tx *t, struct arena *a, const struct sweep_head *s,
                            const struct sweep_standing *now, sweep_end end, const char **ret,
                            struct as_err *err)
{
    *ret = NULL;
    if (end == SWEEP_TARGET_REACHED)
        return target_reason(t, a, s, ret, err);
    if (end == SWEEP_IS_BLIND)
        return rungs_warning(t, a, s->key, ret, err);
    if (end == SWEEP_LITTLE_LEFT)
        return little_left_reason(t, a, s, ret, err);
    if (end == SWEEP_OUT_OF_STEPS)
        *ret = "max_steps are spent";
    if (end == SWEEP_TOO_MANY_FAILED)
        *ret = arena_printf(a, "%lld trials failed (max_failed_trials is %lld)",
                            (long long)now->failed, (long long)now->max_failed);
    return AS_OK;
}

as_status sweep_settle(struct tx *t, struct arena *a, int64_t key, bool *ret_ended,
                       struct as_err *err)
{
    struct sweep_head s;
    as_status st = store_sweep_lock(t, a, key, &s, err); /* lock and read again: the counts have
                                                            changed */
    if (ret_ended)
        *ret_ended = false;
    if (st != AS_OK)
        return st;
    static const sweep_event events[] = {
        [SWEEP_TARGET_REACHED] = SWEEP_EV_TARGET, [SWEEP_TOO_MANY_FAILED] = SWEEP_EV_FAIL,
        [SWEEP_IS_BLIND] = SWEEP_EV_FAIL,         [SWEEP_LITTLE_LEFT] = SWEEP_EV_SETTLE,
        [SWEEP_OUT_OF_TIME] = SWEEP_EV_TIMEOUT,   [SWEEP_OUT_OF_STEPS] = SWEEP_EV_EXHAUST,
        [SWEEP_ALL_ENDED] = SWEEP_EV_EXHAUST};
    const struct sweep_standing now = sweep_standing_of(&s);
    const sweep_end end = sweep_end_due(s.state, &now);
    const char *reason = NULL;
    bool is_promoted = false;
    if (end == SWEEP_ALL_ENDED && s.stops && s.counts.by_state[TRIAL_PAUSED] > 0)
        st = rungs_close(t, a, &s, &is_promoted, err);
    if (st == AS_OK && is_promoted && s.limits_steps) /* are there steps for them? */
        return sweep_settle(t, a, key, ret_ended, err);
    if (st != AS_OK || end == SWEEP_GOES_ON || is_promoted)
        return st;
    if ((st = end_reason(t, a, &s, &now, end, &reason, err)) != AS_OK)
        return st;
    st = sweep_transition(t, a, &s, events[end], reason, err);
    if (st == AS_OK && ret_ended)
        *ret_ended = true;
    return st;
}
