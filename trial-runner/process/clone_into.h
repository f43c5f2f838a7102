/* Processes that begin in a control group. A process that enters one later, by a write to
 * cgroup.procs, waits for an RCU grace period of the kernel, 10 to 20 ms; one that begins there
 * does not (CLONE_INTO_CGROUP, clone(2), Linux 5.7). */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_CLONE_INTO_H
#define ASSAY_TRIAL_RUNNER_PROCESS_CLONE_INTO_H

#include <sys/types.h>

/* What the process does: it has the caller's memory until exec, as after vfork(), and never
 * returns. */
typedef void clone_fn(const void *arg);

/* Make a process in the group whose folder `group` is open, on a stack of its own of 64 KiB, and
 * wait until it runs a program or has ended. Returns its id, or -1 with errno: ENOSYS if this build
 * or kernel has no such call (a sandbox may refuse it too), EBADF for -1, others as clone(2). */
pid_t clone_into(int group, clone_fn *run, const void *arg);

#endif
