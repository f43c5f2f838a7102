/* The vocabulary of the search: the specification of a sweep, the known facts about its trials, and
 * a suggestion. Methods (method.h) and their callers share it.
 *
 * Two numbers belong to a suggestion. `number` is the trial's place in its sweep, from 0, without
 * holes. `index` counts the suggestions that the method itself has made before it: trials that
 * users enqueued or added have a number but no index. The index chooses a grid's cell and a Sobol
 * point, so that added trials neither skip nor repeat a cell. */
#ifndef ASSAY_SEARCH_PROBLEM_PROBLEM_H
#define ASSAY_SEARCH_PROBLEM_PROBLEM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/space/config.h"
#include "search/space/space.h"

#define SEARCH_MAX_OBJECTIVES 4
#define SEARCH_MAX_OUTCOMES 8 /* outcome constraints */

struct search_method;   /* method.h */
struct search_prepared; /* method.h */
struct warm_start;      /* search/prior/warm_start.h */

/* A trial is feasible when every outcome lies within its bounds, ends included; -INFINITY and
 * INFINITY stand for no bound. */
struct outcome_bound {
    double min, max;
};

/* What a sweep searches. It never changes during the sweep. */
struct search_spec {
    const struct space *space;          /* borrowed */
    const struct search_method *method; /* static */
    uint64_t seed;
    size_t n_objectives; /* 1..SEARCH_MAX_OBJECTIVES */
    bool maximize[SEARCH_MAX_OBJECTIVES];
    bool is_exact; /* the document says that values have no noise (one objective) */
    size_t n_outcomes;
    struct outcome_bound outcomes[SEARCH_MAX_OUTCOMES];
    uint64_t initial_trials; /* before the method uses a model; 0: chosen from the space */
    double max_step; /* at which trials are judged in the end; 0: no trial is stopped early */
    const struct warm_start *earlier;       /* borrowed; NULL: no earlier sweep is used */
    const struct search_prepared *prepared; /* borrowed: search_prepare() for this space and method;
                                               NULL: made when needed */
};

typedef enum observation_state {
    OBSERVED_PENDING,   /* queued or running: no result yet */
    OBSERVED_COMPLETED, /* values and outcomes count where they are finite */
    OBSERVED_FAILED,    /* ended without a result: has no values, but the search uses it */
    OBSERVED_PARTIAL /* paused or pruned: it has the values of its rungs alone. It did not fail */
} observation_state;

/* The values of a trial at a rung. seq, promoted_seq and is_stopped are for trial_rungs.h. */
struct trial_rung {
    int64_t seq, promoted_seq; /* 0: it was not promoted */
    double step;
    bool is_stopped;                      /* it was decided to pause or to prune the trial */
    double values[SEARCH_MAX_OBJECTIVES]; /* as below; one that is not finite is a bad one */
};

/* A trial that ended or is under way. */
struct observation {
    uint64_t number;
    const struct config *config; /* borrowed */
    observation_state state;
    bool is_suggested; /* by the method; false: enqueued or added by users */
    /* The rungs that it has reached, as far as they are known, by ascending step; of any state, and
     * none without spec.max_step. Borrowed. */
    const struct trial_rung *rungs;
    size_t n_rungs;
    double values
        [SEARCH_MAX_OBJECTIVES]; /* of a completed trial, in the metrics' own units and signs */
    double outcomes[SEARCH_MAX_OUTCOMES];
};

/* Everything known when the suggestion is made, ascending by number; numbers may be missing,
 * because cancelled trials are not included. All borrowed. */
struct history {
    const struct observation *trials;
    size_t n;
};

struct suggestion {
    struct config *config; /* owned */
    json_t *reason;        /* owned: {"method": …} and, by method, what docs/search.md lists */
    json_t *state;         /* owned: pass it to the next suggestion of the sweep; NULL: no state */
};
void suggestion_done(struct suggestion *s); /* accepts a zeroed one */

#endif
