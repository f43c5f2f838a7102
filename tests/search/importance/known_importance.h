/* Spaces with functions whose Sobol indices are known, and trials of these functions. */
#ifndef ASSAY_TESTS_SEARCH_IMPORTANCE_KNOWN_IMPORTANCE_H
#define ASSAY_TESTS_SEARCH_IMPORTANCE_KNOWN_IMPORTANCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "search/problem/problem.h"

#define KNOWN_MAX_D 10

struct known_problem {
    const char *name;
    const char *space; /* YAML */
    const char *rules; /* parameter_constraints as a YAML list; NULL: none */
    double (*f)(const double *place, const bool *active); /* at places in [0,1], choices by index */
    double noise; /* standard deviation, of normal noise on it */
    size_t d;     /* parameters that can vary: they come first */
    double first[KNOWN_MAX_D], total[KNOWN_MAX_D];
};

extern const struct known_problem known_problems[];
extern const size_t n_known_problems;

struct known_trials {
    struct space *space;
    struct search_spec spec;
    struct history history;
    struct observation *trials;
};

/* n trials, all owned by the caller, known_trials_done(). Half of them, or with `clustered` a
 * fifth, are Sobol points; the others lie close around the best one so far. */
void known_trials_make(const struct known_problem *p, size_t n, bool clustered, uint64_t seed,
                       struct known_trials *ret);
void known_trials_done(struct known_trials *t);

#endif
