/* A stage of gradient boosting (train.boost, from 1 on): fit what the model of the stages before
 * misses, and leave the sum of both.
 *
 * J. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics
 * 29, 2001, algorithm 1. For numbers the stage learns the residuals. For classes it learns, with
 * one number for each class, the negative gradient of the log loss on the scores, which is what is
 * true minus the probabilities; the step along it is the one that lowers the loss of the training
 * rows most. Each step is multiplied by boost.rate. Stage 0 is a training like any other.
 *
 * The training itself is a job of its own below the checkpoint folder, so that checkpoints,
 * patience and errors are those of any training. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_BOOST_H
#define ASSAY_TRIAL_RUNNER_TRAIN_BOOST_H

#include "trial-runner/train/group.h"

/* Is the job a stage after the first? */
bool boost_is_stage(const struct job *job);

/* Run it to its end. Returns the exit code of the process, as group_run() does. */
int boost_run(const struct job *job, struct channel *channel, const struct group_opts *opts);

#endif
