/* Control groups (version 2) for processes of trials: what a group holds cannot leave it by
 * setsid(), by a double fork, or by another environment, and is killed as a whole. Groups are
 * made below the runner's own group, if that was delegated to its user; else there are none. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_CGROUP_H
#define ASSAY_TRIAL_RUNNER_PROCESS_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mem.h"
#include "base/status.h"

/* The runner's own group. One thread. */
struct cgroup_home;

/* Find the group of this process below the root of a file system ("", or a folder in tests), and
 * try to make groups in it. Asks for the controllers of memory, processes and processor; if they
 * need it, and no other process is in the group, this process moves to a group of its own below
 * it. Removes what runners that have ended left there, and kills what is still in it.
 * AS_E_UNSUPPORTED: there is no version 2, or the kernel is older than 5.14 (cgroup.kill), or
 * the group is not delegated: the message says which. AS_E_NOMEM. */
AS_MUST_CHECK as_status cgroup_home_open(const char *root, struct cgroup_home **ret,
                                         struct as_err *err);
void cgroup_home_close(struct cgroup_home *h);
AS_DEFINE_FREEP(struct cgroup_home, cgroup_home_close)

/* What the host lets groups below this one limit. */
struct cgroup_controllers {
    bool memory, processes, cpu;
};
struct cgroup_controllers cgroup_home_controllers(const struct cgroup_home *h);

/* 0: no limit. A limit whose controller is not there is left out. */
struct cgroup_limits {
    int64_t memory_bytes, processes, cpus;
};

/* Make an empty group. *ret is its path, owned by the caller. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status cgroup_make(struct cgroup_home *h, const struct cgroup_limits *limits,
                                    char **ret, struct as_err *err);

/* Open what a process writes "0" to in order to enter the group; -1: it cannot be opened. */
int cgroup_open_entry(const char *path);

/* SIGKILL to every process of the group and of groups below it; wait until they have ended, at most
 * `wait_ms`; remove the group. Returns how many processes there were. NULL is fine. */
size_t cgroup_end(const char *path, int64_t wait_ms);

#endif
