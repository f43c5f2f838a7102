/* Greedy ensemble selection with replacement.
 *
 * R. Caruana, A. Niculescu-Mizil, G. Crew, A. Ksikes, "Ensemble selection from libraries of
 * models", ICML 2004. Members are added one by one, each time the candidate with which the running
 * mean of predictions has the smallest loss, and the best prefix is kept. Selection sees one half
 * of the rows; the reported loss is measured on the other half, so that it is not biased by
 * selection. The halves are drawn by Philox from the seed alone: every ensemble of a sweep uses the
 * same ones. */
#ifndef ASSAY_SEARCH_ENSEMBLE_H
#define ASSAY_SEARCH_ENSEMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

#define ENSEMBLE_MAX_SIZE 100
#define ENSEMBLE_MAX_CANDIDATES 1000

typedef enum ensemble_loss {
    ENSEMBLE_LOSS_ERROR, /* classification: share of rows whose largest output is not the target */
    ENSEMBLE_LOSS_LOG_LOSS, /* classification: mean -ln p(target), p clipped to [1e-7, 1] */
    ENSEMBLE_LOSS_MSE,      /* regression: mean over rows and outputs of the squared error */
    ENSEMBLE_LOSS_RMSE,     /* its root */
    ENSEMBLE_LOSS_MAE       /* mean absolute error */
} ensemble_loss;

/* "error", "log_loss", "mse", "rmse", "mae". Never NULL. */
const char *ensemble_loss_format(ensemble_loss l);
bool ensemble_loss_is_classification(ensemble_loss l);

/* The loss that corresponds to a metric of the built-in trainer; every loss is minimised. val_error
 * and val_accuracy give error. val_loss gives log_loss (classification) or mse. val_rmse and val_r2
 * give rmse, val_mae gives mae. Any other name gives error (classification) or rmse. */
ensemble_loss ensemble_loss_for_metric(const char *metric, bool classification);

struct ensemble_input {
    size_t candidates, rows, outputs;
    const float *const *predictions; /* [candidates], each rows x outputs, row-major */
    const int64_t *classes; /* [rows] for classification, 0 <= class < outputs; else NULL */
    const float *targets;   /* rows x outputs for regression; else NULL */
    ensemble_loss loss;
    size_t size;   /* members to add at most, 1..ENSEMBLE_MAX_SIZE */
    uint64_t seed; /* of the sweep */
};

/* All losses are minimised. Candidates keep the order of the input. */
struct ensemble {
    size_t candidates;
    unsigned *counts;      /* [candidates]: how often each was taken; 0 = not a member */
    double *weights;       /* [candidates]: counts / sum of counts */
    double *select_losses; /* [candidates]: of each alone, on the rows of selection */
    double *report_losses; /* [candidates]: of each alone, on the other rows */
    size_t members;        /* distinct candidates with counts > 0 */
    size_t size;           /* sum of counts: the length of the best prefix */
    size_t select_rows, report_rows;
    double select_loss; /* of the ensemble; never above that of best_single, except for the error */
    double report_loss; /* of the ensemble, on rows that selection never saw: not biased */
    /* the candidate with the smallest loss on the rows of selection; equal errors: the one with the
     * smaller log loss */
    size_t best_single;
};

/* Select the members by the loss. If it is the error, select by the log loss, which distinguishes
 * models better on few rows. Ties go to the candidate that comes first and to the shorter prefix. A
 * single row serves as both halves (select_rows == report_rows == 1), because there is no other. A
 * candidate with a prediction that is not finite is skipped: its losses are infinite.
 *   in   borrowed
 *   ret  owned by the caller, ensemble_free()
 * AS_E_INVAL: no candidates or rows, no candidate with finite predictions, a class out of range, or
 * targets that do not fit the loss or are not finite. AS_E_TOO_LARGE; AS_E_NOMEM.
 * O(size * candidates * rows * outputs) time, O(rows * outputs) memory. */
AS_MUST_CHECK as_status ensemble_select(const struct ensemble_input *in, struct ensemble **ret,
                                        struct as_err *err);
void ensemble_free(struct ensemble *e);
AS_DEFINE_FREEP(struct ensemble, ensemble_free)

/* Which rows serve selection: ret[rows], true for ceil(rows / 2) of them. AS_E_NOMEM. */
AS_MUST_CHECK as_status ensemble_split(size_t rows, uint64_t seed, bool *ret, struct as_err *err);

#endif
