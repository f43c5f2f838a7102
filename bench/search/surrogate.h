/* Problems that are surrogates of real tuning runs (YAHPO Gym): gradient boosting with three
 * boosters, and multilayer perceptrons. surrogate.py, a line server outside of this repository,
 * evaluates them; one child process for each problem. Where it or its data are not there, the
 * problems are left out by name. */
#ifndef ASSAY_BENCH_SEARCH_SURROGATE_H
#define ASSAY_BENCH_SEARCH_SURROGATE_H

#include "base/mem.h"
#include "base/status.h"
#include "search/space/space.h"

struct surrogate_def {
    const char *scenario, *instance, *target;
    double one;    /* the target's value without an error */
    double median; /* the median error of random configurations */
};

struct surrogate;

/* The script; NULL: ../shared/bench/surrogate.py beside the source tree. Call it before a problem
 * is opened; borrowed. */
void surrogate_set_path(const char *path);

/* Start the server and ask it once. The row and the space are borrowed and must outlive the
 * surrogate. AS_E_UNAVAILABLE: no script, no data, or no interpreter with numpy. AS_E_NOMEM. */
AS_MUST_CHECK as_status surrogate_open(const struct surrogate_def *def, const struct space *s,
                                       struct surrogate **ret, struct as_err *err);
void surrogate_free(struct surrogate *s);
AS_DEFINE_FREEP(struct surrogate, surrogate_free)

/* The error at x (problem_fn of problems.h). A server that does not answer ends the process: the
 * trial has no value. */
double surrogate_value(struct surrogate *s, const double *x);

/* The median of random configurations: measuring it would take hundreds of requests. */
double surrogate_median(const struct surrogate *s);

#endif
