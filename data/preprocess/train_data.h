/* The data of a training run: the rows of a data set, encoded for a model, and which of them are
 * held out.
 *
 * Tables and images: the rows are shuffled with the seed of the split, and the first ones, or the
 * first ones of each class, are held out (split.h); or a column says what each row is for
 * (holdout.h), and the rows of both sides stay in the order of the file. Text: the last tokens are
 * held out, as consecutive windows of `context` tokens; the targets of a window are the tokens one
 * place further. An epoch trains on windows too: n_train windows that do not overlap, from a
 * random phase on, in random order. */
#ifndef ASSAY_DATA_PREPROCESS_TRAIN_DATA_H
#define ASSAY_DATA_PREPROCESS_TRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/dataset_map.h"
#include "data/preprocess/preprocess.h"
#include "data/preprocess/row_parts.h"

struct train_data {
    /* Encoded with `fit` (preprocess_apply). Images may have bytes instead of x, not standardised
     * yet. targets are [n_rows, n_targets]; if two classes are shares, they are [n_rows, 1], 0 or 1
     * (n_outputs stays 2, and the labels stay). */
    struct dataset set;
    struct preprocess fit;          /* what was learnt from the training rows */
    size_t n_codes;                 /* as fit.n_codes */
    int32_t *codes;                 /* [n_rows, n_codes]; NULL when n_codes is 0 */
    size_t n_train, n_val;          /* rows of an epoch, and held out; text: windows */
    int32_t *train_rows, *val_rows; /* row numbers; text: val_rows are offsets of windows, and
                                     * train_rows is NULL: see train_data_order() */
    int32_t *held_rows;             /* val_rows as the files number them */
    int32_t *rows;                  /* holds them */
    /* With partitions `set` has the held-out rows alone, train_rows are those of the files in the
     * order of the partitions, and n_train counts what they give to an epoch. */
    struct row_parts parts;
    int32_t *own_rows;   /* with partitions: 0, 1, …: val_rows; else NULL */
    bool shares;         /* two classes are one target */
    size_t context;      /* text: tokens of a window; else 0 */
    size_t n_tokens;     /* text: tokens to train on, the first of set.tokens; else 0 */
    bool is_bytes;       /* set.bytes is there, or was until device_data_create() */
    size_t n_targets;    /* columns of set.targets; 0 without */
    float *val_targets;  /* [n_val, n_targets] in the target's own unit */
    int32_t *val_labels; /* [n_val]; NULL as set.labels */
    float *weights;      /* [n_rows], so that their mean over the training rows is 1; NULL: all 1 */
    float *val_weights;  /* [n_val] of these; NULL as them */
    float *held_weights; /* [n_val] as they were given; NULL as them */
    int64_t *class_rows; /* [n_outputs] training rows of each class; classification, else NULL */
};

/* Split, fit on the training rows, encode all rows.
 *   set   from dataset_load() or dataset_load_bytes() for `info`; taken, even on failure (it is
 *   left
 *         empty)
 *   info, opts  borrowed for the call
 * AS_E_INVAL with the reason: text too short for a window on either side; no row of a side has a
 * weight above 0; else as preprocess_fit(). */
AS_MUST_CHECK as_status train_data_prepare(struct dataset *set, const struct dataset_info *info,
                                           const struct preprocess_opts *opts,
                                           struct train_data *ret, struct as_err *err);
void train_data_done(struct train_data *d);

/* The same where training rows are dealt to partitions: learns the same from the same rows, and
 * holds the held-out rows alone.
 *   map     all rows; borrowed for the call
 *   opts    without `part` and `weights`
 *   parts   n and micro are set
 * ret->parts.base has no row in memory; it is the caller's to set. AS_E_INVAL: fewer training rows
 * than partitions; else as above. */
AS_MUST_CHECK as_status train_data_prepare_held(const struct dataset_map *map,
                                                const struct dataset_info *info,
                                                const struct preprocess_opts *opts,
                                                struct row_parts parts, struct train_data *ret,
                                                struct as_err *err);

/* Encode rows of dataset_map_rows() in place, as those of `d` are. ret_codes: as
 * preprocess_apply(). */
AS_MUST_CHECK as_status train_data_encode(const struct train_data *d,
                                          const struct dataset_info *info, struct dataset *rows,
                                          int32_t **ret_codes, struct as_err *err);

/* The places of an epoch's order: n_train, or more where partitions end before their last
 * micro-step does. */
size_t train_data_places(const struct train_data *d);

/* The rows of an epoch in their order, [train_data_places()]; for text, the offsets of windows in
 * set.tokens. The order depends on seed and epoch alone. With partitions: row_parts_order().
 *   resample  0: each training row once. Else a bootstrap sample: n_train rows (text: windows)
 *             drawn with replacement, the same ones for equal numbers in every epoch and under
 *             every seed. About 63 % of the rows are among them (B. Efron, "Bootstrap methods:
 *             another look at the jackknife", Annals of Statistics 7, 1979). Not with
 *             partitions. */
void train_data_order(const struct train_data *d, uint64_t seed, int64_t resample, int64_t epoch,
                      int32_t *ret);

#endif
