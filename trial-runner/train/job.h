/* The job of one trainer process: JOB.json in its single or its group form. In the single form the
 * seed and the paths of outputs come from the environment. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_JOB_H
#define ASSAY_TRIAL_RUNNER_TRAIN_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "data/dataset.h"
#include "model/document/train_spec.h"
#include "model/plan/net.h"
#include "trial-runner/protocol/control.h"
#include "base/status.h"

struct stage_targets;
struct stack_rows;

struct job {
    struct dataset_info info;
    char *table, *features, *targets, *decoded; /* paths of the data; owned, NULL when not used */
    char *test, *test_features,
        *test_targets; /* paths of its test rows; owned, NULL when not used */
    int held[3];       /* open files of job_hold_test(); 0: none */
    size_t test_rows;  /* 0: it has none */
    const char
        *digest; /* of the data set without its test rows, "" when its record has none; a view
                         * of doc */
    const char *metric; /* the sweep's metric, or NULL; a view of doc */
    bool maximize;      /* the sweep wants more of it */
    const char *listen; /* this process is a rank of a large trial and listens on this numeric
                         * address; NULL: it trains alone; a view of doc */
    /* For a stage of boosting after the first (boost.h), else NULL: the file of the model before
     * it, a view of doc; and what its own training learns. */
    const char *base;
    const struct stage_targets *boost;
    /* For a trial of a further layer (stack_rows.h), else NULL: its list of {sweep, trial, model,
     * predictions} with the paths of files, a view of doc; and for its trainings what they see. */
    const json_t *stack;
    const struct stack_rows *stacked;
    size_t fold;      /* of a document with folds (folds.h), from 0; as many as it has: all rows */
    size_t rounds;    /* of a fold of boosted trees, for which others chose them (fold_rounds.h); 0:
                       * as the document says */
    bool group;       /* the group form */
    size_t slots;     /* members at once: 1 in the single form */
    size_t n_members; /* members in JOB.json; at most slots */
    struct control_member *members; /* views of doc. In the single form there is one, with id "" and
                                     * views of the environment: ASSAY_SEED, _REPORT, … */
    json_t *doc;
};

/* Read and check the job. The members' train documents are checked later (member.h). AS_E_INVAL
 * with the pointer into the document; AS_E_NOT_FOUND, AS_E_IO, AS_E_NOMEM, AS_E_TOO_LARGE. ret is
 * owned by the caller: job_done(). */
AS_MUST_CHECK as_status job_read(const char *path, struct job *ret, struct as_err *err);
void job_done(struct job *job);

/* Keep the test rows of a group readable: they are read when a member ends, and stand in the folder
 * of the first member, which may have ended and gone by then. Their paths become those of open
 * files. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status job_hold_test(struct job *job, struct as_err *err);

struct dataset_paths job_paths(const struct job *job); /* views of job */

#endif
