/* After how many rounds boosted trees of a fold are judged.
 *
 * `early_stopping_rounds` and `patience` choose the round that is best on the rows that the fold
 * holds out. Judged by the same rows, that round looks better than it is: with 30 held-out rows the
 * error is too small by a twelfth (decision 2018). So the model of each fold, and what it predicts,
 * are of as many rounds as were best on average in the other folds. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_FOLD_ROUNDS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_FOLD_ROUNDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Does a training of this document (train.*) choose its rounds by the rows that it holds out? */
bool fold_rounds_chosen(const json_t *train);

/* The rounds of fold i of k >= 2, at least 1.
 *   best  [k] the rounds after which each fold was best, at least 1; borrowed */
size_t fold_rounds_of(const double *best, size_t k, size_t i);

#endif
