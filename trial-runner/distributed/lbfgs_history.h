/* The memory of L-BFGS, divided among the ranks: the last steps s and the changes y of the gradient
 * (Nocedal 1980; DistBelief's Sandblaster: Dean et al. 2012).
 *
 * A vector has LBFGS_PIECES pieces; a rank holds a run of pieces of all vectors. Nobody ever has a
 * whole pair: what is exchanged are inner products, piece by piece, and the weights that follow
 * from them (the vector-free form of the two loops: Chen, Wang and Zhou 2014). Inner products are
 * added up in the order of the pieces, in double precision: the bits do not depend on the number of
 * ranks. */
#ifndef ASSAY_TRIAL_RUNNER_DISTRIBUTED_LBFGS_HISTORY_H
#define ASSAY_TRIAL_RUNNER_DISTRIBUTED_LBFGS_HISTORY_H

#include "trial-runner/distributed/strategy.h"

#define LBFGS_PIECES 32

struct lbfgs_history {
    size_t n, stride; /* numbers of a vector, and of a piece; the last pieces may have fewer */
    uint32_t most;    /* pairs at most */
    float *s, *y;     /* [most, n]; memory is used for the pieces that were held once */
    float head[2];    /* pairs that are there; the place of the next one */
    bool held[LBFGS_PIECES]; /* pieces that are right for position `step` */
    int64_t step;
};

/* AS_E_NOMEM, AS_E_TOO_LARGE. ret: lbfgs_history_done(). */
AS_MUST_CHECK as_status lbfgs_history_init(struct lbfgs_history *ret, size_t n, uint32_t most,
                                           struct as_err *err);
void lbfgs_history_done(struct lbfgs_history *h); /* a zeroed one is fine */

/* The numbers of piece p: [*ret_first, *ret_end). */
void lbfgs_piece(const struct lbfgs_history *h, size_t p, size_t *ret_first, size_t *ret_end);

/* A direction: what it is a sum of, and its slope. */
struct lbfgs_direction {
    size_t pairs;
    double *of_s, *of_y; /* [pairs] each, oldest first; memory of the caller, room for `most` */
    double of_g;
    double slope;  /* of the objective along it; below 0 */
    double g_norm; /* of the gradient */
};

/* All ranks: ret = the direction at gradient g [n], which is whole on all of them. Pairs without
 * positive curvature are forgotten before. AS_E_UNAVAILABLE, AS_E_NOMEM. */
AS_MUST_CHECK as_status lbfgs_direct(struct lbfgs_history *h, struct coll *c, int64_t step,
                                     const float *g, struct lbfgs_direction *ret,
                                     struct as_err *err);

/* All ranks: to [LBFGS_PIECES x stride] = x + length x direction; the first n numbers count. */
AS_MUST_CHECK as_status lbfgs_move(const struct lbfgs_history *h, struct coll *c, int64_t step,
                                   const struct lbfgs_direction *d, double length, const float *x,
                                   const float *g, float *to, struct as_err *err);

/* The step is done: this rank's pieces of a new pair, the oldest one goes when there are `most`.
 *   next   the position behind it */
void lbfgs_remember(struct lbfgs_history *h, const struct coll *c, int64_t next, const float *x,
                    const float *moved, const float *g, const float *g_moved);
/* The same for a rank that missed the end of the step, but has learned from another where it ended:
 * its pieces of the newest pair. moved, g_moved: of the others, at `next`. */
void lbfgs_complete(struct lbfgs_history *h, int64_t next, const float *x, const float *moved,
                    const float *g, const float *g_moved);
/* No step was possible: all pairs are forgotten. */
void lbfgs_forget(struct lbfgs_history *h, int64_t next);

/* What the strategy passes on. meet comes after meeting_catch_up(): each rank gets the pieces of
 * its run. A pair of which a piece is lost is of no use, so then all begin anew without any; a line
 * on rank 0's stderr says so. */
#define LBFGS_PARTS 3
size_t lbfgs_parts(struct lbfgs_history *h, struct strategy_part *ret);
void lbfgs_hold_all(struct lbfgs_history *h, int64_t step);
AS_MUST_CHECK as_status lbfgs_meet(struct lbfgs_history *h, struct coll *c, int64_t step,
                                   struct as_err *err);
AS_MUST_CHECK as_status lbfgs_gather(struct lbfgs_history *h, struct coll *c, struct as_err *err);

#endif
