/* Ensembles: how models are combined, and an honest comparison with the best single model.
 *
 * A method sees the predictions of the candidates on held-out rows, and what is true there. It
 * returns a combination: a weighted mean, or (stacking) a linear function of the outputs. The
 * combination that users get is fitted on all rows. What it is worth is measured by cross-fitting:
 * the rows are cut into folds, and the method is applied anew to the rows outside of each fold,
 * where it never sees the fold's rows; what it returns predicts them. The best single model is
 * picked and measured in the same way, so that both figures have the same bias: none. The folds are
 * drawn by Philox from the seed alone: every ensemble of a sweep uses the same ones. */
#ifndef ASSAY_SEARCH_ENSEMBLE_ENSEMBLE_H
#define ASSAY_SEARCH_ENSEMBLE_ENSEMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"
#include "model/combine/combine.h"
#include "search/ensemble/ensemble_input.h"

/* Five folds instead of two halves: the recommended ensemble is worse than the best single trial in
 * 2 % instead of 4 % of the cases for error on 150 rows, 0 instead of 8 % on 450 (decision 4013;
 * bench/ensemble.py). With many rows more folds change nothing and cost time. */
#define ENSEMBLE_FOLDS 5      /* at most; as many as rows, if these are fewer */
#define ENSEMBLE_FOLDS_MANY 2 /* with more than ENSEMBLE_MANY_ROWS rows: halves are enough then */
#define ENSEMBLE_MANY_ROWS 20000
#define ENSEMBLE_INTERVAL_ROWS 30 /* with fewer rows there is no interval, only noise */

/* Candidates keep the order of the input. Values are in the metric's own unit and direction, and
 * NaN where the metric has none.
 *
 * A weighted mean (biases is NULL) has weights whose sum is 1. The formulas of it and of a linear
 * combination are in model/combine/combine.h; those of classes take logarithms. */
struct ensemble {
    size_t candidates, outputs;
    unsigned *counts; /* [candidates]: how often each was taken; 0 = not a member */
    double *weights;  /* [candidates] */
    double *biases;   /* [outputs]; NULL: a weighted mean, or by buckets */
    size_t
        *of_bucket; /* bucketing of rows in buckets: [n_buckets + 1] the candidate of each, the last
                        * of any other; NULL. Weights are then shares of the rows */
    double penalty; /* stacking: the strength of the regularisation (stacking.c); others: NaN */
    struct combine_calibration calibration; /* of what the combination gives; slope 0: none */
    /* Of two classes, where the metric counts them and the ensemble is calibrated: the second is
     * predicted above it. NaN: the likelier one. */
    double threshold;
    /* Of more classes, where the metric looks at all of them alike: [outputs], that class is
     * predicted whose probability times its weight is the highest. NULL: the likeliest. */
    double *class_weights;
    double *values; /* [candidates]: of each alone on all rows; NaN if skipped */
    size_t members; /* distinct candidates with counts > 0 */
    size_t size;    /* sum of counts */
    size_t rows, folds;
    double value;          /* cross-fitted: each row predicted by what was fitted without it */
    double value_selected; /* of the members on all rows, which chose them: too good */
    size_t best_single;    /* the best candidate on all rows */
    double single_value;   /* cross-fitted: each row predicted by the best outside of its fold */
    size_t fold_singles[ENSEMBLE_FOLDS]; /* [folds]: those; often the same as best_single */
    /* How much better the ensemble is than the best single model, both cross-fitted: positive is
     * better. The interval is normal, from the influences of the rows (score.h); NaN below
     * ENSEMBLE_INTERVAL_ROWS rows. */
    double gain, gain_low, gain_high;
    /* Of the intervals of value and single_value (score_interval.h); halves are NaN likewise. */
    double value_half, single_half, evidence;
    bool within_noise; /* the interval contains 0, or there is none */
    bool recommended;  /* the ensemble: it has several members or a calibration, and its gain is
                        * above 0 */
};

/* Apply the method, and measure it. A single row serves as both sides, because there is no other. A
 * candidate with a prediction that is not finite is skipped. Ties go to the lower log loss
 * (numbers: to the lower squared error, with mae to the lower absolute one), then to the candidate
 * that comes first.
 *   in   borrowed
 *   ret  owned by the caller, ensemble_free()
 * AS_E_INVAL: no candidates or rows, no candidate with finite predictions, a class out of range, or
 * targets that do not fit the metric or are not finite. AS_E_TOO_LARGE; AS_E_NOMEM.
 * greedy: O(folds * size * candidates * rows) time (numbers: times outputs). stacking: O(folds)
 * fits to at most 2^19 values, which is a few seconds. All: O(folds * candidates * rows * outputs)
 * time, O(rows * outputs) memory. */
AS_MUST_CHECK as_status ensemble_select(const struct ensemble_input *in, struct ensemble **ret,
                                        struct as_err *err);
void ensemble_free(struct ensemble *e);
AS_DEFINE_FREEP(struct ensemble, ensemble_free)

/* How many folds so many rows have. */
size_t ensemble_n_folds(size_t rows);

/* The place of each row in an order that the seed draws: ret[rows]. Row i is in the fold ret[i] *
 * folds / rows. AS_E_NOMEM. */
AS_MUST_CHECK as_status ensemble_places(size_t rows, uint64_t seed, size_t *ret,
                                        struct as_err *err);

/* The members in the order in which their predictions are added: of falling weight, equal ones in
 * the order of the candidates. ret[candidates]: the first e->members of it are set. */
void ensemble_members(const struct ensemble *e, size_t *ret);

/* What a combination predicts for n rows: ret[n, outputs].
 *   e     of the same candidates
 *   rows  [n], or NULL for the first n */
void ensemble_predict(const struct ensemble *e, const struct ensemble_input *in, const size_t *rows,
                      size_t n, double *ret);

/* For metrics that count classes, where the ensemble has a threshold or weights of classes:
 * p[n, outputs] becomes 1 for the class that it predicts, and 0 for the others. */
void ensemble_decide(const struct ensemble *e, size_t n, double *p);

#endif
