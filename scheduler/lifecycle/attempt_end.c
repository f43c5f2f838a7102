/* The end of an attempt. It may arrive twice: a repeat gets the answer of the first. */
#include "scheduler/lifecycle/attempts_priv.h"

#include "base/metric_name.h"
#include "scheduler/lifecycle/feasibility.h"
#include "scheduler/lifecycle/gang_world.h"
#include "scheduler/lifecycle/rungs.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/gang_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_row_store.h"
#include "scheduler/sweep/sweep_doc.h"

/* What a reported end did. */
struct acceptance {
    bool accepted; /* it changed the trial */
    bool late;     /* after the attempt was declared lost */
};

/* The meaning of the reported outcome, given what was measured. */
static as_status change_of(struct tx *t, struct arena *a, const struct completion *c,
                           const struct sweep_head *s, const struct trial_head *x,
                           struct trial_change *ret, struct as_err *err)
{
    as_status st = attempt_change_of(a, c, ret, err);
    if (st != AS_OK || x->at.decision != DECIDED_NOTHING)
        return st;
    if (c->outcome == OUTCOME_TIMEOUT)
        return trial_judge_timeout(t, a, s, x, ret, err);
    return c->outcome == OUTCOME_COMPLETED ? trial_judge(t, a, s, x, ret, err) : AS_OK;
}

/* Do the final values differ from what is recorded? A value that would be dropped without a word
 * is refused. */
static as_status check_recorded(struct tx *t, const struct trial_head *x, int64_t attempt,
                                const struct measurement *points, size_t n, struct as_err *err)
{
    struct measured_other other = {.place = -1};
    as_status st =
        store_measurement_other(t, x->sweep_key, x->number, attempt, points, n, &other, err);
    if (st < 0 || other.place < 0)
        return st;
    return attempt_other_value(&points[other.place], &other, x->state, err);
}

/* Record the final values, and read the row again. */
static as_status add_final(struct tx *t, struct arena *a, const struct completion *c,
                           struct sweep_head *s, struct trial_head *x, struct as_err *err)
{
    struct measurement *points = arena_alloc(a, c->n_metrics, sizeof *points);
    struct measured measured;
    int64_t latest = -1;
    if (!points)
        return as_fail_nomem(err);
    as_status st =
        store_measurement_latest_step(t, x->sweep_key, x->number, x->attempt, &latest, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < c->n_metrics; i++) {
        points[i] = c->metrics[i];
        if (points[i].step < 0)
            points[i].step = latest < INT64_MAX ? latest + 1 : latest;
    }
    st = store_measurement_add(t, x->sweep_key, x->number, x->attempt, points, c->n_metrics,
                               &measured, err);
    if (st != AS_OK)
        return st;
    if (measured.recorded < (int64_t)c->n_metrics)
        st = check_recorded(t, x, x->attempt, points, c->n_metrics, err);
    if (st == AS_OK && s->stops && x->state == TRIAL_RUNNING && x->at.decision == DECIDED_NOTHING)
        st = rungs_reach(t, a, s, x, &(struct rung_near){0}, points, c->n_metrics,
                         attempt_is_last(c), err);
    if (st != AS_OK)
        return st;
    return store_trial_lock(t, a, x->sweep_key, x->number, x, err);
}

/* The final values, and with them the time of a step, if the sweep asks for it. *ret: what is
 * recorded; views of c and the arena. */
