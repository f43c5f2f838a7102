/* What the processes of sessions use of the machine. A trial's process leads a session of its own
 * (child.h), so that its session is what it started; and what called setsid() belongs to it as long
 * as the process that started it lives. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_SESSIONS_H
#define ASSAY_TRIAL_RUNNER_PROCESS_SESSIONS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct session_use {
    pid_t session;        /* given */
    int64_t cpu_ms;       /* of all its processes so far, and of those that they waited for */
    int64_t memory_bytes; /* resident now; what processes share counts for each of them */
    int64_t processes;    /* 0: it has ended */
};

/* Fill v[0..n). Reads each process in /proc below `root` ("", or a folder in tests) once: some 15
 * microseconds for each process of the machine. A process that ends meanwhile is not counted. */
void sessions_read(const char *root, struct session_use *v, size_t n);

#endif
