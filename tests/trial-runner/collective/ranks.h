/* Worlds for tests: each rank is a process of its own. */
#ifndef ASSAY_TESTS_TRIAL_RUNNER_COLLECTIVE_RANKS_H
#define ASSAY_TESTS_TRIAL_RUNNER_COLLECTIVE_RANKS_H

#include <stdbool.h>
#include <sys/types.h>

#include "tests/support/expect.h"
#include "trial-runner/collective/collective.h"

#define RANKS_MAX 16

struct ranks {
    int32_t n;
    struct listener *listeners[RANKS_MAX];
    struct endpoint peers[RANKS_MAX];
    pid_t pids[RANKS_MAX];
    uint8_t secret[WORLD_SECRET_BYTES];
    bool encrypt; /* false; a test may change it before ranks_start() */
};

/* Listens for n ranks, before any process is started. */
void ranks_init(struct ranks *r, int32_t n);
void ranks_done(struct ranks *r);

/* The world of `rank` at an epoch. Its peers are a view of r. */
struct world ranks_world(const struct ranks *r, int32_t rank, uint32_t epoch);

/* Starts a process for each rank; it runs `f` and ends with what that returns (0: well). */
typedef int rank_fn(const struct ranks *r, int32_t rank, void *arg);
void ranks_start(struct ranks *r, rank_fn *f, void *arg);

/* In a rank's process: the collective of epoch 1, or NULL with a message on standard error. Unless
 * opts say otherwise, no rank is lost because it gets no processor for a while. */
struct coll *ranks_open(const struct ranks *r, int32_t rank, const struct mesh_opts *opts);

/* Zeroed memory that the processes of a test share: what they tell each other. `bytes` are mapped
 * until the test's process ends. */
void *ranks_share(size_t bytes);
/* Waits until such a counter is at_least this, or PATIENCE_MS have passed. */
void ranks_await(const _Atomic int32_t *counter, int32_t at_least);

/* Waits for rank's process: its exit status, or 128 + the signal that ended it. */
int ranks_wait(struct ranks *r, int32_t rank);

/* Starts all, waits for all; true if all ended well. */
bool ranks_run(int32_t n, rank_fn *f, void *arg);

#endif
