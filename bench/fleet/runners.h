/* Simulated runners: the real protocol over HTTP, and no processes. Each registers, sends a
 * heartbeat in its turn, and has a claim that waits; a trial takes a time that is drawn, then it
 * is completed and the next one claimed. A server that ends is left for another one, as a runner
 * behind a load balancer does. One thread drives all. */
#ifndef ASSAY_BENCH_FLEET_RUNNERS_H
#define ASSAY_BENCH_FLEET_RUNNERS_H

#include <stdint.h>

#include "bench/scheduler/server.h"
#include "bench/scheduler/times.h"

struct runners_plan {
    const struct server *servers; /* pid 0: it has ended. Their runners take turns at the start */
    int n_servers, n;
    int share;      /* so many runners send their heartbeats over one connection */
    double trial_s; /* mean of an exponential distribution */
    int64_t heartbeat_ms;
    uint64_t seed;
};

/* What was seen in one run, from the time when a request was due to its answer. */
struct runners_seen {
    struct times beats, claims, ends;
    int64_t n_empty;   /* claims that waited for nothing */
    int64_t n_refused; /* 429 and 503, tried again a second later */
    int64_t n_stale;   /* 409: the runner or its attempt was given up */
    int64_t n_moved;   /* connections that went to another server */
};

void runners_seen_done(struct runners_seen *seen);

struct runners;

/* Register all of them. *ret_s: how long that took. The plan is borrowed until runners_free(). */
struct runners *runners_start(const struct runners_plan *plan, double *ret_s);
void runners_free(struct runners *x);

/* Let them work for some seconds; *ret is zeroed, or has the memory of earlier times. */
void runners_run(struct runners *x, double seconds, struct runners_seen *ret);

int runners_busy(const struct runners *x);          /* those that have a trial */
int64_t runners_completed(const struct runners *x); /* completions that were acknowledged */

#endif
