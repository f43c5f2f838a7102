/* Rows that many trials left behind, inserted in bulk. */
#ifndef ASSAY_BENCH_SCHEDULER_FILL_H
#define ASSAY_BENCH_SCHEDULER_FILL_H

#include <stdint.h>

#include "bench/scheduler/server.h"

/* Give every sweep of the server, which has no trials yet, `trials` completed trials with `points`
 * measurements each. Nothing is analysed. */
void fill_completed(struct server *s, int64_t trials, int64_t points);

/* Create the paused sweep `name` with `trials` live trials: half of them queued, half of them
 * running on the runner that is registered under the name "holder" with this epoch. */
void fill_live(struct server *s, const char *name, int64_t epoch, int64_t trials);

#endif
