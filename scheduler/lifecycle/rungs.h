/* Early stopping in the service: which rungs a report reaches, what follows, and what is written.
 *
 * The rules are those of search/stopping, on the board of the sweep (sweep/rung_board.h). A
 * decision is made once, in the transaction that holds the sweep's row and records the values. It
 * stands: however the attempt ends then, the trial is pruned or paused (transition.h). */
#ifndef ASSAY_SCHEDULER_LIFECYCLE_RUNGS_H
#define ASSAY_SCHEDULER_LIFECYCLE_RUNGS_H

#include "base/arena.h"
#include "scheduler/rows/runner_row.h"
#include "scheduler/store/rung_store.h"
#include "scheduler/store/sweep_head_store.h"
#include "scheduler/store/trial_store.h"
#include "scheduler/store/tx.h"

/* A report of the current attempt of a running trial. */
struct rung_report {
    struct sweep_head *sweep; /* its counts are as afterwards: a fork is a queued trial */
    const struct trial_head *trial;
    struct rung_board *board;
    /* The points before n_before came with earlier reports that are not stored yet; the others
     * arrive with this one. Those that were stored before are apart. */
    const struct measurement *points, *stored;
    size_t n_before, n, n_stored;
    bool was_past; /* the trial had reported a step after its next rung */
    bool ends;     /* the trial completes with them: it goes on whatever the rule says */
};

/* What is to be written; all lists grow in the arena. Zeroed: nothing. */
struct rung_planned {
    struct rung_changes changes;
    size_t cap_results, cap_promotions, cap_forks;
};

/* Decide which rungs the report reaches, if any, and take that into the board. Pure but for that.
 *   at   where the trial stands, before and after
 *   seq  the last place of the sweep's order that is taken, before and after
 * Errors of rung_order_reach(). */
AS_MUST_CHECK as_status rungs_plan(struct arena *a, const struct rung_report *r,
                                   struct rung_place *at, int64_t *seq, struct rung_planned *p,
                                   struct as_err *err);

/* The same for one report whose points are stored, in the transaction that holds the rows of the
 * sweep and the trial; writes what follows, with events. x->at and s->finish_seq are as
 * afterwards. Of a trial that completes without points: the rungs that it has passed. */
AS_MUST_CHECK as_status rungs_reach(struct tx *t, struct arena *a, struct sweep_head *s,
                                    struct trial_head *x, const struct rung_near *near,
                                    const struct measurement *points, size_t n, bool ends,
                                    struct as_err *err);

/* Has no trial of the search completed? Then any that waits may have to go on at the end. */
bool rungs_in_vain(const struct sweep_head *s);

/* Nothing of the sweep runs or is queued, and no new trial will begin: promote the trials that
 * go on all the same. *ret_any: there are some. */
AS_MUST_CHECK as_status rungs_close(struct tx *t, struct arena *a, const struct sweep_head *s,
                                    bool *ret_any, struct as_err *err);

/* What is to be said about early stopping that has no effect (search/stopping/stop_warning.h);
 * NULL: nothing. Reads the whole board, so ask only when there may be something. */
AS_MUST_CHECK as_status rungs_warning(struct tx *t, struct arena *a, int64_t sweep_key,
                                      const char **ret, struct as_err *err);

/* What whoever runs the attempt is asked for; NULL: to go on. In `a`; NULL with AS_E_NOMEM too. */
AS_MUST_CHECK as_status rungs_directive(struct arena *a, const struct attempt_ref *ref,
                                        const struct rung_place *at,
                                        const struct directive_row **ret, struct as_err *err);

#endif
