/* Telling one process from another that gets its pid later. */
#ifndef ASSAY_CLI_FILES_PROCESS_H
#define ASSAY_CLI_FILES_PROCESS_H

#include <sys/types.h>

/* When a process started, in clock ticks since boot (/proc/PID/stat). A pid and its start time name
 * one process until the machine boots again. 0 when there is no such process or it is a zombie. */
unsigned long long process_start_ticks(pid_t pid);

#endif
