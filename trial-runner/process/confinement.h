/* What stands around the processes of trials on this runner: no new privileges, limits, and a
 * control group where the host allows one. The same holds for programs of users and for the
 * built-in trainer. The engine of a container keeps its privileges, which it needs to make the
 * container; the program in the container gains none. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_CONFINEMENT_H
#define ASSAY_TRIAL_RUNNER_PROCESS_CONFINEMENT_H

#include "base/str.h"
#include "trial-runner/process/cgroup.h"

#define CONFINEMENT_PROCESSES 16384 /* processes and threads of a trial, unless an option says */

/* 0: what the runner has. */
struct confinement_limits {
    int64_t files, file_bytes, memory_bytes, processes;
    bool keeps_privileges;
};

struct confinement {
    struct confinement_limits limits;
    struct cgroup_home *cgroups; /* owned; NULL: the host allows none */
    char why_none[240];          /* then; the reason */
    char *tmp; /* owned; a folder for the folders of programs for temporary files (TMPDIR) */
};

/* ret must be zeroed; the caller calls confinement_done() also on failure.
 *   work  the runner's work folder. Temporary files that an earlier runner left there are removed.
 *         If the runner has a TMPDIR, or sockets would have too long a path below `work`, programs
 *         have no folder of their own
 * AS_E_NOMEM, AS_E_IO. */
AS_MUST_CHECK as_status confinement_open(const struct confinement_limits *limits, const char *work,
                                         struct confinement *ret, struct as_err *err);
void confinement_done(struct confinement *c);

/* Make a folder for the temporary files of one program. *ret is owned by the caller; NULL: there is
 * none. Any thread. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status confinement_tmp(const struct confinement *c, char **ret,
                                        struct as_err *err);

/* Add the words for what is in force for every trial of this runner, with blanks between them, as
 * the API has them (RunnerWalls). */
void confinement_words(const struct confinement *c, struct str *ret);

/* In the child, between fork and exec, as the last step: async-signal-safe calls only.
 *   entry      of the control group that it has to enter (cgroup_open_entry); -1: none
 *   is_engine  it keeps its privileges
 * Returns false with errno if it cannot be confined so. */
bool confinement_enter(const struct confinement *c, int entry, bool is_engine);

#endif
