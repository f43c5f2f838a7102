/* Cores for trials that ask for some: which ones, so that a trial's threads stay near each other
 * and two trials never share one. */
#ifndef ASSAY_TRIAL_RUNNER_PROCESS_CORES_H
#define ASSAY_TRIAL_RUNNER_PROCESS_CORES_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORES_MAX CPU_SETSIZE

/* A logical processor of the system. */
struct core {
    int cpu;  /* its number */
    int node; /* of memory (NUMA) */
    int body; /* the same for hyperthreads of one core, in this list */
};

struct core_list {
    struct core v[CORES_MAX];
    size_t n;
};

/* The cores that this process may use, with their places below `root`/sys; what is not known of a
 * place is 0, and every core is a body of its own. */
void cores_read(const char *root, struct core_list *ret);

/* Choose `want` cores of the list that are not in `busy`: on one node if one has enough, the
 * fullest of those; hyperthreads of a core together, and whole cores first. False: there are too
 * few. Pure. */
bool cores_choose(const struct core_list *l, const cpu_set_t *busy, int64_t want, cpu_set_t *ret);

/* Cores that are held against other trials of the machine, also those of other runners. Zeroed:
 * none. */
struct core_hold {
    cpu_set_t set;
    int *locks; /* owned; sockets whose names are the cores' */
    size_t n;
};

/* Choose and hold `want` cores. False: too few are free, or memory or descriptors are out; then
 * nothing is held, and the trial runs on any core. */
bool core_hold_take(struct core_hold *h, const struct core_list *l, int64_t want);
void core_hold_done(struct core_hold *h);

#endif
