/* The point of the highest acquisition, in a space of continuous, levelled and categorical
 * parameters.
 *
 * Raw candidates are evaluated in one batch; from four of them (the best, the best local one, the
 * best global one, one drawn by its value) two moves alternate until neither helps: projected
 * L-BFGS over the continuous parameters and the relaxed places of those with many levels, and for
 * each discrete parameter the best of its neighbouring values. All starts advance together, so that
 * each step is one batched prediction. Small finite spaces are evaluated completely instead. */
#ifndef ASSAY_SEARCH_GP_OPTIMIZE_H
#define ASSAY_SEARCH_GP_OPTIMIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/gp/acquisition.h"
#include "search/gp/candidates.h"
#include "search/regression/lbfgs.h"
#include "search/gp/surrogate.h"

/* Scratch, kept between suggestions. One thread at a time. */
struct gp_optimizer_work {
    struct gp_work *predict;
    struct lbfgs_work *lbfgs;
};
void gp_optimizer_work_done(struct gp_optimizer_work *w); /* accepts a zeroed one */
size_t gp_optimizer_work_bytes(const struct gp_optimizer_work *w);

struct prior_weights; /* search/prior/trust.h */

/* Everything borrowed. */
struct gp_optimizer_problem {
    const struct training_set *set;
    const struct acquisition *acquisition;
    const struct surrogate *models;     /* in the acquisition's order */
    struct gp_region region;            /* zeroed: everywhere */
    uint64_t number;                    /* the suggestion's number: keys the draws */
    const struct prior_weights *priors; /* whose logarithm is added; NULL: none */
};

struct gp_found {
    bool is_found;    /* false: every candidate was tried or is not allowed */
    double value;     /* acquisition there */
    double runner_up; /* the acquisition at the second best end; NaN without one */
    size_t candidates;
    double mean[ACQUISITION_MAX_MODELS], sd[ACQUISITION_MAX_MODELS];
};

/* Never a point that was tried or is pending, or that the space does not allow.
 *   ret_point  enc->n, snapped; meaningful when ret->is_found
 * AS_E_EXHAUSTED  a small finite space has nothing left
 * AS_E_NOMEM */
AS_MUST_CHECK as_status gp_optimize(const struct gp_optimizer_problem *p,
                                    struct gp_optimizer_work *w, double *ret_point,
                                    struct gp_found *ret, struct as_err *err);

/* The acquisition and the predictions at one point, which must be snapped and allowed. AS_E_NOMEM.
 */
AS_MUST_CHECK as_status gp_describe(const struct gp_optimizer_problem *p,
                                    struct gp_optimizer_work *w, const double *point,
                                    struct gp_found *ret, struct as_err *err);

#endif
