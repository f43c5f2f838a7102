/* The job of a batch system or a cluster that a runner belongs to, as its environment says it. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_BATCH_JOB_H
#define ASSAY_TRIAL_RUNNER_PROCESS_BATCH_JOB_H

#include <stdint.h>

#define BATCH_JOB_NAME_SIZE 200

struct batch_job {
    char name[BATCH_JOB_NAME_SIZE]; /* "slurm/1234_7", "kubernetes/NAMESPACE/POD"; "": no job */
    int64_t cpus;                   /* that the job was given on this machine; 0: not said */
    int64_t memory_bytes;           /* the same of memory */
    int64_t ends_s;                 /* when its time ends, Unix seconds; 0: not said */
};

/* get: as getenv(); borrowed. What cannot be read is not said. Pure. */
void batch_job_read(const char *(*get)(const char *name), struct batch_job *ret);

/* The same of this process's environment. */
void batch_job_of_this_process(struct batch_job *ret);

#endif
