/* Whole trainings of a gang, and what they are compared by. */
#ifndef ASSAY_TESTS_TRIAL_RUNNER_DISTRIBUTED_GANG_RUNS_H
#define ASSAY_TESTS_TRIAL_RUNNER_DISTRIBUTED_GANG_RUNS_H

#include <stdint.h>

#include "tests/support/gang.h"

/* Trains the digits with `n` ranks to the end; every rank must end well. */
void gang_train(struct rig *rig, const char *tag, const char *train, size_t n);
void gang_train_with(struct rig *rig, const char *tag, const char *train, size_t n,
                     const struct gang_opts *opts);
/* The same, but with `deaths` of random ranks, each of which is replaced; the next one dies when
 * all have met again. `seed`: of who dies, and when.
 * Returns the place of a rank that ended well. */
size_t gang_train_dying(struct rig *rig, const char *tag, const char *train, size_t n,
                        size_t deaths, uint64_t seed);
size_t gang_train_dying_with(struct rig *rig, const char *tag, const char *train, size_t n,
                             size_t deaths, uint64_t seed, const struct gang_opts *opts);
/* Begins with n ranks; every 10 ms or so another one joins, until there are `most`. Nobody dies. */
void gang_train_growing(struct rig *rig, const char *tag, const char *train, size_t n, size_t most);
/* Trains until rank 0 has reported `epochs` epochs, stops all, and goes on with `then` ranks to the
 * end. */
void gang_train_halted(struct rig *rig, const char *tag, const char *train, size_t n, size_t epochs,
                       size_t then);

/* The same, but all ranks are killed: what goes on is a checkpoint that was written on the way. */
void gang_train_killed(struct rig *rig, const char *tag, const char *train, size_t n, size_t epochs,
                       size_t then);
/* The same, but the last rank alone is killed, and the others cannot go on without it. */
void gang_train_orphaned(struct rig *rig, const char *tag, const char *train, size_t n,
                         size_t epochs, size_t then);
/* Makes place for another run of the same gang with its checkpoint: renames its ranks' folders. */
void gang_move_aside(const struct rig *rig, const char *tag, size_t n);

/* A metric of the last report of rank 0, or of another place. */
double gang_last(const struct rig *rig, const char *tag, const char *metric);
double gang_last_of(const struct rig *rig, const char *tag, size_t place, const char *metric);
/* Bytes that rank `place` has sent, and the number of exchanges, as it prints them. */
void gang_traffic(const struct rig *rig, const char *tag, size_t place, uint64_t *ret_bytes,
                  uint64_t *ret_exchanges);
/* Fails unless both have the same numbers in their models, to the bit. The documents may differ. */
void gang_same(const struct rig *rig, const char *a, const char *b);
bool gang_is_same(const struct rig *rig, const char *a, const char *b);
/* Prints what the ranks printed. */
void gang_show(const struct rig *rig, const struct gang *g);

#endif
