/* The rung results of one sweep while decisions are made about its trials: what is compared, and an
 * index of the results (search/stopping). Pure.
 *
 * A board follows the stored order of its sweep. Equal boards decide equally, on any server. One
 * thread at a time: who uses it holds the sweep's row. */
#ifndef ASSAY_SCHEDULER_SWEEP_RUNG_BOARD_H
#define ASSAY_SCHEDULER_SWEEP_RUNG_BOARD_H

#include "base/arena.h"
#include "base/mem.h"
#include "base/status.h"
#include "scheduler/sweep/sweep_doc.h"
#include "search/stopping/stopping.h"

struct rung_board {
    struct stop_spec spec;
    char *metrics[SEARCH_MAX_OBJECTIVES]; /* the objectives' names; owned */
    size_t n_metrics;
    struct sweep_outcome outcomes[SEARCH_MAX_OUTCOMES]; /* names owned */
    size_t n_outcomes;
    struct stopping *index; /* owned */
    int64_t seq;            /* the place of the sweep's order up to which it knows everything */
};

/* An empty board. Owned by the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status rung_board_create(const struct sweep_doc *doc, struct rung_board **ret,
                                          struct as_err *err);
void rung_board_free(struct rung_board *b);
AS_DEFINE_FREEP(struct rung_board, rung_board_free)

/* Is this objective compared, so that a result needs its value? */
bool rung_board_compares(const struct rung_board *b, size_t metric);

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
AS_MUST_CHECK as_status rung_board_apply(struct rung_board *b, const struct rung_entry *e,
                                         struct as_err *err);

/* A trial that waited and goes on, with its place in the order. */
struct rung_promotion {
    int64_t number, rung, seq;
    const char *reason;
};

/* What follows from a result. */
struct rung_step {
    stop_verdict verdict;
    int64_t rank, of;
    const char *reason;
    struct rung_promotion *promotions; /* in their order */
    size_t n_promotions;
};

/* Decide about a trial that reached a rung, with *seq as the place of the result, and take it. Then
 * promote who may go on: each promotion takes the next place, and *seq is the last one that was
 * taken. A trial that would be promoted at once goes on without waiting, and so does one that
 * completes (`ends`). Texts and lists are in `a`. Errors as rung_board_apply(). */
AS_MUST_CHECK as_status rung_board_reach(struct rung_board *b, struct arena *a,
                                         const struct rung_result *now, bool ends, int64_t *seq,
                                         struct rung_step *ret, struct as_err *err);

/* Nothing runs, and no new trial will begin: promote who goes on all the same. *seq: the last place
 * that is taken, before and after. */
AS_MUST_CHECK as_status rung_board_close(struct rung_board *b, struct arena *a, int64_t *seq,
                                         struct rung_promotion **ret, size_t *ret_n,
                                         struct as_err *err);

#endif
