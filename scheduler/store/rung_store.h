/* Table rung_result, and what decisions change in the rows of trials and sweeps. */
#ifndef ASSAY_SCHEDULER_STORE_RUNG_STORE_H
#define ASSAY_SCHEDULER_STORE_RUNG_STORE_H

#include "scheduler/rows/fork_row.h"
#include "scheduler/rows/rung_row.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/rung_board.h"

/* A trial reached a rung, or passed one without a value there. */
struct rung_new {
    int64_t sweep_key, number, attempt;
    int64_t next;   /* the next rung that it may reach */
    bool is_result; /* else only `next` is new, and the rest is not set */
    /* What the trial is told, with the reason: what the rule decided, unless limits.max_steps ends
     * the trial. */
    trial_decision told;
    const char *told_why;
    struct rung_result result;
    size_t n_objectives;
    int64_t rank, of;
    const char *reason;
    const char *sweep; /* id */
    double value;      /* of the metric that is compared */
};

struct rung_promoted {
    int64_t sweep_key;
    struct rung_promotion promotion;
    const char *reason; /* of the trial and the event: that of the promotion, said as one */
    const char *sweep;  /* id */
    bool is_queued;     /* set: it is in the queue now; else its attempt is still ending */
    int64_t attempt;    /* set */
};

struct rung_changes {
    struct rung_new *results;
    size_t n_results;
    struct rung_promoted *promotions;
    size_t n_promotions;
    struct fork_new *forks; /* store_fork_add_many() */
    size_t n_forks;
};

/* Write results and decisions. The transaction holds the rows of the trials and their sweeps; seq
 * goes on from the sweep's finish_seq. Of a trial the last row counts for where it stands. Here and
 * below their events, views of the rows, are appended to `events`, which has room for n more. */
AS_MUST_CHECK as_status store_rung_add_many(struct tx *t, const struct rung_new *rows, size_t n,
                                            struct event_new *events, size_t *n_events,
                                            struct as_err *err);

/* Write promotions, after the results and ends of the transaction: a trial that is paused is
 * queued; one whose attempt is still ending is queued when that has ended. AS_E_CONFLICT: one does
 * not wait. */
AS_MUST_CHECK as_status store_rung_promote_many(struct tx *t, struct rung_promoted *rows, size_t n,
                                                struct event_new *events, size_t *n_events,
                                                struct as_err *err);

#endif
