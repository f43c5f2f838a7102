/* What one run of the trainer is asked to do: JOB.json, and where its outputs go (environment). */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_JOB_H
#define ASSAY_TRIAL_RUNNER_TRAIN_JOB_H

#include <stdint.h>

#include "base/formats/dataset.h"
#include "base/hash.h"
#include "base/spec/train_spec.h"
#include "base/status.h"

struct job {
    struct train_spec spec;
    struct dataset_info info;
    char *table, *features, *targets, *decoded; /* paths of the data; owned, NULL when not used */
    char *train_text;                           /* trial.train as canonical JSON; owned */
    uint64_t seed;                              /* ASSAY_SEED, 0 when it is not set */
    const char *report;      /* ASSAY_REPORT, ASSAY_CHECKPOINTS, ASSAY_ARTIFACTS: views of the */
    const char *checkpoints; /* environment; NULL when not set: nothing is written there */
    const char *artifacts;
    /* SHA-256 of the train document, the data set and the seed: whose checkpoint this is. Paths are
     * not part of it, because an attempt may go on on another machine. */
    char fingerprint[SHA256_HEX_SIZE];
};

/* Read and check the job. AS_E_INVAL with the pointer into the document; AS_E_NOT_FOUND, AS_E_IO,
 * AS_E_NOMEM, AS_E_TOO_LARGE. ret is owned by the caller: job_done(). */
AS_MUST_CHECK as_status job_read(const char *path, struct job *ret, struct as_err *err);
void job_done(struct job *job);

struct dataset_paths job_paths(const struct job *job); /* views of job */

#endif
