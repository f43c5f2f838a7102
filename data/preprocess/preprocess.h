/* How rows of a data set become the inputs and targets of a model: missing values are filled,
 * categories become numbers, features and targets get mean 0 and deviation 1. preprocess_fit()
 * learns everything that depends on the data (medians, means, which categories there are) from the
 * training rows alone. preprocess_apply() encodes any rows of the same columns with it. record.h
 * stores what was learnt as JSON and reads it back, so that later rows are encoded exactly as the
 * training rows were.
 *
 * Tables. A missing number becomes the median of the column's training rows, and its indicator
 * becomes 1. The median is used because a few huge values do not move it; the indicator lets the
 * model correct for the fill. A category becomes one-hot inputs, or a code for an embedding;
 * data/dataset.h has their layout. A value that no training row has counts as "other". Numbers are
 * standardised per column. Indicators and one-hot inputs stay 0 and 1: the deviation of a rare
 * category is so small that dividing by it would make its inputs huge. Hashed texts stay as they
 * are (data/text_hash.h) for the same reason. The numbers of a date are numbers like any others.
 * With `bins`, numbers become piecewise-linear values instead (piecewise.h).
 *
 * Images. Each channel has one mean and one deviation, over all pixels of the training rows. Pixels
 * that are bytes stay bytes: their sums are exact, and the caller scales each batch when it gathers
 * it (backend_gather_bytes), with the same (raw - mean) / scale.
 *
 * Text. Tokens are not changed. */
#ifndef ASSAY_DATA_PREPROCESS_PREPROCESS_H
#define ASSAY_DATA_PREPROCESS_PREPROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset.h"
#include "base/status.h"

#define PREPROCESS_MAX_BINS 256

struct preprocess_opts {
    uint64_t split_seed;       /* tables, images: decides which rows are held out */
    bool stratify;             /* classes: each has its share of the held-out rows (split.h) */
    const unsigned char *part; /* [n_rows] what each row is for (holdout.h), instead of chance: then
                                * split_seed, stratify and n_validation are not used. Borrowed */
    const float *weights;  /* [n_rows], >= 0: how much each row counts; NULL: all alike. Borrowed */
    size_t n_validation;   /* rows (text: tokens) held out; at least 1, fewer than there are */
    size_t context;        /* text: tokens of a window, at least 1; else unused */
    bool standardize;      /* features; targets of regression always are, except shares */
    bool embed_categories; /* codes for an embedding, not one-hot inputs */
    size_t bins; /* tables: 2 to PREPROCESS_MAX_BINS: each number becomes so many piecewise-linear
                  * values (piecewise.h), and is not standardised; 0: none */
    bool targets_as_shares; /* targets are in [0, 1] and are not standardised; two classes become
                             * one target, 0 or 1 */
    target_transform target_transform; /* of a regression; AS_IS with targets_as_shares */
};

/* Which rows of a data set are training rows and which are held out; borrowed. */
struct preprocess_rows {
    const int32_t *train, *held; /* row numbers; NULL for text */
    size_t n_train, n_held;      /* text: windows */
};

/* What was learnt. A zeroed struct is empty. Owned; preprocess_done() frees it. */
struct preprocess {
    dataset_input input;
    bool standardize;
    size_t n_train, n_held; /* training rows and held-out rows; text: windows */
    size_t context;         /* text: tokens of a window; else 0 */
    size_t n_tokens;        /* text: tokens to train on; else 0 */
    size_t n_codes;         /* categorical columns of a table that become codes; else 0 */
    size_t n_scales;        /* tables: inputs before bins are made; images: channels; text: 0 */
    float *mean, *scale;    /* [n_scales]: x = (raw - mean) / scale */
    size_t bins;            /* tables: as in the options … */
    uint16_t *n_edges;      /* … [numeric inputs] edges of its bins; 0: it is not cut … */
    float *edges;           /* … [numeric inputs, bins + 1], ascending; else NULL */
    size_t n_targets;       /* targets of a regression; else 0 */
    target_transform target_transform;
    size_t n_quantiles; /* of each target; 0 unless the transformation is QUANTILE */
    double *quantiles;  /* [n_targets, n_quantiles], ascending */
    double *target_mean,
        *target_scale; /* [n_targets]: target = (transformed - mean) / scale. To the
                                         * targets' own unit and back: target_unit.h */
    float *fill; /* tables: [columns of the file] the value for a missing number; NULL when nothing
                  * is to be filled or encoded */
    /* Tables whose columns have names: [columns of the file] of a column of numbers that lacks none
     * the median of its training rows, which stands for a number that is missing in a row to
     * predict. NaN: of other columns, and in records from before 2026-11-28. NULL: of no column. */
    float *median;
    char *seen; /* tables: [all categories] 1 if the value is in a training row; NULL as `fill` */
};

void preprocess_done(struct preprocess *p);

/* Learn from the training rows of `set`, which dataset_load() or dataset_load_bytes() loaded for
 * `info`, or dataset_map_open() has mapped. All borrowed; nothing is changed.
 *   opts  split_seed is not used; n_validation only for text, whose last n_validation tokens are
 *         held out
 *   ret   owned by the caller, untouched on failure
 * A column that is constant in the training rows gets the scale 1; a column without a value there
 * gets the fill 0. Sums have the order of rows->train, so equal rows in equal order give equal
 * bits. AS_E_INVAL: a target outside [0, 1] with targets_as_shares. AS_E_TOO_LARGE: the rows have
 * more inputs than DATASET_MAX_VALUES. AS_E_NOMEM. */
AS_MUST_CHECK as_status preprocess_fit(const struct dataset *set, const struct dataset_info *info,
                                       const struct preprocess_rows *rows,
                                       const struct preprocess_opts *opts, struct preprocess *ret,
                                       struct as_err *err);

/* Encode the rows of `set` in place.
 *   p     from preprocess_fit() or preprocess_from_json(); borrowed
 *   info  the one that p was made for; its n_rows is not used. Borrowed
 *   set   as dataset_load() returns it, with the columns of `info` and any number of rows. Its x is
 *         replaced by the numeric inputs of a model [n_rows, n_features], and n_features by
 *         preprocess_inputs(). Bytes, tokens and labels stay; targets of a regression, if there
 *         are any, are standardised. Untouched on failure
 *   ret_codes  [n_rows, n_codes], each in [0, dataset_category_slots()), owned by the caller; NULL
 *         when n_codes is 0
 * AS_E_INVAL: the set has other columns than `info`. AS_E_TOO_LARGE, AS_E_NOMEM. */
AS_MUST_CHECK as_status preprocess_apply(const struct preprocess *p,
                                         const struct dataset_info *info, struct dataset *set,
                                         int32_t **ret_codes, struct as_err *err);

/* Put the medians of complete columns in the place of the missing numbers of `rows` rows as
 * dataset_load() gives them; other missing numbers stay. */
void preprocess_complete(const struct preprocess *p, const struct dataset_info *info, float *x,
                         size_t rows);

/* The numeric inputs of an encoded row: dataset_inputs(); if categories become codes, only
 * dataset_numeric_inputs(), which may be 0. With bins there are bins in the place of a number. */
size_t preprocess_inputs(const struct preprocess *p, const struct dataset_info *info);

#endif
