/* One Gaussian process of a sweep: its quantity, its trials and its hyperparameters.
 *
 *   WARPED   an objective, half-rank warped; completed trials, and rungs
 *   PLAIN    an objective, standardised and cut; completed trials, and rungs
 *   SMOOTH   an objective, as PLAIN, under the squared exponential with long lengthscales (fit.h)
 *   OUTCOME  a constrained outcome, standardised; completed trials only
 *   FAILURE  1 for a failed trial, 0 for a completed one, standardised
 *
 * Rows: those that the last fit saw (the base; a subset if they are too many), then the trials that
 * ended since, then the pending trials; by number within each. So the factor of the base stays
 * valid while trials come and go.
 *
 * With early stopping a model of an objective has steps (covariance.h): a trial has a row for each
 * rung that it has reached, and one of the last step if it has completed; predictions are of the
 * last step. The base of such a model has at most SURROGATE_RUNG_ROWS rows. The best stopped trials
 * have a row among the pending ones, too: their value at the last step counts as known.
 *
 * It is fitted again whenever there is a new row, up to 200 rows. After that a fit begins when the
 * rows grew by a twentieth or by 256, or, at most every n/100 trials, when a new value lies more
 * than 4 deviations off or the best trial changed. It is spread over suggestions, a few values of
 * the posterior in each (surrogate_fit.c); the model is that of the last finished fit. All this is
 * a pure function of the history and of the state, which holds the trials and the result of the
 * last fit and of the one under way. */
#ifndef ASSAY_SEARCH_GP_SURROGATE_H
#define ASSAY_SEARCH_GP_SURROGATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/gp/guide.h"
#include "search/regression/fit.h"
#include "search/regression/model.h"
#include "search/regression/training_set.h"
#include "search/regression/warp.h"

#define SURROGATE_SLOTS (3 * SEARCH_MAX_OBJECTIVES + SEARCH_MAX_OUTCOMES + 1)
/* A refit at n = 1000 took 570 ms with all rows and 130 to 175 ms with 640 (decision 4004). */
#define SURROGATE_FIT_ROWS 640 /* a fit sees at most this many rows */
#define SURROGATE_NEW_ROWS 256 /* and is repeated after this many new ones */
#define SURROGATE_RUNG_ROWS 1024
#define SURROGATE_STOPPED_ROWS 128 /* of stopped trials, as pending ones */

typedef enum surrogate_target {
    SURROGATE_WARPED,
    SURROGATE_PLAIN,
    SURROGATE_SMOOTH,
    SURROGATE_OUTCOME,
    SURROGATE_FAILURE
} surrogate_target;

/* The base chosen from too many rows. */
struct surrogate_subset {
    size_t n, n_chosen;
    uint64_t digest; /* of the n trials and their costs */
    size_t *chosen;  /* NULL: none yet */
};

/* Models kept between suggestions, to save time. One thread at a time. */
struct surrogate_store {
    struct gp_model *models[SURROGATE_SLOTS];
    struct gp_fit_work *fit;
    struct surrogate_subset subset[SURROGATE_SLOTS];
    struct guide_store guides;
};
void surrogate_store_done(struct surrogate_store *s); /* accepts a zeroed one */
size_t surrogate_store_bytes(const struct surrogate_store *s);

/* Is it a model of an objective? */
static inline bool surrogate_is_objective(surrogate_target t)
{
    return t == SURROGATE_WARPED || t == SURROGATE_PLAIN || t == SURROGATE_SMOOTH;
}

struct surrogate_spec {
    surrogate_target target;
    size_t k;        /* which objective or outcome */
    size_t max_rows; /* of the base; with more rows, a subset */
    uint64_t number; /* the suggestion's number: keys the draws */
};

struct surrogate {
    surrogate_target target;
    struct gp_model *model; /* view of the store; conditioned on the values less the guides */
    struct guides guides;   /* of an objective; part of the mean */
    struct gp_warp *warp;   /* NULL for FAILURE */
    double mean, deviation; /* FAILURE: mean and deviation of the zeros and ones */
    bool refitted;          /* a fit ended now */
    size_t evals;           /* values of the posterior that fits computed now */
    size_t fit_rows;        /* trials that the last finished fit saw */
    size_t n_values;        /* of its quantity: those of the warp */
    size_t *trials; /* owned: the trial in the set of each row of the model that has a value;
                       TRAINING_SET_NONE for one of a rung */
    json_t *state;  /* owned: for the next suggestion */
};
void surrogate_done(struct surrogate *s); /* accepts a zeroed one */

/* "w0", "p0", "s0", "c0", "f": the key of its state. */
void surrogate_name(const struct surrogate_spec *spec, char ret[16]);

/* Build it, ready to predict. state: left by an earlier suggestion; anything else counts as no
 * state. Everything except ret and the store is borrowed; ret is untouched on failure.
 * AS_E_NUMERIC: the model cannot be fitted. AS_E_NOMEM */
AS_MUST_CHECK as_status surrogate_prepare(struct surrogate_store *store,
                                          const struct training_set *s,
                                          const struct surrogate_spec *spec, const json_t *state,
                                          struct surrogate *ret, struct as_err *err);

/* Posterior mean and variance, with the guides: as gp_predict() and gp_predict_grad(), whose
 * scratch `w` is. Reserve first. AS_E_NOMEM. */
AS_MUST_CHECK as_status surrogate_reserve(const struct surrogate *s, struct gp_work *w,
                                          size_t batch, struct as_err *err);
void surrogate_predict(const struct surrogate *s, struct gp_work *w, const struct gp_rows *p,
                       double *ret_mean, double *ret_var);
void surrogate_predict_grad(const struct surrogate *s, struct gp_work *w, const struct gp_rows *p,
                            double *ret_mean, double *ret_var, double *ret_dmean, double *ret_dvar);

/* Convert a value from the metric's unit and direction (a cost, for objectives) to the model's, and
 * back. */
double surrogate_forward(const struct surrogate *s, double v);
double surrogate_back(const struct surrogate *s, double v);
double surrogate_back_deviation(const struct surrogate *s, double mean, double sd);

#endif
