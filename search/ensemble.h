/* Ensembles: the members, their weights, and an honest comparison with the best single model.
 *
 * Selection is greedy and with replacement, from a sorted start: R. Caruana, A. Niculescu-Mizil, G.
 * Crew, A. Ksikes, "Ensemble selection from libraries of models", ICML 2004. The members are
 * selected on all rows. What that is worth is measured by cross-fitting: the same selection is done
 * on each half of the rows, and measured on the other half, where it never looked. The best single
 * model is picked and measured in the same way, so that both figures have the same bias: none. The
 * halves are drawn by Philox from the seed alone: every ensemble of a sweep uses the same ones. */
#ifndef ASSAY_SEARCH_ENSEMBLE_H
#define ASSAY_SEARCH_ENSEMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "search/score.h"

#define ENSEMBLE_MAX_SIZE 100
#define ENSEMBLE_MAX_CANDIDATES 1000
#define ENSEMBLE_INTERVAL_ROWS 30 /* with fewer rows there is no interval, only noise */
#define ENSEMBLE_INTERVAL 0.9     /* the interval's probability */

struct ensemble_input {
    size_t candidates;
    struct score_truth truth;        /* rows, outputs, and what is true */
    const float *const *predictions; /* [candidates], each rows x outputs, row-major */
    score_metric metric;
    size_t size;   /* members to add at most, 1..ENSEMBLE_MAX_SIZE */
    uint64_t seed; /* of the sweep */
};

/* Candidates keep the order of the input. Values are in the metric's own unit and direction, and NaN
 * where the metric has none. */
struct ensemble {
    size_t candidates;
    unsigned *counts; /* [candidates]: how often each was taken; 0 = not a member */
    double *weights;  /* [candidates]: counts / sum of counts */
    double *values;   /* [candidates]: of each alone on all rows; NaN if skipped */
    size_t members;   /* distinct candidates with counts > 0 */
    size_t size;      /* sum of counts */
    size_t rows;
    double value;          /* cross-fitted: each row predicted by the selection of the other half */
    double value_selected; /* of the members on all rows, which chose them: too good */
    size_t best_single;    /* the best candidate on all rows */
    double single_value;   /* cross-fitted: each row predicted by the best of the other half */
    size_t half_singles[2]; /* the best on each half; often the same as best_single */
    /* How much better the ensemble is than the best single model, both cross-fitted: positive is
     * better. The interval is normal, from the influences of the rows (score.h); NaN below
     * ENSEMBLE_INTERVAL_ROWS rows. */
    double gain, gain_low, gain_high;
    bool within_noise; /* the interval contains 0, or there is none */
    bool recommended;  /* the ensemble: it has several members, and its gain is above 0 */
};

/* Select the members. The best three candidates by the metric start it, as many of them as are best
 * together. Then members are added that lower the log loss of the mean prediction most (numbers: the
 * squared or the absolute error), because the metric itself is too coarse or too blind on few rows
 * to choose among candidates. The metric chooses the best prefix. Ties go to the lower log loss (or
 * error), then to the candidate that comes first and to the shorter prefix. A single row serves as
 * both halves, because there is no other. A candidate with a prediction that is not finite is
 * skipped.
 *   in   borrowed
 *   ret  owned by the caller, ensemble_free()
 * AS_E_INVAL: no candidates or rows, no candidate with finite predictions, a class out of range, or
 * targets that do not fit the metric or are not finite. AS_E_TOO_LARGE; AS_E_NOMEM.
 * O(size * candidates * rows + (size + candidates) * rows * outputs) time, O(rows * outputs)
 * memory; numbers: O(size * candidates * rows * outputs). */
AS_MUST_CHECK as_status ensemble_select(const struct ensemble_input *in, struct ensemble **ret,
                                        struct as_err *err);
void ensemble_free(struct ensemble *e);
AS_DEFINE_FREEP(struct ensemble, ensemble_free)

/* The halves: ret[rows], true for ceil(rows / 2) of them. AS_E_NOMEM. */
AS_MUST_CHECK as_status ensemble_split(size_t rows, uint64_t seed, bool *ret, struct as_err *err);

#endif
