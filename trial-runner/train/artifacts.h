/* The files that a finished member writes to its folder. Rows are in the order of the split
 * (data/preprocess/train_data.h).
 *   predictions.npy     float32 [n_val, outputs]: probabilities, or numbers in the target's own
 *                       unit; not for text
 *   targets.npy         int64 [n_val] class indices, or float32 [n_val, targets]; not for text
 *   weights.npy         float32 [n_val]: what these rows weigh, as the data set has it; with
 *                       train.weights
 *   buckets.json        with train.buckets: buckets_file.h
 *   model.safetensors   the plan's tensors by name (the average of weights where there is one), the
 *                       running statistics of batch normalisation; input.mean, input.scale and, for
 *                       regression, target.mean, target.scale. Its `__metadata__` has train,
 *                       dataset (without columns that are no inputs), preprocessing
 *                       (data/preprocess/record.h) and fingerprint. A model of trees has one tensor
 *                       beside target.mean and target.scale: `trees`, U8, XGBoost's UBJSON
 *   preprocessing.json  the same preprocessing record alone, for people to read
 *   importance.json     of trees: model/trees/tree_model.h
 *   test_predictions.npy, …, test.json  of the test rows, if there are any: test_rows.h */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_ARTIFACTS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_ARTIFACTS_H

#include <jansson.h>

#include "trial-runner/train/lockstep.h"

#define FOLD_ROWS_NAME "rows.npy" /* int32 [n_val], of one fold (folds.h) alone: rows of the file */

/* Write the files of the member in a slot. Without a folder it writes nothing.
 *   mean  the predictions of a member with snapshots (snapshots.h), whose model.safetensors is a
 *         model file with a member for each of them (model/file/model_file.h); else NULL
 * AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status artifacts_write(struct lockstep *ls, struct backend *lane, size_t slot,
                                        const float *mean, struct as_err *err);

/* ---- the parts that a model of trees has too (tree_trial.h); s->be and s->device are not used
 * ---- */

/* predictions.npy of values [n_val, evaluate_columns(s)], targets.npy, and weights.npy and
 * buckets.json where the document asks for them. */
AS_MUST_CHECK as_status artifacts_write_held(const char *folder, const struct lockstep_setup *s,
                                             const struct member *m, const float *values,
                                             struct as_err *err);
AS_MUST_CHECK as_status artifacts_write_preprocessing(const char *folder,
                                                      const struct lockstep_setup *s,
                                                      struct as_err *err);
/* The metadata of model.safetensors. A new reference; NULL when memory is out. */
json_t *artifacts_metadata(const struct lockstep_setup *s, const struct member *m);

/* What the member's last report says of the held-out rows, as far as it is finite. A new reference;
 * NULL when memory is out. */
json_t *artifacts_last_metrics(const struct member *m);

#endif
