/* Public problems to compare searches on: the space, the value of a trial, and the optimum. Every
 * problem is minimised.
 *
 * Classical functions lie on shifted domains, so that a search that begins in the centre has no
 * advantage; mixed and conditional ones have categories, ints and conditional parameters; noisy
 * ones add Gaussian noise to the observed value; real ones resemble the searches that people run
 * (real.c), or are such: surrogates of training, learners and pipelines (trained.c), and
 * tables of the built-in trainer's runs; tables are real training runs, one per cell of a grid
 * (tables/make.py); rough ones have many local optima, bent valleys, or regions that fail
 * behind curved borders (rough.c); flat ones say nothing of which parameter means something where,
 * or have noise, results or failures that depend on the place (flat.c, uneven.c). */
#ifndef ASSAY_BENCH_SEARCH_PROBLEMS_H
#define ASSAY_BENCH_SEARCH_PROBLEMS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/space/config.h"
#include "search/space/space.h"

#define PROBLEM_MAX_PARAMS 64

struct problem;

/* x: one number per parameter of the space, in its order: the value of a float or int, the index of
 * a choice (of a bool: 0 or 1), NaN of an inactive one. NaN: the trial fails. */
typedef double problem_fn(const struct problem *p, const double *x);

/* What a search is told at x instead of `value`, drawn by (seed, trial). */
typedef double problem_observe_fn(const struct problem *p, const double *x, double value,
                                  uint64_t seed, uint64_t trial);

/* Fill x as above with a place where the lowest value is. */
typedef void problem_best_fn(const struct problem *p, double *x);

/* One row of a family's list. */
struct problem_def {
    const char *name;
    const char *parameters; /* the sweep document's `parameters`, YAML; NULL: read from the file */
    problem_fn *fn;         /* NULL: a table */
    double optimum;         /* lowest value, without noise; for a table it is looked up */
    const char *best;       /* a configuration that has it, YAML; NULL: a table, or by fn_best */
    double noise;           /* deviation of the observed value */
    const void *arg;        /* of fn */
    problem_best_fn *fn_best;
    problem_observe_fn *fn_observe; /* NULL: the value and the noise */
    const char *flat_of; /* the problem that this one is with every parameter always there; all
                            else is that problem's. NULL: none */
};

struct table;     /* table.h */
struct surrogate; /* surrogate.h */
struct learners;  /* learners.h */
struct disguise;  /* disguise.h */

struct problem {
    const struct problem_def *def;
    const char *family; /* "classical", "mixed", "conditional", "noisy", "real", "table", "rough",
                           "flat" */
    struct space *space;
    struct problem *declared;    /* of def->flat_of; what a disguise hides */
    struct disguise *disguise;   /* NULL: none */
    json_t *parameters;          /* canonical document of the space, in its order */
    struct table *table;         /* NULL: a function */
    struct surrogate *surrogate; /* of a surrogate's problem */
    struct learners *learners;   /* of a choice among learners */
    double optimum;
    double scale; /* median regret of 512 Sobol points: the unit of "small" on this problem */
};

/* Every problem, in the order in which they are reported. */
size_t problem_count(void);
const struct problem_def *problem_at(size_t i);
/* The row of that name, or NULL. */
const struct problem_def *problem_find(const char *name);

/* Parse the space, read the table (from bench/search/tables of the source tree) or start the
 * surrogate, and measure the scale. AS_E_INVAL with the error in the space or table,
 * AS_E_UNAVAILABLE where the surrogate's files are not there, AS_E_IO, AS_E_NOMEM. Owned by the
 * caller. */
AS_MUST_CHECK as_status problem_open(const struct problem_def *def, struct problem **ret,
                                     struct as_err *err);

/* The same problem with its parameters renamed and reordered (disguise.h), by the hash of `number`.
 * AS_E_INVAL: it has conditions; else as problem_open. */
AS_MUST_CHECK as_status problem_open_disguised(const struct problem_def *def, unsigned number,
                                               struct problem **ret, struct as_err *err);
void problem_free(struct problem *p);
AS_DEFINE_FREEP(struct problem, problem_free)

/* The value without noise; NaN when the trial fails. `c` is a configuration of p->space. */
double problem_value(const struct problem *p, const struct config *c);

/* The observed value: the value plus the problem's noise, drawn by (seed, trial). */
double problem_observe(const struct problem *p, const struct config *c, uint64_t seed,
                       uint64_t trial);

#endif
