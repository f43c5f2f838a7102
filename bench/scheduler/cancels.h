/* A thread that cancels large sweeps one after the other while a load runs. */
#ifndef ASSAY_BENCH_SCHEDULER_CANCELS_H
#define ASSAY_BENCH_SCHEDULER_CANCELS_H

#include <pthread.h>
#include <stdatomic.h>

#include "bench/scheduler/server.h"
#include "bench/scheduler/times.h"

struct cancels {
    struct server *server;
    int sweeps; /* named victim-0, victim-1, … */
    atomic_bool is_over;
    struct times times; /* of the cancels that were answered */
    pthread_t thread;
};

/* Begin to cancel; the load_plan's on_warm. `arg` is a struct cancels with its first two fields. */
void cancels_begin(void *arg);
/* Wait for the cancel under way. */
void cancels_end(struct cancels *c);

#endif
