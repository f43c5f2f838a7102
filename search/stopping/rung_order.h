/* The stored order of a sweep's rung results, promotions and ends: what is written there, and what
 * follows from it.
 *
 * A result has its place in the order, and the promotions that it allows come right after it. So
 * whoever reads the order can make every decision again (decision_replay.h). */
#ifndef ASSAY_SEARCH_STOPPING_RUNG_ORDER_H
#define ASSAY_SEARCH_STOPPING_RUNG_ORDER_H

#include "base/arena.h"
#include "base/status.h"
#include "search/stopping/stopping.h"

typedef enum rung_event {
    RUNG_RESULT,   /* a trial reached a rung */
    RUNG_PROMOTED, /* a trial that waited goes on */
    RUNG_LEFT      /* a trial that waited ended */
} rung_event;

/* One event of the stored order. */
struct rung_entry {
    rung_event event;
    struct rung_result result; /* of the last two: its number and seq */
};

/* Take an event that is stored, in the order of seq. AS_E_INTERNAL: it does not fit what came
 * before. AS_E_NOMEM. */
AS_MUST_CHECK as_status rung_order_apply(struct stopping *s, const struct rung_entry *e,
                                         struct as_err *err);

/* A trial that waited and goes on, with its place in the order. */
struct rung_promotion {
    int64_t number, rung, seq;
    const char *reason;
};

/* A trial that reaches a rung. */
struct rung_arrival {
    struct rung_result result; /* its decision and seq are not read */
    bool ends;                 /* it completes, so it goes on whatever the rule says */
    int64_t successor;         /* the number that a fork would have; -1: no other trial may begin */
};

/* What follows from a result. */
struct rung_step {
    stop_verdict verdict;
    int64_t rank, of;
    const char *reason;
    int64_t
        parent; /* the successor takes the trial's place, as a fork of this trial; -1: none does */
    struct rung_promotion *promotions; /* in their order */
    size_t n_promotions;
};

/* Decide about a trial that reached a rung, with *seq as the place of the result, and take it. Then
 * promote who may go on: each promotion takes the next place, and *seq is the last one that was
 * taken. A trial that would be promoted at once goes on without waiting, and so does one that
 * completes, or that would be replaced where no other trial may begin. Texts and lists are in `a`.
 * Errors as rung_order_apply(). */
AS_MUST_CHECK as_status rung_order_reach(struct stopping *s, struct arena *a,
                                         const struct rung_arrival *now, int64_t *seq,
                                         struct rung_step *ret, struct as_err *err);

/* Was this the reason of a result with which its trial completed? Of one whose trial was not
 * replaced, because no other might begin? */
bool rung_order_is_end(const char *reason);
bool rung_order_is_full(const char *reason);

/* Nothing runs, and no new trial will begin: promote who goes on all the same. in_vain: no trial of
 * the search has completed; then one goes on, if any waits. *seq: the last place that is taken,
 * before and after. */
AS_MUST_CHECK as_status rung_order_close(struct stopping *s, struct arena *a, bool in_vain,
                                         int64_t *seq, struct rung_promotion **ret, size_t *ret_n,
                                         struct as_err *err);

#endif
