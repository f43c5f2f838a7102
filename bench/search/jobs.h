/* Work that several processes share. */
#ifndef ASSAY_BENCH_SEARCH_JOBS_H
#define ASSAY_BENCH_SEARCH_JOBS_H

#include <stddef.h>

#include "base/status.h"

#define JOBS_MAX 64

/* Do share `job` of the work: 0 <= job < jobs. */
typedef as_status (*jobs_share)(void *ctx, size_t job, struct as_err *err);

/* Do all shares, of 1 to JOBS_MAX jobs; one job runs in this process. The others are processes:
 * they share only files, and print their errors on stderr after the program's name.
 * AS_E_IO: a process did not start or failed; the errors of `share` with one job. */
AS_MUST_CHECK as_status jobs_run(const char *program, size_t jobs, jobs_share share, void *ctx,
                                 struct as_err *err);

#endif
