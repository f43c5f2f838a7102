/* The families' lists, each ended by a row without a name. */
#ifndef ASSAY_BENCH_SEARCH_PROBLEMS_PRIV_H
#define ASSAY_BENCH_SEARCH_PROBLEMS_PRIV_H

#include "base/rng.h"
#include "bench/search/problems.h"

extern const struct problem_def classical_problems[];
extern const struct problem_def mixed_problems[];
extern const struct problem_def conditional_problems[];
extern const struct problem_def noisy_problems[];
extern const struct problem_def real_problems[];
extern const struct problem_def surrogate_problems[];
extern const struct problem_def learners_problems[];
extern const struct problem_def trainer_problems[]; /* tables of the built-in trainer's runs */
extern const struct problem_def table_problems[];
extern const struct problem_def rough_problems[];
extern const struct problem_def flat_problems[];
extern const struct problem_def unsaid_problems[]; /* more flat ones */
extern const struct problem_def uneven_problems[]; /* noise that differs from place to place */
extern const struct problem_def few_problems[];    /* flat, of more than 20 parameters */
extern const struct problem_def strange_problems[];

/* A hash of (instance, a, b) in [0,1), for families of instances. */
double problem_draw(unsigned instance, unsigned a, unsigned b);

/* The number of an instance whose `arg` points at it, and its hash. */
static inline unsigned instance_of(const struct problem *p)
{
    return *(const unsigned *)p->def->arg;
}

static inline double instance_draw(const struct problem *p, unsigned a, unsigned b)
{
    return problem_draw(instance_of(p), a, b);
}

/* Streams of what a search sees of a trial; problems.c has 200, sweep.c 201. */
enum observe_purpose { OBSERVE_FLAT = 202, OBSERVE_UNEVEN = 203 };

static inline double observe_normal(uint64_t seed, uint64_t trial, enum observe_purpose purpose)
{
    struct rng r;
    rng_init(&r, seed, trial << 8 | purpose);
    return rng_normal(&r);
}

/* The row of an instance of a family whose function is `kind` and whose best configuration
 * best_KIND says; behind the space, further fields. */
#define INSTANCE_ROW(kind, number, space, ...)                                                     \
    {                                                                                              \
        .name = #kind "-" #number, .parameters = space, .fn = kind, .fn_best = best_##kind,        \
        .arg = &(const unsigned){number}, ##__VA_ARGS__                                            \
    }
/* The rows of instances 1 to 4. */
#define INSTANCE_ROWS(kind, ...)                                                                   \
    INSTANCE_ROW(kind, 1, __VA_ARGS__), INSTANCE_ROW(kind, 2, __VA_ARGS__),                        \
        INSTANCE_ROW(kind, 3, __VA_ARGS__), INSTANCE_ROW(kind, 4, __VA_ARGS__)

static inline double square(double v)
{
    return v * v;
}

/* Functions that more than one family uses. */
problem_fn fn_branin, fn_camel, fn_hartmann6, fn_levy, fn_ackley;

problem_fn fn_surrogate; /* of surrogate_problems */
problem_fn fn_learners;  /* of learners_problems */

#endif
