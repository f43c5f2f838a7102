/* A trial with `validation.folds`: k trainings, one after another, each of which holds out another
 * part of the rows. Together they predict each row once, by a model that has not seen it.
 *
 * Files of the trial:
 *   predictions.npy, targets.npy  of all rows, in the order of the file: out-of-fold
 *   weights.npy, buckets.json     of them, where the document asks for them
 *   model.safetensors             the k models with weights 1/k, as a model file (format
 *                                 assay-model, version 1): the tensors of member I have the prefix
 *                                 members/I/
 *   preprocessing.json            a list of k records
 *   importance.json               of trees: of all k models (importance_of_mean())
 * With `validation.refit` one more training, on all rows (refit.h), is the model in their place:
 * the last three files are of it alone. What is measured stays that of the folds.
 *
 * Reports: one after each fold, step = folds that are done. A value is the mean over these folds,
 * weighted by their rows; NAME_std, of a metric val_*, is the deviation over them. The last report
 * has all folds.
 *
 * The trainings' own files are in the folder `folds` of the checkpoint folder (without one, of the
 * artifacts folder, and they are removed at the end), so that a resumed trial goes on with the fold
 * at which it stopped. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_FOLDS_H
#define ASSAY_TRIAL_RUNNER_TRAIN_FOLDS_H

#include "trial-runner/train/group.h"

/* The number of folds of a job in the single form; 0: it has none. */
size_t folds_of(const struct job *job);

/* Run the job to its end. Returns the exit code of the process; errors go to stderr. */
int folds_run(const struct job *job, struct channel *channel, const struct group_opts *opts);

#endif
