/* Which processes have a file open: found in /proc, so only processes of this user are seen. */
#ifndef ASSAY_TRIAL_RUNNER_COLLECT_FILE_OWNER_H
#define ASSAY_TRIAL_RUNNER_COLLECT_FILE_OWNER_H

#include <stdbool.h>

typedef enum file_owner {
    FILE_OWNER_NONE,  /* no process has it open, or none that can be seen */
    FILE_OWNER_OURS,  /* a process with our marker has it open */
    FILE_OWNER_OTHER, /* only other processes have it open for writing */
} file_owner;

/* Who has the file `path` below the folder `dir` open for writing? A process is ours if its
 * environment has ASSAY_REPORT=marker, which its children inherit. Looks at every process: about a
 * millisecond for a hundred. */
file_owner file_owner_find(int dir, const char *path, const char *marker);

/* Mark an open file as one that is read for a trial, until fd is closed: a lock behind every byte
 * that the file can have, which no program meets. */
void file_owner_mark(int fd);
/* Has somebody else marked it so? */
bool file_owner_is_shared(int fd);

#endif
