/* The only way in which trials and sweeps change state: look up the tables of
 * scheduler/sweep/trial_state.h, perform the guarded statement, end the attempt, write the event.
 * All of it happens in the caller's transaction, which holds the sweep's row (store_sweep_lock). */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_TRANSITION_H
#define ASSAY_SCHEDULER_LIFECYCLE_TRANSITION_H

#include "base/arena.h"
#include "scheduler/store/attempt_store.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_move_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/sweep_end.h"

struct trial_change {
    trial_event event;
    const char *reason;   /* NULL: the table's sentence */
    const char *outcome;  /* the outcome of the attempt: "lost", "completed", … */
    const char *reported; /* the outcome that its runner reported; NULL: none */
    bool has_exit_code;
    int64_t exit_code;
    bool has_ran;
    int64_t ran_ms;    /* how long its process ran, as its runner says */
    int64_t waited_ms; /* and how long it waited for a slot before that (struct attempt_end) */
    bool feasible;     /* only for a trial that completes */
    const char *by;    /* TRIAL_EV_RETRY: the id of the user's token; NULL: none */
};

/* What a change writes. */
struct trial_plan {
    struct trial_move move;
    const char *reason; /* also of a success, which stores none */
    bool ends_attempt;  /* `end` is written */
    struct attempt_end end;
    struct event_new event;
};

/* Plan a change; pure. A decision of early stopping about a running trial stands: its attempt may
 * end as it likes, the trial is pruned, paused, or queued again if it was promoted meanwhile.
 * Strings are borrowed from the arguments, or in `a`. AS_E_CONFLICT: the state does not allow the
 * event. */
AS_MUST_CHECK as_status trial_change_plan(struct arena *a, const struct sweep_head *s,
                                          const struct trial_head *x, const struct trial_change *c,
                                          struct trial_plan *ret, struct as_err *err);

/* AS_E_CONFLICT: the state does not allow the event. *ret_to may be NULL. */
AS_MUST_CHECK as_status trial_transition(struct tx *t, struct arena *a, const struct sweep_head *s,
                                         const struct trial_head *x, const struct trial_change *c,
                                         trial_state *ret_to, struct as_err *err);

/* Lose attempts: each trial goes back to the queue, or fails if it has no restart left. Sweeps are
 * locked one after the other, so `heads` must be in the order of sweeps (the store returns them in
 * this order). Trials that changed meanwhile are left out. *ret_n counts the lost ones. `outcome`
 * is the outcome of the attempts: "lost", or "released", which uses no restart. */
AS_MUST_CHECK as_status trials_lose(struct tx *t, struct arena *a,
                                    const struct trial_list_heads *heads, const char *outcome,
                                    const char *reason, int64_t *ret_n, struct as_err *err);

/* Change the state of a sweep. Its live trials are cancelled when it ends; those that early
 * stopping told to wait are pruned if it finishes. A sweep that runs on after its end gets a new
 * ensemble at its next end. reason NULL: the table's. AS_E_CONFLICT: the table has no such step, or
 * a sweep that is to run on has lost a data set. */
AS_MUST_CHECK as_status sweep_transition(struct tx *t, struct arena *a, const struct sweep_head *s,
                                         sweep_event ev, const char *reason, struct as_err *err);

/* Where the sweep stands, for the rule of its end. */
struct sweep_standing sweep_standing_of(const struct sweep_head *s);

/* How does a sweep in this state end now, if it does? Pure. */
sweep_end sweep_end_due(sweep_state state, const struct sweep_standing *now);

/* After trials ended: end the sweep too if it is over. It fails if too many trials failed, and ends
 * if its time or its trials are over. *ret_ended may be NULL. */
AS_MUST_CHECK as_status sweep_settle(struct tx *t, struct arena *a, int64_t key, bool *ret_ended,
                                     struct as_err *err);

#endif
