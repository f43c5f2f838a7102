/* Which parameters matter: Sobol's indices of a model of the objective, with intervals.
 *
 * Each parameter is drawn uniformly on its own scale, the levels of a discrete one equally often
 * (on a log scale: by their share of the scale), all independently, over the whole space: what is
 * told is how the objective varies over the space that the sweep describes, not how it varied over
 * the trials, of which most are near the best. Then
 *   first  Var E[y | x_j] / Var y       what parameter j explains alone
 *   total  E Var[y | all but x_j] / Var y   what is lost without it: alone and in interaction
 * (I. Sobol 1993; estimators of M. Jansen and A. Saltelli, see sensitivity.h). The objective is
 * known by its trials alone: what is shown are the indices of the mean of a Gaussian process that
 * was fitted to them, and the 5 % and 95 % quantiles of the indices of 48 functions drawn from its
 * posterior (stretched, where needed, to hold the former). The quantiles hold what the trials leave
 * open, given the model, and the error of the estimators (each draw resamples the scrambled point
 * sets); they do not hold the choice of the model and of its hyperparameters: r2 speaks of that. On
 * functions of known indices, from 150 spread trials, 93 to 100 in a hundred were in the interval
 * or within 0.05, where four fifths of the trials lay around one point 55 to 100
 * (test_known_importance.c). In the interval alone: 42 to 98 and 33 to 98, because a true 0 lies
 * below any estimate, and because a process of one smoothness is too sure far from its data. So it
 * is a guide, not a promise. Hyperparameters drawn too cost four times as much and changed little.
 *
 * Special cases.
 * - A conditional parameter's indices are those within the part of the space where it is active,
 *   against the variance there: "when optimizer is sgd, momentum explains half". So the indices of
 *   parameters with different conditions do not add up.
 * - With parameter_constraints or forbidden combinations the draws are uniform over the allowed
 *   configurations, and the two definitions above are kept as they stand: x_j is drawn from its
 *   allowed values with the others held, the others from theirs with x_j held. First indices
 *   then may add up to more than 1, because one parameter tells something of another.
 * - Parameters with one possible value have no entry.
 * - Failed trials, and trials whose value is not finite, are left out. A value far on the bad side
 *   is cut to q + 3 (q - median), where a tenth of the values is worse than q: so a few diverged
 *   trials are not all that there is to see. */
#ifndef ASSAY_SEARCH_IMPORTANCE_IMPORTANCE_H
#define ASSAY_SEARCH_IMPORTANCE_IMPORTANCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/problem/problem.h"

#define IMPORTANCE_MAX_TRIALS                                                                      \
    1000 /* that the model stands on: the best 200, the newest 100, and a spread of the rest */
#define IMPORTANCE_MIN_R2 0.2

/* All in [0,1]: draws outside (estimates may be, by their error) are clipped, each by itself. */
struct importance_parameter {
    const char *name; /* view of the space */
    bool is_conditional;
    double first, first_low, first_high;
    double total, total_low, total_high;
    double top; /* share of what tells the best tenth of the trials from all (PED-ANOVA); the
                   shares add up to 1 */
};

struct importance {
    const char *method; /* "gp-sobol"; static */
    size_t trials;      /* completed with a finite value */
    double r2;          /* how well the model predicts trials that it was not shown (leave-one-out),
                           1 is exact; NaN where no model was fitted */
    char reason[200];   /* why there are no parameters: too few trials, constant values, a poor
                           model; "" otherwise */
    size_t n;           /* 0 with a reason */
    struct importance_parameter *parameters; /* in the space's order */
};

/* Importance for objective `objective` < spec->n_objectives.
 *   spec, history  borrowed; history ascending by number; pending trials are passed over
 *   ret            owned by the caller, importance_free(); it names the parameters of spec->space,
 *                  which must outlive it. Untouched on failure
 * AS_E_NOMEM, AS_E_TOO_LARGE. Data that tell nothing are no errors: see `reason`.
 * Pure: the same bits for the same input on one machine (draws are keyed by spec->seed and
 * SEARCH_DRAW_IMPORTANCE). Safe from any thread. About 0.1 s at 1,000 trials of 10 parameters,
 * beyond the fit of the model. */
AS_MUST_CHECK as_status importance_compute(const struct search_spec *spec,
                                           const struct history *history, size_t objective,
                                           struct importance **ret, struct as_err *err);
void importance_free(struct importance *i);
AS_DEFINE_FREEP(struct importance, importance_free)

#endif
