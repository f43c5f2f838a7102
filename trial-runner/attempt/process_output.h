/* The output of processes, for the main thread: read from pipes, kept in the attempt's log, and
 * passed on to the collector. */
#ifndef ASSAY_TRIAL_RUNNER_ATTEMPT_PROCESS_OUTPUT_H
#define ASSAY_TRIAL_RUNNER_ATTEMPT_PROCESS_OUTPUT_H

#include "trial-runner/attempt/attempt.h"

#define OUTPUT_BYTES (64 << 10)
#define OUTPUT_ROUNDS 16 /* most reads of one pipe in a round, to be fair to other trials */

/* Read from a pipe, at most `most` bytes. Returns the number of bytes; 0 if there are none now, or
 * at the end of the pipe, which is then closed (*fd is -1). */
size_t output_read_pipe(int *fd, char *buf, size_t most);

/* May the pipe of the process be read now? If not, the collector wakes main when there is room. */
bool output_has_room(const struct attempt *t);

/* Read what the process of an attempt printed; buf has OUTPUT_BYTES. `rest`: the process has ended,
 * and what is left in the pipe has room in any case. */
void output_read(struct attempt *t, char *buf, bool rest);

/* For the delivery thread of an attempt with a collector: wait until all measurements are in the
 * collector's file that the program had printed, or written to its files, when this was called. */
void output_catch_up(struct attempt *a);

#endif
