/* A model of one objective over the whole space of a sweep, fitted to what its trials measured:
 * what importance and pictures of the space are computed from. The search's own models are others:
 * they describe the neighbourhood of the best trials.
 *
 * It is a Gaussian process of at most IMPORTANCE_MAX_TRIALS trials: the best 200, the newest 100,
 * and a spread of the rest. Failed trials, and trials whose value is not finite or not credible
 * (problem/credible.h), are left out. A value far on the bad side is cut to q + 3 (q - median),
 * where a tenth of the values is worse than q. */
#ifndef ASSAY_SEARCH_IMPORTANCE_OBJECTIVE_MODEL_H
#define ASSAY_SEARCH_IMPORTANCE_OBJECTIVE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/problem/problem.h"
#include "search/regression/model.h"
#include "search/regression/training_set.h"

#define IMPORTANCE_MAX_TRIALS 1000

struct objective_model {
    size_t objective;
    struct training_set *s; /* owned, as all below */
    size_t n_all;           /* trials with a value */
    double *all_points;     /* n_all x s->enc->n */
    double *all_costs;      /* small is good */
    size_t n;               /* trials of the model */
    double *x;              /* their features */
    int32_t *z;
    double *costs;
    double *y;               /* n: costs as the model sees them, cut, mean 0, deviation 1 */
    double unit, mean, span; /* cost = unit (mean + span y) */
    struct gp_model *model;  /* NULL: there is none, see `reason` */
    double r2; /* how well it predicts trials that it has not seen (leave-one-out), 1 is exact; NaN
                  without a model */
    char reason[200]; /* why there is no model; "" otherwise */
};

/* The model of objective `objective` < spec->n_objectives.
 *   spec, history  borrowed, must outlive *ret; history ascending by number
 *   ret            owned by the caller; untouched on failure
 * AS_E_NOMEM, AS_E_TOO_LARGE. Data without information are not an error: see `reason`. Pure: the
 * same bits for the same input on one machine (spec->seed and SEARCH_DRAW_IMPORTANCE). Seconds for
 * IMPORTANCE_MAX_TRIALS. */
AS_MUST_CHECK as_status objective_model_create(const struct search_spec *spec,
                                               const struct history *history, size_t objective,
                                               struct objective_model **ret, struct as_err *err);
void objective_model_free(struct objective_model *m);
AS_DEFINE_FREEP(struct objective_model, objective_model_free)

#endif
