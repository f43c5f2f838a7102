/* How rows of a data set become the inputs and targets of a model: missing values filled,
 * categories made numbers, features and targets brought to mean 0, deviation 1. preprocess_fit()
 * learns everything that depends on the data (medians, means, which categories there are) from the
 * training rows alone; preprocess_apply() encodes any rows of the same columns by it. record.h
 * stores what was learnt as JSON and reads it back, so that rows can be encoded later as the
 * training rows were, bit for bit.
 *
 * Tables. A missing number becomes the median of the column's training rows, and its indicator 1:
 * the median, because a few huge values do not move it, and the indicator lets the model correct
 * what the median hides. A category becomes one-hot inputs, or a code for an embedding;
 * data/dataset.h has their layout. A value that no training row has is one of the others. Numbers
 * are standardised per column; indicators and one-hot inputs stay 0 and 1, because a rare
 * category's deviation is so small that dividing by it would make them huge.
 *
 * Images. One mean and one deviation per channel, over all pixels of the training rows. Pixels that
 * are bytes stay bytes: their sums are exact, and the caller scales each batch when it gathers it
 * (backend_gather_bytes), by the same (raw - mean) / scale.
 *
 * Text. Tokens stay as they are. */
#ifndef ASSAY_DATA_PREPROCESS_PREPROCESS_H
#define ASSAY_DATA_PREPROCESS_PREPROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "base/status.h"

struct preprocess_opts {
    uint64_t split_seed;    /* tables, images: decides which rows are held out */
    size_t n_validation;    /* rows (text: tokens) held out; at least 1, fewer than there are */
    size_t context;         /* text: tokens of a window, at least 1; else unused */
    bool standardize;       /* the features; targets of regression are, but for shares */
    bool embed_categories;  /* codes for an embedding, not one-hot inputs */
    bool targets_as_shares; /* targets are within [0, 1] and stay as they are; two classes become
                             * one target, 0 or 1 */
};

/* Which rows of a data set are for training and which are held out; borrowed. */
struct preprocess_rows {
    const int32_t *train, *held; /* row numbers; NULL for text */
    size_t n_train, n_held;      /* text: windows */
};

/* What was learnt; a zeroed one is empty. Owned; preprocess_done() frees it. */
struct preprocess {
    dataset_input input;
    bool standardize;
    size_t n_train, n_held; /* rows, or windows, that it was learnt from and that were held out */
    size_t context;         /* text: tokens of a window; else 0 */
    size_t n_tokens;        /* text: tokens to train on; else 0 */
    size_t n_codes;         /* categorical columns of a table that become codes; else 0 */
    size_t n_scales;        /* tables: inputs that are numbers; images: channels; text: 0 */
    float *mean, *scale;    /* [n_scales]: x = (raw - mean) / scale */
    size_t n_targets;       /* targets of a regression; else 0 */
    double *target_mean, *target_scale; /* [n_targets]: target = (raw - mean) / scale */
    float *fill; /* tables: [columns of the file] what a missing number becomes; NULL
                  * when nothing is to be filled or encoded */
    char *seen;  /* tables: [all categories] is the value in a training row; NULL as
                  * `fill` */
};

void preprocess_done(struct preprocess *p);

/* Learn from the training rows of `set`, which is as dataset_load() or dataset_load_bytes() gave it
 * for `info`. All borrowed; nothing is changed.
 *   opts  split_seed and n_validation are not used but for text: its last n_validation tokens are
 *         held out
 *   ret   owned by the caller, untouched on failure
 * A column that is constant in the training rows gets the scale 1, one without a value the fill 0.
 * Sums are taken in the order of rows->train, so equal rows in equal order give equal bits.
 * AS_E_INVAL: a target outside [0, 1] with targets_as_shares. AS_E_TOO_LARGE: the rows have more
 * inputs than DATASET_MAX_VALUES. AS_E_NOMEM. */
AS_MUST_CHECK as_status preprocess_fit(const struct dataset *set, const struct dataset_info *info,
                                       const struct preprocess_rows *rows,
                                       const struct preprocess_opts *opts, struct preprocess *ret,
                                       struct as_err *err);

/* Encode the rows of `set` in place.
 *   p     of preprocess_fit() or preprocess_from_json(); borrowed
 *   info  the one that p was made for; its n_rows is not used. Borrowed
 *   set   as dataset_load() gives it, any number of rows, of the columns of `info`. Its x becomes
 *         what is a number in a model's input, [n_rows, n_features], and n_features is
 *         preprocess_inputs() then; bytes, tokens and labels stay; targets of a regression, if
 *         there are any, are standardised. Untouched on failure
 *   ret_codes  [n_rows, n_codes], each in [0, dataset_category_slots()), owned by the caller; NULL
 *         when n_codes is 0
 * AS_E_INVAL: the set has other columns than `info`. AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status preprocess_apply(const struct preprocess *p,
                                         const struct dataset_info *info, struct dataset *set,
                                         int32_t **ret_codes, struct as_err *err);

/* Inputs of an encoded row that are numbers, not codes: dataset_inputs(), or
 * dataset_numeric_inputs() where categories become codes (then it may be 0). */
size_t preprocess_inputs(const struct preprocess *p, const struct dataset_info *info);

#endif
