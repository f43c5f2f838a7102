/* The measurements of a running attempt, fenced as every write of it (attempt_fence.c). Values that
 * reach a rung of early stopping are decided about where they are recorded (rungs.h). */
#include "scheduler/lifecycle/attempts_priv.h"

#include "scheduler/lifecycle/rungs.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/measurement_store.h"
#include "scheduler/store/note_store.h"
#include "scheduler/store/sweep_head_store.h"

static as_status add_points(struct tx *t, const struct attempt_ref *ref, const struct trial_head *x,
                            const struct attempt_report *report, struct measured *ret,
                            struct as_err *err)
{
    as_status st = store_measurement_add(t, x->sweep_key, x->number, x->attempt, report->points,
                                         report->n_points, ret, err);
    if (st < 0 || ret->recorded == 0)
        return st;
    struct event_new e = {.type = "trial.measured",
                          .sweep_key = x->sweep_key,
                          .sweep = ref->sweep,
                          .has_number = true,
                          .number = x->number,
                          .state = trial_state_format(x->state),
                          .attempt = x->attempt,
                          .has_value = ret->has_value,
                          .value = ret->value};
    return store_event_add(t, &e, err);
}

/* A report that may reach a rung holds the row of its sweep before that of its trial. */
static as_status add_report(struct tx *t, struct arena *a, const struct attempt_ref *ref,
                            const struct attempt_writer *by, const struct attempt_report *report,
                            struct attempt_recorded *ret, struct as_err *err)
{
    struct attempt_holder holder;
    struct measured measured = {0};
    struct sweep_head s = {0};
    struct trial_head x;
    as_status st = attempt_find(t, a, ref, by, &holder, err);
    if (st != AS_OK)
        return st;
    bool is_near = rung_is_near(&holder.near, report->points, report->n_points);
    if (is_near && (st = store_sweep_lock(t, a, holder.sweep_key, &s, err)) != AS_OK)
        return st;
    st = attempt_lock_trial(t, a, ref, by, holder.sweep_key, &x, err);
    if (st == AS_OK && report->n_notes > 0)
        st = store_note_put(t, x.sweep_key, x.number, report->notes, report->n_notes, err);
    if (st == AS_OK)
        st = add_points(t, ref, &x, report, &measured, err);
    if (st == AS_OK && is_near && x.state == TRIAL_RUNNING && x.at.decision == DECIDED_NOTHING)
        st = rungs_reach(t, a, &s, &x, &holder.near, report->points, report->n_points, false, err);
    ret->points = measured.recorded;
    return st == AS_OK ? rungs_directive(a, ref, &x.at, &ret->directive, err) : st;
}

as_status attempt_record(struct store *db, struct arena *a, const struct attempt_ref *ref,
                         const struct attempt_writer *by, const struct attempt_report *report,
                         struct attempt_recorded *ret, struct as_err *err)
{
    struct attempt_recorded got = {0};
    as_status st = attempt_check_report(report, err);
    if (st < 0)
        return st;
    struct tx_run run = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&run))
        run.status = add_report(run.tx, a, ref, by, report, &got, err);
    if (run.status != AS_OK)
        return run.status;
    atomic_fetch_add(&store_counters(db)->measurements, got.points);
    *ret = got;
    return AS_OK;
}
