/* What an ensemble is made of: the candidates' predictions, what is true, and the method. */
#ifndef ASSAY_SEARCH_ENSEMBLE_ENSEMBLE_INPUT_H
#define ASSAY_SEARCH_ENSEMBLE_ENSEMBLE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/score.h"

#define ENSEMBLE_MAX_SIZE 100
#define ENSEMBLE_MAX_CANDIDATES 1000
#define ENSEMBLE_MAX_BUCKETS 1000
#define ENSEMBLE_BUCKET_ROWS 10 /* with fewer rows a bucket has the model that is best on all */

/* greedy     members are added one by one, with replacement (greedy.c). R. Caruana, A.
 *            Niculescu-Mizil, G. Crew, A. Ksikes, "Ensemble selection from libraries of models",
 *            ICML 2004
 * stacking   a regularised regression on the candidates' outputs (stacking.c). D. Wolpert, "Stacked
 *            generalization", Neural Networks 5, 1992; L. Breiman, "Stacked regressions", Machine
 *            Learning 24, 1996; K. Ting, I. Witten, "Issues in stacked generalization", JAIR 10,
 *            1999
 * average    the mean of the best `size` candidates
 * bucketing  the one that is best by cross-validation: every candidate's held-out rows are that. Of
 * rows in
 *            buckets, each bucket has its own */
typedef enum ensemble_method {
    ENSEMBLE_GREEDY,
    ENSEMBLE_STACKING,
    ENSEMBLE_AVERAGE,
    ENSEMBLE_BUCKETING
} ensemble_method;
#define ENSEMBLE_METHODS 4

/* The names, in the order of the enum; NULL ends them. */
extern const char *const ensemble_method_names[ENSEMBLE_METHODS + 1];

/* What models take. A part that several of them have, such as a model that the trials of a further
 * layer see, counts once. */
struct ensemble_bytes {
    int64_t max;          /* of the members together */
    const int64_t *own;   /* [candidates]: what is no part */
    const int64_t *parts; /* [n_parts] */
    size_t n_parts;
    const bool *has; /* [candidates][n_parts] */
};

struct ensemble_input {
    size_t candidates;
    struct score_truth truth;        /* rows, outputs, and what is true */
    const float *const *predictions; /* [candidates], each rows x outputs, row-major */
    score_metric metric;
    ensemble_method method;
    size_t size;       /* greedy: members to add at most; others: distinct members at most.
                        * 1..ENSEMBLE_MAX_SIZE */
    bool non_negative; /* stacking: no coefficient below 0 */
    bool calibrate;    /* classes: what the combination gives is calibrated (calibration.c) */
    const struct ensemble_bytes *bytes; /* NULL: any. Not beside buckets */
    /* bucketing: which bucket each row is in, [rows], each below n_buckets; NULL: all in one */
    const uint32_t *buckets;
    size_t n_buckets;
    uint64_t seed; /* of the sweep */
};

/* Check everything but the values of predictions. AS_E_INVAL, AS_E_TOO_LARGE: what is wrong. */
AS_MUST_CHECK as_status ensemble_input_check(const struct ensemble_input *in, struct as_err *err);

#endif
