/* The parts of train_data_prepare(). Each leaves a half-filled `d` behind on failure: the caller
 * frees it. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_DATA_PRIV_H
#define ASSAY_TRIAL_RUNNER_TRAIN_DATA_PRIV_H

#include "data/preprocess/preprocess.h"

/* Columns with missing values or categories: replace d->set.x (NaN and category numbers in it) by
 * the inputs of the model, and fill codes, fill and seen. `rows` and `n_train` are there. */
AS_MUST_CHECK as_status data_table_encode(struct train_data *d, const struct dataset_info *info,
                                          bool embed, struct as_err *err);

/* Is there anything to encode? */
bool data_table_is_plain(const struct dataset_info *info);

/* Sums of a channel's bytes. */
struct data_sums {
    uint64_t sum, squares;
};

/* Add n bytes, the i-th to sums[i % channels]; channels >= 1. AS_E_NOMEM. */
AS_MUST_CHECK as_status data_sum_bytes(const unsigned char *bytes, size_t n, size_t channels,
                                       struct data_sums *sums, struct as_err *err);

/* Windows and offsets of text: n_train, n_val, rows. */
AS_MUST_CHECK as_status data_text_split(struct train_data *d, const struct train_spec *spec,
                                        struct as_err *err);

#endif
