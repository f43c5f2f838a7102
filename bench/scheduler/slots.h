/* No-op trials in slots, over the routes of single attempts: each slot claims a trial, sends its
 * measurements, completes it, and begins again. A slot has a connection of its own; one thread
 * drives all of them. */
#ifndef ASSAY_BENCH_SCHEDULER_SLOTS_H
#define ASSAY_BENCH_SCHEDULER_SLOTS_H

#include <stdint.h>

#include "bench/scheduler/server.h"
#include "bench/scheduler/times.h"
#include "bench/scheduler/usage.h"

#define SLOTS_MAX 64
#define RUNNERS_MAX 8

struct load_plan {
    struct server *server;
    int runners, slots; /* slots: of all runners together */
    double warm_s, seconds;
    /* Cycles that begin in a second, at random times (a Poisson process) that do not depend on the
     * answers; a cycle that finds no free slot waits for one, and its time runs. 0: each slot
     * begins its next cycle at once. */
    double rate;
    int points;   /* of a request with measurements */
    int requests; /* with measurements, for each trial */
};

/* Of what ended after the warm-up. */
struct load_result {
    double cycles_per_s, points_per_s;
    struct times claims; /* from the time at which a claim was due to its answer */
    struct times cycles; /* to the end of its trial */
    int64_t refused;     /* requests that were answered 429 or 503, and repeated */
    struct usage used;
};

/* Register the runners, run, and end the trials that were begun. *ret is zeroed, or has the memory
 * of earlier times. */
void slots_run(const struct load_plan *plan, struct load_result *ret);
void load_result_done(struct load_result *r);

#endif
