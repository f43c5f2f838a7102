/* The next configuration to try, and why: the one door of the search.
 *
 * Pure in its inputs: (spec, history, state, number, index) fix the answer bit for bit on one
 * machine, with and without a cache, on any server. All randomness is Philox (sampler.h).
 *
 * Two numbers belong to a suggestion. `number` is the trial's place in its sweep, from 0, without
 * holes. `index` counts the suggestions that the method itself has made before it: trials that
 * people enqueued or added have a number and no index. A grid's cell and a Sobol point are chosen
 * by the index, so that added trials neither skip nor repeat a cell. */
#ifndef ASSAY_SEARCH_SUGGEST_H
#define ASSAY_SEARCH_SUGGEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/config.h"
#include "search/sampling/grid.h"
#include "search/sampling/sampler.h"
#include "search/space/space.h"

#define SEARCH_MAX_OBJECTIVES 4
#define SEARCH_MAX_OUTCOMES 8 /* outcome constraints */

/* A trial is feasible when every outcome lies within its bounds, ends included; -INFINITY and
 * INFINITY stand for no bound. */
struct outcome_bound {
    double min, max;
};

/* What a sweep searches: fixed for its life. */
struct search_spec {
    const struct space *space; /* borrowed */
    search_method method;
    uint64_t seed;
    size_t n_objectives; /* 1..SEARCH_MAX_OBJECTIVES */
    bool maximize[SEARCH_MAX_OBJECTIVES];
    size_t n_outcomes;
    struct outcome_bound outcomes[SEARCH_MAX_OUTCOMES];
    uint64_t initial_trials; /* of the initial design of gp; 0: chosen from the space */
    const struct grid *grid; /* borrowed: the space's, for method grid; NULL: built when needed */
};

typedef enum observation_state {
    OBSERVED_PENDING,   /* queued or running: no result yet */
    OBSERVED_COMPLETED, /* values and outcomes count where they are finite */
    OBSERVED_FAILED     /* ended without a result: informs the search, has no values */
} observation_state;

/* A trial that ended or is under way. */
struct observation {
    uint64_t number;
    const struct config *config; /* borrowed */
    observation_state state;
    bool is_suggested;                    /* by the method; false: enqueued or added by people */
    double values[SEARCH_MAX_OBJECTIVES]; /* in the metrics' own units and signs */
    double outcomes[SEARCH_MAX_OUTCOMES];
};

/* Everything known when the suggestion is made, ascending by number; numbers may be missing
 * (cancelled trials are left out). All borrowed. */
struct history {
    const struct observation *trials;
    size_t n;
};

/* What an earlier suggestion computed and a later one may use again: factors of matrices, the like.
 * An accelerator alone: answers are the same bits without it. One thread at a time; belongs to one
 * sweep. NULL when memory is out. */
struct search_cache;
struct search_cache *search_cache_create(void);
void search_cache_free(struct search_cache *c);
AS_DEFINE_FREEP(struct search_cache, search_cache_free)
size_t search_cache_bytes(const struct search_cache *c); /* about what it holds */

struct suggestion {
    struct config *config; /* owned */
    json_t *reason;        /* owned: {"method": …} and, by method, what docs/search.md lists */
    json_t *state; /* owned: pass it to the next suggestion of the sweep; NULL: nothing to keep */
};
void suggestion_done(struct suggestion *s); /* accepts a zeroed one */

/* Does the method look at the history? Methods that do not are cheap: O(parameters). */
bool search_method_learns(search_method m);

/* Suggest trial `number`.
 *   spec, history  borrowed; history NULL is the same as empty
 *   state          of the suggestion before this one in the sweep, NULL for the first; anything
 *                  that is not a state of this spec is the same as NULL
 *   cache          NULL: none
 *   ret            owned by the caller, suggestion_done(); untouched on failure
 * AS_E_EXHAUSTED: nothing is left to suggest: every cell of a grid, or every configuration of a
 * finite space (that could be found, where constraints leave few of many), was tried. A result,
 * not an error.
 * AS_E_INVAL: the grid is not possible (see grid_create).
 * AS_E_UNSUPPORTED: no configuration that the parameter constraints allow was found.
 * AS_E_TOO_LARGE, AS_E_NOMEM.
 * Whatever the history holds (failures, NaN, duplicates, constants), there is a suggestion: where
 * the model cannot be fitted, a Sobol point, and the reason says so. Safe from any thread. */
AS_MUST_CHECK as_status suggest(const struct search_spec *spec, const struct history *history,
                                const json_t *state, uint64_t number, uint64_t index,
                                struct search_cache *cache, struct suggestion *ret,
                                struct as_err *err);

#endif
