/* What decisions at rungs read: the boards of sweeps, and values that were recorded before. Strings
 * that come out are in the arena passed. */
#ifndef ASSAY_SCHEDULER_STORE_RUNG_BOARD_STORE_H
#define ASSAY_SCHEDULER_STORE_RUNG_BOARD_STORE_H

#include "base/arena.h"
#include "scheduler/rows/series_row.h"
#include "scheduler/store/tx.h"
#include "scheduler/sweep/rung_board.h"

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

/* The board of a sweep as it is now, apart from those that decide. Owned by the caller. */
AS_MUST_CHECK as_status store_rung_read(struct tx *t, struct arena *a, int64_t sweep_key,
                                        struct rung_board **ret, struct as_err *err);

#endif
