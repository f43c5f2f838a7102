/* The state of a trial with folds, for folds.c and fold_files.c. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_FOLDS_PRIV_H
#define ASSAY_TRIAL_RUNNER_TRAIN_FOLDS_PRIV_H

#include "data/formats/npy.h"
#include "trial-runner/train/folds.h"
#include "trial-runner/train/report_file.h"
#include "trial-runner/train/stack_rows.h"

#define FOLD_MAX_TEXT ((size_t)256 << 20) /* of a text that a fold leaves */

struct fold {
    char *dir;       /* owned, as all here */
    json_t *report;  /* the last line */
    size_t n, width; /* held-out rows; columns of predictions */
    char *model;     /* path */
    size_t rounds;   /* that the other folds chose (fold_rounds.h); 0: its own */
};

struct folds {
    const struct job *job;
    const struct control_member *member; /* the trial's own */
    size_t k;
    char *root;
    struct fold *fold; /* [k], and with `refit` one more: the training on all rows */
    bool refit;
    json_t *refit_train;       /* its document; owned */
    json_t *values;            /* of the last report that was written */
    struct stack_rows stacked; /* of a further layer */
    struct report_file report;
};

/* Open the array of this name that a fold left in its folder. AS_E_IO; AS_E_INVAL: it is no array;
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status fold_array_open(const char *folder, const char *name, struct npy **ret,
                                        struct as_err *err);

/* Write the trial's files (folds.h) from those that its trainings left, and remove theirs if no
 * checkpoint folder keeps them. Without an artifacts folder there is nothing to do. AS_E_IO;
 * AS_E_INVAL: a file of a fold is damaged; AS_E_NOMEM. */
AS_MUST_CHECK as_status folds_write_files(const struct folds *f, size_t threads,
                                          struct as_err *err);

#endif
