/* Columns of a table that are no inputs of the model: they say which rows are held out, or how much
 * a row counts. What they say is read from the file; then they leave the data. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_ROW_ROLES_H
#define ASSAY_TRIAL_RUNNER_TRAIN_ROW_ROLES_H

#include "data/preprocess/train_data.h"
#include "trial-runner/train/job.h"

struct row_roles {
    struct dataset_info info; /* the record of the columns that are inputs; owned */
    unsigned char *part;      /* [n_rows], holdout.h; NULL: chance decides; owned */
    float *weights;           /* [n_rows]; NULL: all alike; owned */
};

void row_roles_done(struct row_roles *r); /* a zeroed one is fine */

/* Read the roles of the rows for the document `spec`, and take the columns that say them out of
 * `set`, which dataset_load_bytes() loaded for the job.
 *   ret  owned by the caller; untouched on failure
 * AS_E_INVAL naming column, row, what was found and what was expected; else as
 * dataset_read_cells(). */
AS_MUST_CHECK as_status row_roles_read(const struct job *job, const struct train_spec *spec,
                                       struct dataset *set, struct row_roles *ret,
                                       struct as_err *err);

#endif
