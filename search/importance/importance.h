/* Which parameters matter: Sobol's indices of a model of the objective, with intervals.
 *
 * Each parameter is drawn uniformly on its own scale, the levels of a discrete one equally often
 * (on a log scale: by their share of the scale), all independently, over the whole space. So the
 * indices describe how the objective varies over the space of the sweep, not how it varied over the
 * trials, most of which are near the best. Then
 *   first  Var E[y | x_j] / Var y       what parameter j explains alone
 *   total  E Var[y | all but x_j] / Var y   what is lost without it: alone and in interaction
 * (I. Sobol 1993; estimators of M. Jansen and A. Saltelli, see sensitivity.h). The objective is
 * known only at its trials. A Gaussian process is fitted to them (objective_model.h). The result
 * holds the indices of its mean, and the 5 % and 95 % quantiles of the indices of 48 functions
 * drawn from its posterior (stretched, if needed, to hold the estimate). The quantiles cover the
 * uncertainty that the trials leave, given the model, and the error of the estimators (each draw
 * resamples the scrambled point sets). They do not cover the choice of the model and of its
 * hyperparameters; r2 measures that. On functions with known indices, from 150 spread trials, 93 to
 * 100 % of the indices were in the interval or within 0.05 of it; with four fifths of the trials
 * around one point, 55 to 100 % (test_known_importance.c). In the interval itself were 42 to 98 %
 * and 33 to 98 %: a true 0 lies below any estimate, and a process of one smoothness is too certain
 * far from its data. So the interval is a guide, not a promise.
 *
 * Special cases.
 * - A conditional parameter's indices are those within the part of the space where it is active,
 *   against the variance there: "when optimizer is sgd, momentum explains half". So the indices of
 *   parameters with different conditions do not add up.
 * - With parameter_constraints or forbidden combinations the draws are uniform over the allowed
 *   configurations, and the two definitions above are kept as they stand: x_j is drawn from its
 *   allowed values with the others held, the others from theirs with x_j held. First indices then
 *   may add up to more than 1, because the parameters depend on each other.
 * - Parameters with one possible value have no entry.
 * - Failed trials are left out, and values far on the bad side are cut (objective_model.h), so that
 *   a few diverged trials do not dominate the indices. */
#ifndef ASSAY_SEARCH_IMPORTANCE_IMPORTANCE_H
#define ASSAY_SEARCH_IMPORTANCE_IMPORTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/problem/problem.h"

#define IMPORTANCE_MIN_R2 0.2

/* All in [0,1]: each draw outside is clipped (the error of an estimate may move it there). */
struct importance_parameter {
    const char *name; /* view of the space */
    bool is_conditional;
    double first, first_low, first_high;
    double total, total_low, total_high;
    /* share of the difference between the best tenth of the trials and all (PED-ANOVA); the shares
     * add up to 1 */
    double top;
};

struct importance {
    const char *method; /* "gp-sobol"; static */
    size_t trials;      /* completed with a finite value */
    /* how well the model predicts trials that it has not seen (leave-one-out), 1 is exact; NaN
     * where no model was fitted */
    double r2;
    char reason[200]; /* why there are no parameters: too few trials, constant values, a poor
                           model; "" otherwise */
    size_t n;         /* 0 with a reason */
    struct importance_parameter *parameters; /* in the space's order */
};

/* Importance for objective `objective` < spec->n_objectives.
 *   spec, history  borrowed; history ascending by number; pending trials are skipped
 *   ret            owned by the caller, importance_free(); it names the parameters of spec->space,
 *                  which must outlive it. Untouched on failure
 * AS_E_NOMEM, AS_E_TOO_LARGE. Data without information are not an error: see `reason`. Pure: the
 * same bits for the same input on one machine (draws are keyed by spec->seed and
 * SEARCH_DRAW_IMPORTANCE). Safe from any thread. About 0.1 s at 1,000 trials of 10 parameters,
 * beyond the fit of the model. */
AS_MUST_CHECK as_status importance_compute(const struct search_spec *spec,
                                           const struct history *history, size_t objective,
                                           struct importance **ret, struct as_err *err);
void importance_free(struct importance *i);
AS_DEFINE_FREEP(struct importance, importance_free)

#endif
