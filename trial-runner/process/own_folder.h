/* A folder of one trial inside the folder of its program, for programs that write to fixed names
 * where they run (trial.folder: own). Every entry of the program's folder is in it as a link, so
 * relative paths to what is there already are right, and what the program makes is the trial's.
 *
 *   PROJECT/.assay/.gitignore           "*"
 *   PROJECT/.assay/SWEEP/NUMBER.lock    which trial the folder was made for
 *   PROJECT/.assay/SWEEP/NUMBER/        with a link for each entry of PROJECT but .assay
 *
 * All ranks and attempts of a trial have the same folder, on each machine or, if the project is on
 * a file system that machines share, on all of them. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_OWN_FOLDER_H
#define ASSAY_TRIAL_RUNNER_PROCESS_OWN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

#define OWN_FOLDER_MAX 10000 /* entries of a project that get a link */

struct own_folder_trial {
    const char *sweep; /* its id */
    int64_t number;
    bool is_first;    /* its first attempt: what another trial of this name has left is removed */
    const char *mark; /* equal for all ranks of an attempt, another for every other attempt */
};

/* Make the folder, or find it, and add links to entries that are new in the project.
 *   project  an absolute path
 *   ret      its path; owned by the caller
 * Processes may call it for one trial at the same time. AS_E_IO: it cannot be made, with the reason
 * of the system, or a link is in its place; AS_E_TOO_LARGE: the project has more than
 * OWN_FOLDER_MAX entries; AS_E_NOMEM. */
AS_MUST_CHECK as_status own_folder_make(const char *project, const struct own_folder_trial *t,
                                        char **ret, struct as_err *err);

#endif
