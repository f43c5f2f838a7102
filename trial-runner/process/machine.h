/* What this machine has for trials: cores, memory, and a text that names it. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_MACHINE_H
#define ASSAY_TRIAL_RUNNER_PROCESS_MACHINE_H

#include <stdint.h>

#include "trial-runner/process/cores.h"

struct machine {
    int64_t cpus; /* cores that this process may use: its CPU mask, bounded by the quotas of its
                             control groups, rounded down; at least 1 */
    int64_t
        memory_bytes; /* memory that it may use: the machine's, bounded by its control groups; 0:
                             not known */
    char id[40];      /* the kernel's boot id, which all containers of a machine share; "": not
                             known */
    struct core_list cores; /* of its CPU mask, with their places */
};

/* Read /proc and /sys below `root`: "", or a folder in tests. What cannot be read bounds
 * nothing. */
void machine_read(const char *root, struct machine *ret);

#endif
