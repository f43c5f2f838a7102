/* The identity of a process. A pid alone is not enough, because the kernel reuses pids. */
#ifndef ASSAY_CLI_FILES_PROCESS_H
#define ASSAY_CLI_FILES_PROCESS_H

#include <sys/types.h>

/* The start time of a process in clock ticks since boot (/proc/PID/stat). Pid and start time
 * together identify a process until the next boot. 0 when there is no such process or it is a
 * zombie. */
unsigned long long process_start_ticks(pid_t pid);

#endif
