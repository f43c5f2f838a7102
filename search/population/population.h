/* What the methods share that propose points (tpe, forest, evolution, cmaes, coordinate, mcmc): the
 * trials, best first, which is all that most of them learn from, and the way from a proposed point
 * to a suggestion, its reason and its words.
 *
 * The first trials are the initial design (design.h). A proposal
 * that the space does not allow, or that was tried before, is made again; after POPULATION_TRIES of
 * them an untried point of the design is taken, and the reason says so. All draws of a
 * suggestion come from one stream of its index. */
#ifndef ASSAY_SEARCH_POPULATION_POPULATION_H
#define ASSAY_SEARCH_POPULATION_POPULATION_H

#include "base/rng.h"
#include "search/problem/method.h"
#include "search/problem/random_stream.h"
#include "search/regression/training_set.h"
#include "search/sampling/sampler.h"

#define POPULATION_TRIES 32

/* The place of a suggestion in its sweep, as suggest() has it (search/suggest.h). */
struct population_turn {
    uint64_t number, index;
    const json_t *state; /* borrowed; what keep() returned for the suggestion before; NULL: none */
};

struct population {
    const struct population_turn
        *turn; /* borrowed; of the suggestion; NULL: only the order is read */
    struct training_set *set;
    size_t *order; /* [n] rows of the set: the trials that ended, best first */
    size_t n;
};

/* Best first: feasible trials, then completed ones that break bounds, then partial ones, then
 * failed ones. A pending trial is not in the order, whatever rung it has reached.
 *   feasible    one objective: by it. Several: by fronts, and in a front by crowding distance (K.
 *               Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II", 2002)
 *   infeasible  by the sum of what they are out of bounds, each outcome by its own range
 *   partial     by the step of the highest rung, the higher the better, then by the first objective
 *               there: trials that were stopped before others are worse than those
 *   failed      all equal
 * Equal ones by number. spec and history are borrowed and must outlive it; places as in
 * training_set_create(). AS_E_NOMEM. ret: population_done(); untouched on failure. */
AS_MUST_CHECK as_status population_read(const struct search_spec *spec,
                                        const struct history *history,
                                        struct training_places *places, struct population *ret,
                                        struct as_err *err);
void population_done(struct population *p); /* accepts a zeroed one */

/* What a method adds (`own` of its struct search_method). */
struct population_method {
    enum search_purpose purpose;
    /* Learn from the trials. *ret_self is the method's, for the proposals of one suggestion; ended
     * by end(). Both may be NULL. AS_E_NOMEM; untouched on failure. */
    as_status (*begin)(const struct population *p, void **ret_self, struct as_err *err);
    /* Write a point, which need not be snapped, and what the reason says of it.
     *   r          the suggestion's stream, where the proposal before left it
     *   ret_point  [enc->n]
     *   reason     an object to add to
     * AS_E_NOMEM. */
    as_status (*propose)(void *self, const struct population *p, struct rng *r, double *ret_point,
                         json_t *reason, struct as_err *err);
    void (*end)(void *self);
    /* The state that the next suggestion gets, after the last proposal was taken; owned by the
     * caller. NULL: the method keeps none. AS_E_NOMEM. */
    as_status (*keep)(void *self, json_t **ret, struct as_err *err);
    /* Append why a point was proposed, in words, made of what propose() wrote into the reason. */
    void (*explain)(const json_t *reason, struct str *b);
};

/* A method's table of operations; `added` is its struct population_method. */
#define POPULATION_METHOD(method_name, added)                                                      \
    {                                                                                              \
        .name = (method_name), .is_model_based = true, .check = sampler_method_check,              \
        .sample = sampler_method_sample, .own = &(added), .suggest = population_suggest,           \
        .explain = population_explain, .cache_create = population_cache_create,                    \
        .cache_free = population_cache_free, .cache_bytes = population_cache_bytes                 \
    }

/* The operations of struct search_method (search/problem/method.h). What the cache keeps are the
 * places of trials. */
AS_MUST_CHECK as_status population_suggest(const struct search_spec *spec,
                                           const struct history *history, const json_t *state,
                                           uint64_t number, uint64_t index,
                                           struct search_method_cache *cache,
                                           struct suggestion *ret, struct as_err *err);
void population_explain(const struct search_method *m, const json_t *reason, const json_t *metrics,
                        struct str *b);
struct search_method_cache *population_cache_create(void);
void population_cache_free(struct search_method_cache *c);
size_t population_cache_bytes(const struct search_method_cache *c);

#endif
