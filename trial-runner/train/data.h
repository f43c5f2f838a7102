/* The data of a run: which rows are held out, and features and targets brought to mean 0, deviation
 * 1 by the training rows alone. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_DATA_H
#define ASSAY_TRIAL_RUNNER_TRAIN_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/formats/dataset.h"
#include "base/spec/train_spec.h"
#include "base/status.h"

struct train_data {
    struct dataset set; /* x and targets are standardised in place */
    size_t n_train, n_val;
    int32_t *train_rows, *val_rows;   /* row numbers; both views of `rows` */
    int32_t *rows;                    /* [n_rows], shuffled under validation.seed: held out first */
    float *mean, *scale;              /* [n_features]: x = (raw - mean) / scale */
    double target_mean, target_scale; /* regression; else 0 and 1 */
    float *val_targets;               /* [n_val] in the target's own unit; regression only */
};

/* Split and standardise: the features when spec->standardize, the targets of regression always, so
 * that learning rates mean the same whatever the target's unit. `set` is taken, even on failure (it
 * is left empty). A column that is constant in the training rows gets the scale 1. AS_E_NOMEM. */
AS_MUST_CHECK as_status train_data_prepare(struct dataset *set, const struct train_spec *spec,
                                           struct train_data *ret, struct as_err *err);
void train_data_done(struct train_data *d);

#endif
