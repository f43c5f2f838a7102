/* The end of a sweep: its ensemble, then its last state.
 *
 * The work is split into three transactions: take (a lease in the table `ensemble`), read the
 * candidates, and finish. The computation (ensemble_result.c) runs between the last two, because it
 * takes seconds. */
#include "scheduler/lifecycle/ensembles.h"

#include "scheduler/lifecycle/ensemble_result.h"
#include "scheduler/lifecycle/transition.h"
#include "scheduler/store/ensemble_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/sweep_head_store.h"

struct work {
    struct arena *a; /* of the tick */
    struct sweep_head s;
    int64_t key;
    struct ensemble_candidate *candidates;
    size_t n;

    const char *state; /* of the result */
    char *json;        /* owned: the result */
};

static void work_done(struct work *w)
{
    free(w->json);
}

static as_status compute_ensemble(struct store *db, struct work *w, struct as_err *err)
{
    const struct ensemble_job job = {
        .sweep = w->s.id,
        .metric = w->s.metric,
        .is_trainers = w->s.max_group > 0,
        .maximize = w->s.maximize,
        .seed = (uint64_t)w->s.seed,
        .options = {ensemble_method_of(w->s.ensemble_method), (size_t)w->s.ensemble_size,
                    w->s.ensemble_non_negative, w->s.ensemble_calibrate},
        .candidates = w->candidates,
        .n = w->n};
    if (w->s.ensemble_size > 0)
        return ensemble_compute(db, &job, &w->json, &w->state, err);
    w->state = "none";
    w->json = ensemble_none("the sweep asks for none", 0);
    return w->json ? AS_OK : as_fail_nomem(err);
}

static as_status take_ensemble(struct tx *t, struct work *w, struct as_err *err)
{
    as_status st = store_ensemble_take(t, ENSEMBLE_LEASE_MS, &w->key, err);
    if (st != AS_OK || w->key == 0)
        return st;
    return store_sweep_lock(t, w->a, w->key, &w->s, err);
}

static as_status finish_sweep(struct tx *t, const struct work *w, struct as_err *err)
{
    struct sweep_head now;
    as_status st = store_sweep_lock(t, w->a, w->key, &now, err);
    if (st != AS_OK || now.state != SWEEP_FINISHING || now.finish_seq != w->s.finish_seq)
        return st; /* the sweep was cancelled, or another server was faster, or the sweep ran on
                      and ended again: its ensemble is computed from the trials of that end */
    st = store_ensemble_put(t, w->key, w->state, w->json, err);
    if (st != AS_OK)
        return st;
    struct event_new e = {
        .type = "ensemble.ready", .sweep_key = w->key, .sweep = now.id, .state = w->state};
    st = store_event_add(t, &e, err);
    if (st != AS_OK)
        return st;
    bool any = now.counts.by_state[TRIAL_COMPLETED] > 0;
    const char *why = any                  ? NULL
                      : now.wall_time_over ? "wall_time is over, and no trial completed"
                      : now.is_spent       ? "max_steps are spent, and no trial completed"
                                           : NULL;
    return sweep_transition(t, w->a, &now, any ? SWEEP_EV_FINISH : SWEEP_EV_FAIL, why, err);
}

static as_status read_work(struct store *db, struct work *w, struct as_err *err)
{
    const char *const sweeps[] = {w->s.id};
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_ensemble_candidates(run.tx, w->a, sweeps, 1, w->s.maximize,
                                               ENSEMBLE_CANDIDATES_MAX, &w->candidates, &w->n, err);
    return run.status;
}

as_status ensembles_tick(struct store *db, bool *ret_worked, struct as_err *err)
{
    AS_AUTO(arena_done) struct arena a = {0};
    AS_AUTO(work_done) struct work w = {.a = &a};
    *ret_worked = false;
    struct tx_run taking = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&taking))
        taking.status = take_ensemble(taking.tx, &w, err);
    if (taking.status != AS_OK || w.key == 0)
        return taking.status;
    as_status st = read_work(db, &w, err);
    if (st != AS_OK)
        return st;
    st = compute_ensemble(db, &w, err);
    if (st != AS_OK)
        return st;
    struct tx_run ending = tx_run_start(db, TX_WRITE, err);
    while (tx_run_again(&ending))
        ending.status = finish_sweep(ending.tx, &w, err);
    *ret_worked = ending.status == AS_OK;
    return ending.status;
}

as_status ensemble_get(struct store *db, struct arena *a, const char *sweep, const char **ret_json,
                       struct as_err *err)
{
    const char *json = NULL;
    sweep_state state = SWEEP_RUNNING;
    struct tx_run run = tx_run_start(db, TX_READ, err);
    while (tx_run_again(&run))
        run.status = store_ensemble_get(run.tx, a, sweep, &json, &state, err);
    if (run.status != AS_OK)
        return run.status;
    if (!json && sweep_state_is_final(state))
        json = arena_printf(a, "{\"reason\":\"the sweep %s\",\"state\":\"none\"}",
                            state == SWEEP_FAILED ? "failed" : "was cancelled");
    else if (!json)
        json = arena_strdup(a, "{\"state\":\"pending\"}");
    if (!json)
        return as_fail_nomem(err);
    *ret_json = json;
    return AS_OK;
}
