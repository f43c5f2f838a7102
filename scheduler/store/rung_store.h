/* Table rung_result, and what decisions change in the rows of trials and sweeps. Strings that come
 * out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_RUNG_STORE_H
#define ASSAY_SCHEDULER_STORE_RUNG_STORE_H

#include "base/arena.h"
#include "scheduler/rows/fork_row.h"
#include "scheduler/rows/rung_row.h"
#include "scheduler/store/event_store.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/rung_board.h"

/* ---- read, to decide ---- */

/* The board of a sweep whose row the transaction holds. */
struct rung_opening {
    int64_t sweep_key;
    int64_t finish_seq;       /* of the sweep */
    bool limits_steps;        /* the sweep has limits.max_steps */
    struct rung_board *board; /* set; the transaction's, until it ends */
};

/* Bring the boards of these sweeps (each once) up to date; at most three statements for any n. A
 * sweep that was opened before in this transaction keeps its board. When the transaction commits,
 * the boards are kept, so whoever decides with one writes everything that follows. AS_E_INTERNAL:
 * what is stored cannot be read. */
AS_MUST_CHECK as_status store_rung_open(struct tx *t, struct arena *a, struct rung_opening *list,
                                        size_t n, struct as_err *err);

/* The points of a report at steps where its trial may reach a rung, and values that are compared
 * there and were recorded before. */
struct rung_points {
    const struct rung_board *board;
    int64_t sweep_key, number;
    int64_t rung;                     /* the next one of the trial */
    const struct measurement *points; /* that arrive */
    size_t n;
    bool every;                       /* look at every rung from there on, not only below them */
    const struct measurement *stored; /* set: those that the points lack; views */
    size_t n_stored;
};

/* Find what the points of n reports lack; one statement, none if they lack nothing. */
AS_MUST_CHECK as_status store_rung_stored(struct tx *t, struct arena *a, struct rung_points *list,
                                          size_t n, struct as_err *err);

/* ---- write ---- */

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

/* ---- read, for people ---- */

/* The board of a sweep as it is now, apart from those that decide. Owned by the caller. */
AS_MUST_CHECK as_status store_rung_read(struct tx *t, struct arena *a, int64_t sweep_key,
                                        struct rung_board **ret, struct as_err *err);

#define RUNG_STEPS_SHOWN 9 /* one more than a warning names */

/* Trials that ended and did not fail. */
struct rung_ended {
    int64_t n, n_with_result; /* the latter have a value at some rung */
    int64_t n_completed;      /* of n */
    int64_t furthest;         /* the latest step that one of these reported; -1: none did */
};
AS_MUST_CHECK as_status store_rung_ended(struct tx *t, int64_t sweep_key, struct rung_ended *ret,
                                         struct as_err *err);

/* The steps at which the first ended trial without a value below the last rung reported the metric,
 * ascending; at most RUNG_STEPS_SHOWN. In `a`. */
AS_MUST_CHECK as_status store_rung_reported(struct tx *t, struct arena *a, int64_t sweep_key,
                                            const char *metric, const int64_t **ret, size_t *ret_n,
                                            struct as_err *err);

/* Without its warning. */
AS_MUST_CHECK as_status store_rung_report(struct tx *t, struct arena *a, int64_t sweep_key,
                                          struct stopping_report *ret, struct as_err *err);

#endif
