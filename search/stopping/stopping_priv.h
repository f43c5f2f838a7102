/* The index of rung results, for the files of this folder. */
#ifndef ASSAY_SEARCH_STOPPING_STOPPING_PRIV_H
#define ASSAY_SEARCH_STOPPING_STOPPING_PRIV_H

#include "search/stopping/agreement.h"
#include "search/stopping/chance.h"
#include "search/stopping/ranking_cap.h"
#include "search/stopping/standings.h"
#include "search/stopping/stopping.h"

#define STOP_MEDIAN_FIRST 5 /* results of a rung that median lets go on */

/* Where a trial stands; zeroed: no result. */
struct place {
    uint32_t reached;    /* a bit for each rung with a result */
    uint32_t infeasible; /* and for each where it was infeasible */
    uint32_t rung;       /* of `row` */
    bool waits;          /* at that rung */
    bool has_left;       /* it waited there, and ended without going on */
    bool is_compared;    /* at some rung */
    double before;       /* its cost at the rung before, NaN: none; for pasha */
    struct standing row; /* its latest result */
};

struct stopping {
    struct stop_spec spec;
    struct standings rungs[STOP_RUNGS_MAX];
    struct place *places; /* by number */
    size_t n_places, cap_places;
    struct agreement agreement; /* of min_steps: auto */
    struct ranking_cap cap;     /* of pasha */
    /* Of curve and of min_steps: auto: the costs of each trial at all rungs, n_places x n_rungs x
     * n_metrics of a rung's standings. NULL: not kept. */
    double *costs;
    /* Of curve: its pairs at each rung, and the lowest feasible cost at the end. */
    struct chance_pairs *pairs;
    double best;
    size_t n_decided; /* results whose trial did not go on */
};

/* Does the agreement of ranks say where comparing begins? Curve needs no rule for it: where a rung
 * says nothing, its predictions are wide. */
bool stopping_is_measured(const struct stopping *s);

#endif
