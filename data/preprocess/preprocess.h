/* The data of a run, as a model sees it: which rows are held out, missing values filled, categories
 * made numbers, features and targets brought to mean 0, deviation 1. Everything that is learnt from
 * the data (means, medians, which categories there are) is learnt from the training rows alone.
 *
 * Tables. A missing number becomes the median of the column's training rows, and its indicator 1:
 * the median, because a few huge values do not move it, and the indicator lets the model correct
 * what the median hides. A category becomes one-hot inputs, or a code for an embedding; where each
 * lies is said in data/dataset.h. A value that no training row has is one of the others.
 * Numbers are standardised per column; indicators and one-hot inputs stay 0 and 1: divided by the
 * deviation of a rare category they would be huge.
 *
 * Images. One mean and one deviation per channel, over all pixels of the training rows. Where all
 * pixels are bytes they stay bytes: sums are exact then, and each batch is scaled when it is
 * gathered (backend_gather_bytes), by the same (raw - mean) / scale.
 *
 * Text. The last share of the tokens is held out, in windows of `context` tokens that follow one
 * another; a window's targets are the tokens one place further. The training rows of an epoch are
 * windows too: n_train that do not overlap, from a random phase, in random order. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_DATA_H
#define ASSAY_TRIAL_RUNNER_TRAIN_DATA_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "model/document/train_spec.h"
#include "base/status.h"

struct train_data {
    /* x [n_rows, n_features]: what is a number in a model's input, standardised; n_features is
     * dataset_inputs(), or dataset_numeric_inputs() where the categories are in `codes` (then it
     * may be 0). Of images bytes instead of x, not standardised yet. targets [n_rows, n_outputs]:
     * of regression, standardised; for the loss bce as they are, and of two classes [n_rows, 1], 0
     * or 1 (n_outputs stays 2, the labels stay too). */
    struct dataset set;
    size_t n_codes; /* categorical columns of a table when model.embedding > 0, else 0 */
    int32_t *codes; /* [n_rows, n_codes], in [0, dataset_category_slots()); else NULL */
    size_t n_train, n_val;
    int32_t *train_rows, *val_rows; /* row numbers; text: val_rows are offsets of windows, and
                                     * train_rows is NULL: see train_data_order() */
    int32_t *rows;   /* what holds both; tables and images: shuffled under validation.seed, those
                      * held out first */
    size_t context;  /* text: tokens of a window; else 0 */
    size_t n_tokens; /* text: tokens to train on, the first of set.tokens; else 0 */
    size_t n_scales; /* set.n_features; images: channels; text: 0 */
    float *mean, *scale;                /* [n_scales]: x = (raw - mean) / scale */
    bool is_bytes;                      /* set.bytes it is, or was before somebody took it */
    size_t n_targets;                   /* columns of set.targets; 0 without */
    double *target_mean, *target_scale; /* [n_targets]: target = (raw - mean) / scale */
    float *val_targets;                 /* [n_val, n_targets] in the target's own unit */
    int64_t *class_rows; /* [n_outputs] training rows of each class; classification, else NULL */
    float *fill;         /* tables: [columns of the file] what a missing number became; else NULL */
    char *seen;          /* tables: [all categories] is the value in a training row; else NULL */
};

/* Split, fill, encode and standardise: the features when spec->standardize, the targets of
 * regression always (but for bce), so that learning rates mean the same whatever the target's unit.
 *   set   what dataset_load() gave for `info`; taken, even on failure (it is left empty)
 *   info  borrowed for the call
 * A column that is constant in the training rows gets the scale 1, one without a value there is 0.
 * AS_E_INVAL with the reason: text too short for a window on either side; targets outside [0, 1]
 * under bce. AS_E_TOO_LARGE: more inputs than DATASET_MAX_VALUES. AS_E_NOMEM. */
AS_MUST_CHECK as_status train_data_prepare(struct dataset *set, const struct dataset_info *info,
                                           const struct train_spec *spec, struct train_data *ret,
                                           struct as_err *err);
void train_data_done(struct train_data *d);

/* What an epoch trains on, in its order: n_train rows, or offsets of windows in set.tokens. A
 * function of seed and epoch alone. */
void train_data_order(const struct train_data *d, uint64_t seed, int64_t epoch, int32_t *ret);

/* How the inputs were made, so that serving can repeat it: {input, standardize, table?: [{column,
 * kind, at, …}], image?, text?, target?}; docs/data.md has all of it. New reference; NULL when
 * memory is out. */
json_t *train_data_record(const struct train_data *d, const struct dataset_info *info,
                          const struct train_spec *spec);

#endif
