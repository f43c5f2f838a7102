/* The random streams of a sweep. All randomness of the search is Philox keyed by the sweep's seed,
 * with the counter's high word `index << 8 | purpose`: distinct purposes never share draws. */
#ifndef ASSAY_SEARCH_PROBLEM_RANDOM_STREAM_H
#define ASSAY_SEARCH_PROBLEM_RANDOM_STREAM_H

/* The low byte of the Philox counter's high word. Numbers are never reused: replays depend on them.
 */
enum search_purpose {
    SEARCH_DRAW_RANDOM = 1,    /* values of a random trial */
    SEARCH_DRAW_SCRAMBLE = 2,  /* Owen scrambling of Sobol points; trial number 0 */
    SEARCH_DRAW_ENSEMBLE = 3,  /* the halves of the held-out rows; trial number 0 */
    SEARCH_DRAW_GP_FIT = 4,    /* random starts of a fit */
    SEARCH_DRAW_GP_RAW = 5,    /* candidates: scrambling of their Sobol points */
    SEARCH_DRAW_GP_MOVE = 6,   /* candidates: moves of the best trials */
    SEARCH_DRAW_GP_START = 7,  /* which candidate an optimiser starts from */
    SEARCH_DRAW_GP_DESIGN = 8, /* initial points that are drawn again */
    SEARCH_DRAW_TPE = 9,       /* proposals of a method, one stream for each */
    SEARCH_DRAW_EVOLUTION = 10,
    SEARCH_DRAW_CMAES = 11,
    SEARCH_DRAW_CMAES_START = 12,      /* where a restart begins; the number of the restart */
    SEARCH_DRAW_COORDINATE_START = 13, /* the same of coordinate */
    SEARCH_DRAW_MCMC = 14,
    SEARCH_DRAW_MCMC_ACCEPT = 15, /* is a trial accepted? its number */
    SEARCH_DRAW_IMPORTANCE = 16,  /* posterior draws, point sets and resampling; trial number 0 */
    SEARCH_DRAW_LISTED = 24,      /* one of the allowed configurations of a finite space */
    SEARCH_DRAW_FEASIBLE = 25,    /* a walk over what narrow constraints allow */
    SEARCH_DRAW_PRIOR = 26,       /* does a draw of a random method come from the priors? */
    SEARCH_DRAW_BRACKET = 27,     /* of hyperband: the rung where a trial is first compared */
    SEARCH_DRAW_EXPLOIT = 28,     /* of pbt: the parent of a fork; the trial that it replaces */
    SEARCH_DRAW_EXPLORE = 29,     /* of pbt: the parameters of a fork; its number */
    SEARCH_DRAW_GP_NEARBY = 30,   /* moves of the few trials that have succeeded */
    SEARCH_DRAW_GP_FREE = 31,     /* which numbers a suggestion may change */
    SEARCH_DRAW_FOREST = 32       /* trees of a forest, and the points that are looked at */
};

#endif
