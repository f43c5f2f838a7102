/* What a stage of boosting learns in place of the data set's targets (boost.h). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_STAGE_TARGETS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_STAGE_TARGETS_H

#include "trial-runner/train/row_roles.h"

/* Borrowed. */
struct stage_targets {
    const struct dataset_info *info; /* the data set as its files are */
    const float *values;             /* [n_rows, outputs] */
    const unsigned char *part;       /* [n_rows] what each row is for (holdout.h) */
};

/* Put them into the data set that was loaded from the files: `set` has numbers to predict and no
 * classes, and `roles` a record of that and the parts of the rows. AS_E_NOMEM. */
AS_MUST_CHECK as_status stage_targets_put(const struct stage_targets *t, struct row_roles *roles,
                                          struct dataset *set, struct as_err *err);

#endif
