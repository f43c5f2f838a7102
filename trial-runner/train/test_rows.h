/* The test rows of a data set, at the end of a trial: what its model predicts of them.
 *
 * They are read when the model has been written, never before: nothing of the training, of early
 * stopping or of a report can depend on them. The model that predicts is the file itself, as it
 * would for `assay predict`. The files, beside the others of the trial (artifacts.h):
 *   test_predictions.npy  float32 [rows, outputs]: probabilities, or numbers in the target's own
 *                         unit
 *   test_targets.npy      int64 [rows] class indices, or float32 [rows, targets]
 *   test.json             {"rows": 360, "metrics": {"error": 0.02, …}}: the metrics that reports
 *                         name val_error, …, by the same definitions; weighted if the document
 *                         names weights
 * They are not in the reports, so no search can see them. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_TEST_ROWS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_TEST_ROWS_H

#include <stddef.h>

#include "base/status.h"
#include "trial-runner/train/job.h"

/* Predict with the model.safetensors of `folder`, and write the files there. Nothing if the job has
 * no test rows. The threads, of which there are at most `threads`, end before it returns.
 * AS_E_INVAL: the files are not those that were registered. AS_E_IO, AS_E_NOMEM, AS_E_TOO_LARGE. */
AS_MUST_CHECK as_status test_rows_write(const char *folder, const struct job *job, size_t threads,
                                        struct as_err *err);

#endif
