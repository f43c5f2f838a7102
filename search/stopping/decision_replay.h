/* The decisions of early stopping of a recorded sweep, made again and compared with what is stored.
 *
 * The stored order is read event by event. At a result the rules decide as they did then, from the
 * events before it; verdict, rank and reason must be the stored ones, and the promotions that
 * follow must have the next places. A promotion that follows from no result was made because
 * nothing ran any more; the rules must name that trial, and no trial may have been on its way to a
 * rung. Where a trial was replaced (pbt), the fork must have the number and the parent that the
 * reason names, and the parameters that follow from its parent's.
 *
 * A difference does not end the replay: later decisions are compared on the stored ones. */
#ifndef ASSAY_SEARCH_STOPPING_DECISION_REPLAY_H
#define ASSAY_SEARCH_STOPPING_DECISION_REPLAY_H

#include "base/mem.h"
#include "search/space/config.h"
#include "search/stopping/rung_order.h"

/* After so many differences the replay ends: each of them costs O(n log n). */
#define DECISION_REPLAY_DIFFERENCES 100

typedef enum stored_kind {
    STORED_RESULT,
    STORED_PROMOTION,
    STORED_END, /* of a trial that did not complete, or a retry: it waits no longer */
    STORED_DONE /* a trial of the search completed */
} stored_kind;

/* A trial that took the place of another one. */
struct stored_fork {
    uint64_t number, parent;
    int64_t step;                                /* where it went on from its parent */
    const struct config *config, *parent_config; /* borrowed */
};

/* An event of the stored order. */
struct stored_event {
    stored_kind kind;
    struct rung_result result; /* of all but a result: number and seq; of a promotion also rung */
    uint64_t rank, of;         /* of a result */
    const char *reason;        /* of a result or a promotion (NULL: not known); borrowed */
    const struct stored_fork
        *fork; /* of a result: it took the trial's place; NULL: none. Borrowed */
};

struct decision_replay;

/* Sorts `events` by seq; they, the specification and the space (NULL: there are no forks) are
 * borrowed until decision_replay_free().
 * Those after the first place that nobody has are left out, as the sweep went on while it was
 * listed. AS_E_INVAL: two have one place, or one has no rung of the specification. AS_E_NOMEM. */
AS_MUST_CHECK as_status decision_replay_create(const struct stop_spec *spec,
                                               const struct space *space,
                                               struct stored_event *events, size_t n,
                                               struct decision_replay **ret, struct as_err *err);
void decision_replay_free(struct decision_replay *r);
AS_DEFINE_FREEP(struct decision_replay, decision_replay_free)

/* How many results and promotions there are to compare. */
size_t decision_replay_total(const struct decision_replay *r);

struct decision_step {
    const struct stored_event *stored; /* a result or a promotion; a view */
    bool is_same;
    const char
        *why; /* what differs, a part of a sentence: a view until the next step; NULL: nothing
                        does */
};

/* The next decision in the stored order. AS_E_EXHAUSTED (err untouched) after the last, or after
 * DECISION_REPLAY_DIFFERENCES. AS_E_NOMEM. */
AS_MUST_CHECK as_status decision_replay_next(struct decision_replay *r, struct decision_step *ret,
                                             struct as_err *err);

#endif
