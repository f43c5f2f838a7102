/* The one way in which trials and sweeps change state: ask the tables of
 * scheduler/sweep/trial_state.h, perform the guarded statement, end the attempt, write the event.
 * All of it inside the caller's transaction, which holds the sweep's row (store_sweep_lock). */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_TRANSITION_H
#define ASSAY_SCHEDULER_LIFECYCLE_TRANSITION_H

#include "base/arena.h"
#include "scheduler/store/sweep_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"

struct trial_change {
    trial_event event;
    const char *reason;   /* NULL: the table's sentence */
    const char *outcome;  /* of the attempt: "lost", "completed", … */
    const char *reported; /* the outcome that its runner reported; NULL when it did not */
    bool has_exit_code;
    int64_t exit_code;
    bool feasible; /* of one that completes */
};

/* AS_E_CONFLICT: the state does not allow the event. *ret_to may be NULL. */
AS_MUST_CHECK as_status trial_transition(struct tx *t, struct arena *a, const struct sweep_head *s,
                                         const struct trial_head *x, const struct trial_change *c,
                                         trial_state *ret_to, struct as_err *err);

/* Lose an attempt: back to the queue, or failed when no restart is left. Sweeps are locked as they
 * come, so `heads` must be in the order of sweeps (the store hands them out so). Trials that
 * changed meanwhile are passed over. *ret_n counts those lost; `outcome` is that of the attempts
 * ("lost"), or "released", which burns no restart. */
AS_MUST_CHECK as_status trials_lose(struct tx *t, struct arena *a,
                                    const struct trial_list_heads *heads, const char *outcome,
                                    const char *reason, int64_t *ret_n, struct as_err *err);

/* Cancels what is live unless the sweep merely pauses or resumes. reason NULL: the table's. */
AS_MUST_CHECK as_status sweep_transition(struct tx *t, struct arena *a, const struct sweep_head *s,
                                         sweep_event ev, const char *reason, struct as_err *err);

/* After trials ended: does the sweep end too? It fails when too many failed, ends when its time or
 * its trials are over. *ret_ended may be NULL. */
AS_MUST_CHECK as_status sweep_settle(struct tx *t, struct arena *a, int64_t key, bool *ret_ended,
                                     struct as_err *err);

#endif