static as_status with_step_seconds(struct arena *a, const struct completion *c,
                                   const struct sweep_head *s, const struct trial_head *x,
                                   struct completion *ret, struct as_err *err)
{
    struct required_metrics w;
    bool asked = false;
    *ret = *c;
    if (!x->gang || c->rank_step_seconds <= 0 || c->outcome != OUTCOME_COMPLETED)
        return AS_OK;
    as_status st = required_metrics_of(a, s, &w, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 0; i < w.n; i++)
        asked = asked || as_streq(w.names[i], SWEEP_STEP_SECONDS);
    for (size_t i = 0; i < c->n_metrics; i++)
        asked = asked && !as_streq(c->metrics[i].metric, SWEEP_STEP_SECONDS);
    if (!asked)
        return AS_OK;
    struct measurement *all = arena_alloc(a, c->n_metrics + 1, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    for (size_t i = 0; i < c->n_metrics; i++)
        all[i] = c->metrics[i];
    all[c->n_metrics] = (struct measurement){
        .step = -1, .metric = SWEEP_STEP_SECONDS, .value = c->rank_step_seconds};
    ret->metrics = all;
    ret->n_metrics = c->n_metrics + 1;
    return AS_OK;
}

/* Is this a repeat of an end that was accepted before? Then there is nothing to do. */
static as_status said_before(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                             const struct completion *c, const struct trial_head *x, bool *ret,
                             struct as_err *err)
{
    const char *reported = NULL;
    as_status st =
        store_attempt_reported(t, a, x->sweep_key, x->number, ref->attempt, &reported, err);
    *ret = false;
    if (st < 0 || !reported)
        return st;
    if (!as_streq(reported, attempt_outcome_words[c->outcome]))
        return attempt_fail_stale(t, ref, x, err);
    *ret = true;
    return check_recorded(t, x, ref->attempt, c->metrics, c->n_metrics, err);
}

/* The rank that leads a gang ends the attempt for all. In a gang that is not elastic its success
 * waits for the others, if they run the command too, and its failure may be an echo (gang_world.h).
 * *ret_held: the seat keeps the end. */
static as_status end_gang(struct tx *t, struct arena *a, const struct attempt_writer *by,
                          const struct completion *c, const struct trial_head *x,
                          struct trial_change *ch, bool *ret_held, struct as_err *err)
{
    const struct gang_key key = {x->sweep_key, x->number, x->attempt};
    struct gang_world w;
    as_status st = gang_world_open(t, a, &key, &w, err);
    *ret_held = false;
    if (st == AS_OK && c->outcome == OUTCOME_TIMEOUT)
        st = gang_world_check_timeout(&w, err);
    if (st != AS_OK || w.gang.elastic)
        return st;
    bool is_echo = false;
    if (c->outcome == OUTCOME_FAILED && (st = gang_world_may_echo(&w, &is_echo, err)) != AS_OK)
        return st;
    if (is_echo || (c->outcome == OUTCOME_FAILED && w.sweep.shrinks)) {
        ch->event = TRIAL_EV_LOSE;
        ch->outcome = "retry";
    }
    if (is_echo || (c->outcome == OUTCOME_RETRY && c->has_exit_code && c->exit_code < 0))
        gang_world_spare(&w, ch);
    if (ch->event != TRIAL_EV_COMPLETE)
        return AS_OK;
    if (as_streq(w.gang.launch, "first"))
        return AS_OK; /* the others have no process */
    *ret_held = true;
    return gang_world_complete(&w, by->seat, ch, err);
}

/* Has the rank that leads said its success, and the others have not yet? */
static as_status is_held(struct tx *t, struct arena *a, const struct attempt_writer *by,
                         const struct completion *c, const struct trial_head *x, bool *ret,
                         struct as_err *err)
{
    const struct gang_key key = {x->sweep_key, x->number, x->attempt};
    struct gang_seat_row seat;
    as_status st = store_gang_seat(t, a, &key, by->seat, &seat, err);
    *ret = st == AS_OK && seat.state == SEAT_ENDED && c->outcome == OUTCOME_COMPLETED;
    return st;
}

/* A trial that was paused may have reported past its next rung before it ended. When it completes
 * without another report, those values are the results of its rungs. */
static as_status reach_passed(struct tx *t, struct arena *a, const struct rung_near *near,
                              const struct trial_change *ch, struct sweep_head *s,
                              struct trial_head *x, struct as_err *err)
{
    if (!s->stops || ch->event != TRIAL_EV_COMPLETE || x->state != TRIAL_RUNNING ||
        x->at.decision != DECIDED_NOTHING || !rung_is_past(near))
        return AS_OK;
    return rungs_reach(t, a, s, x, near, NULL, 0, true, err);
}

static as_status accept_end(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                            const struct attempt_writer *by, const struct completion *c,
                            const struct rung_near *near, struct sweep_head *s,
                            struct trial_head *x, struct as_err *err)
{
    struct trial_change ch;
    as_status st = AS_OK;
    if (!attempt_end_counts(x, ref, c->outcome == OUTCOME_COMPLETED))
        return attempt_fail_stale(t, ref, x, err);
    bool held = false;
    if (x->gang && (st = attempt_check_leads(t, ref, s->key, by, err)) == AS_OK)
        st = is_held(t, a, by, c, x, &held, err);
    if (st != AS_OK || held)
        return st;
    const struct gang_key gang = {x->sweep_key, x->number, x->attempt};
    if (x->gang && c->has_rank &&
        (st = store_gang_reached(t, &gang, by->seat, c->rank_step, c->rank_sent_bytes, err)) !=
            AS_OK)
        return st;
    if (!x->gang && (st = attempt_check_timeout(c, s, err)) != AS_OK)
        return st;
    if ((st = attempt_check_told(c, x, err)) != AS_OK)
        return st;
    struct completion final;
    st = with_step_seconds(a, c, s, x, &final, err);
    if (st == AS_OK && final.n_metrics > 0)
        st = add_final(t, a, &final, s, x, err);
    if (st != AS_OK)
        return st;
    st = change_of(t, a, c, s, x, &ch, err);
    if (st != AS_OK)
        return st;
    if (!attempt_end_counts(x, ref, ch.event == TRIAL_EV_COMPLETE))
        return attempt_fail_stale(t, ref, x, err);
    if (x->gang && x->at.decision == DECIDED_NOTHING) /* else it is over for all ranks */
        st = end_gang(t, a, by, c, x, &ch, &held, err);
    if (st == AS_OK && !held)
        st = reach_passed(t, a, near, &ch, s, x, err);
    if (st == AS_OK && !held)
        st = trial_transition(t, a, s, x, &ch, NULL, err);
    if (st != AS_OK)
        return st;
    return sweep_settle(t, a, s->key, NULL, err);
}

static as_status complete_trial(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                                const struct attempt_writer *by, const struct completion *c,
                                struct acceptance *ret, struct trial_row *ret_trial,
                                struct as_err *err)
{
    struct sweep_head s;
    struct trial_head x;
    bool repeat = false;
    struct attempt_holder holder;
    as_status st = attempt_find(t, a, ref, by, &holder, err);
    int64_t key = st == AS_OK ? holder.sweep_key : 0;
    if (st < 0 || (st = store_sweep_lock(t, a, key, &s, err)) < 0 ||
        (st = store_trial_lock(t, a, key, ref->number, &x, err)) < 0 ||
        (st = said_before(t, a, ref, c, &x, &repeat, err)) < 0)
        return st;
    if (!repeat)
        st = accept_end(t, a, ref, by, c, &holder.near, &s, &x, err);
    if (st != AS_OK)
        return st;
    *ret = (struct acceptance){.accepted = !repeat, .late = x.state == TRIAL_QUEUED};
    return store_trial_get(t, a, key, ref->number, ret_trial, err);
}

as_status attempt_complete(struct store *db, struct arena *a, const struct attempt_ref *ref,
                           const struct attempt_writer *by, const struct completion *c,
                           struct trial_row *ret, struct as_err *err)
{
    struct acceptance got = {0};
    struct trial_row row;
    as_status st = attempt_check_completion(c, err);
    if (st != AS_OK)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = complete_trial(run.tx, a, ref, by, c, &got, &row, err);
    if (run.status != AS_OK)
        return run.status;
    if (got.accepted)
        atomic_fetch_add(&store_counters(db)->trials_completed, 1);
    if (got.accepted && got.late)
        atomic_fetch_add(&store_counters(db)->late_accepted, 1);
    *ret = row;
    return AS_OK;
}
