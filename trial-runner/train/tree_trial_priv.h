/* The state of a model of trees in training, for tree_trial.c, tree_checkpoint.c and
 * tree_files.c. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_TREE_TRIAL_PRIV_H
#define ASSAY_TRIAL_RUNNER_TRAIN_TREE_TRIAL_PRIV_H

#include "model/trees/tree_model.h"
#include "model/trees/tree_train.h"
#include "trial-runner/train/tree_trial.h"

/* What a checkpoint holds beside the trees. */
struct position {
    size_t rounds;
    size_t best_rounds; /* after which `best` was; 0: none yet */
    double best;        /* val_loss, or what `patience` judges by */
};

struct tree_trial {
    const struct lockstep_setup *setup;
    struct member *m;
    struct tree_train *train;
    size_t threads;
    int32_t *sample;   /* [n_train]: a bootstrap sample of the training rows; NULL: all */
    float *values;     /* predictions of the rows of either part */
    float *weights[2]; /* by tree_part, NULL: all 1; of the rows of which losses are … */
    int32_t *shown;    /* … of neighbours a part of the training rows; NULL: all */
    size_t n_shown;
    struct position now, boundary; /* boundary: the last one that can be restored */
};

/* Go on from the member's checkpoint, if there is one, and tell its last report again. AS_E_INVAL:
 * it is of another job, or damaged; AS_E_IO; AS_E_NOMEM. */
AS_MUST_CHECK as_status tree_trial_resume(struct tree_trial *t, struct as_err *err);

/* Write the rounds of the last boundary. A full disk is a warning: the previous checkpoint is still
 * there. */
void tree_trial_save(struct tree_trial *t);

/* Write the artifacts of `model`, whose document is `trees`, of len bytes. t->values are its
 * predictions of the held-out rows, in the targets' own unit. AS_E_IO; AS_E_NOMEM. */
AS_MUST_CHECK as_status tree_trial_write_artifacts(const struct tree_trial *t,
                                                   const struct tree_model *model,
                                                   const char *trees, size_t len,
                                                   struct as_err *err);

#endif
