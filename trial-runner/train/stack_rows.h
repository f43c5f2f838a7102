/* What a training of a further layer (train.stack) sees behind the columns of its data set: for
 * each row the predictions that the trials of the layer before made while the row was held out. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_STACK_ROWS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_STACK_ROWS_H

#include <stdbool.h>

#include "data/dataset.h"
#include "model/file/model_file.h"
#include "trial-runner/train/job.h"
#include "trial-runner/train/row_roles.h"

struct stack_rows {
    const struct dataset_info *base; /* the record without them; a view of the job */
    struct dataset_info info;        /* the record with them */
    size_t n;                        /* trials of the layer before */
    float *values;                   /* [rows, n * model_stacked_width(base)] */
    struct model_source *sources;    /* [n] their models; views of the job */
};

void stack_rows_done(struct stack_rows *s);

/* Is the job of a further layer? So its document says. */
bool stack_rows_wanted(const struct job *job);

/* Read the predictions of job.stack.
 *   ret  owned by the caller: stack_rows_done()
 * AS_E_INVAL: the job has other trials than its document; predictions of other rows or outputs,
 * which is so where a trial held out only a part of the rows; one that is not finite.
 * AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status stack_rows_read(const struct job *job, struct stack_rows *ret,
                                        struct as_err *err);

/* Put them behind the rows that were loaded, and into the record of what the model sees. */
AS_MUST_CHECK as_status stack_rows_put(const struct stack_rows *s, struct row_roles *roles,
                                       struct dataset *set, struct as_err *err);

#endif
