/* A simulated sweep in memory: suggestions, results and failures, in any order. */
#ifndef ASSAY_TESTS_SEARCH_SWEEP_H
#define ASSAY_TESTS_SEARCH_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "search/regression/training_set.h"
#include "search/suggest.h"

struct sweep {
    struct search_spec spec;
    struct observation *trials; /* configurations are owned */
    size_t n, cap;
    uint64_t index;
    json_t *state;
    struct search_cache *cache; /* NULL: none is used */
    json_t *reason;             /* of the last suggestion */
};

void sweep_init(struct sweep *w, const struct space *s, uint64_t seed, bool cached);
void sweep_done(struct sweep *w);

/* Suggest the next trial; it is pending afterwards. AS_E_EXHAUSTED as in suggest(). */
as_status sweep_ask(struct sweep *w, struct as_err *err);
void sweep_tell(struct sweep *w, size_t trial, double value); /* one objective */
/* Add a result as a user would. c is copied. */
void sweep_add(struct sweep *w, const struct config *c, double value);

/* What a model of the sweep would learn from; owned by the caller. */
struct training_set *sweep_training_set(const struct sweep *w);

/* A smooth function of everything that is active; it is lowest where each parameter is at 0.35 of
 * its range. */
double sweep_bowl(const struct sweep *w, size_t trial);
/* The test fails unless the configuration is allowed and none before it is equal, but for a newest
 * trial that repeats one on purpose. */
void sweep_check(const struct sweep *w, size_t trial);

/* The value of parameter i as a number: a choice is its index; NaN while inactive. */
double sweep_number(const struct sweep *w, size_t trial, size_t i);

#endif
