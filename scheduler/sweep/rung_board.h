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
#include "search/stopping/rung_order.h"

struct rung_board {
    struct stop_spec spec;
    char *metrics[SEARCH_MAX_OBJECTIVES]; /* the objectives' names; owned */
    size_t n_metrics;
    struct sweep_outcome outcomes[SEARCH_MAX_OUTCOMES]; /* names owned */
    size_t n_outcomes;
    bool repeats; /* its trials are the built-in trainer's, whose last report may repeat another */
    struct stopping *index; /* owned */
    int64_t seq;            /* the place of the sweep's order up to which it knows everything */
    /* The steps of limits.max_steps that no trial may take yet, beyond those of running trials to
     * their next rungs; as the transaction read it, less what was decided since. INT64_MAX: there
     * is no limit. */
    int64_t steps_left;
};

/* An empty board. Owned by the caller. AS_E_NOMEM. */
AS_MUST_CHECK as_status rung_board_create(const struct sweep_doc *doc, struct rung_board **ret,
                                          struct as_err *err);
void rung_board_free(struct rung_board *b);
AS_DEFINE_FREEP(struct rung_board, rung_board_free)

/* Is this objective compared, so that a result needs its value? */
bool rung_board_compares(const struct rung_board *b, size_t metric);

#endif
