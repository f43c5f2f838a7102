/* A load of no-op trials: each is claimed, measured and completed at once. What is to be done, what
 * came of it, and what its two kinds (slots.h, batches.h) share. */
#ifndef ASSAY_BENCH_SCHEDULER_LOAD_H
#define ASSAY_BENCH_SCHEDULER_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "bench/scheduler/arrivals.h"
#include "bench/scheduler/server.h"
#include "bench/scheduler/times.h"
#include "bench/scheduler/usage.h"

#define SLOTS_MAX 64
#define RUNNERS_MAX 8

struct load_plan {
    struct server *server;
    int runners, slots; /* slots: of all runners together */
    double warm_s, seconds;
    double rate;  /* cycles that begin in a second; 0: each slot begins its next one at once */
    int points;   /* of a request with measurements */
    int requests; /* with measurements, for each trial; of slots only */
    /* Called when the warm-up is over, in the thread of the load; NULL: nothing. */
    void (*on_warm)(void *arg);
    void *arg;
};

/* Of what came after the warm-up. */
struct load_result {
    double cycles_per_s, points_per_s;
    double us;           /* processor time of assayd and PostgreSQL for each cycle */
    struct times claims; /* of those that became due: until the answer */
    struct times cycles; /* of the same: until the answer to the completion */
    int64_t refused;     /* requests that were answered 429 or 503, and repeated */
    struct usage used;
};

void load_result_done(struct load_result *r);

struct worker {
    char name[24];
    int64_t epoch;
};

/* A load that runs. */
struct load {
    const struct load_plan *plan;
    struct load_result *ret;
    struct worker runners[RUNNERS_MAX];
    struct arrivals arrivals;  /* of a load with a rate */
    int64_t from_ns, until_ns; /* what counts */
    /* Of the latest claim. Its id has the epoch of the runner before it: a repeated id is a claim
     * that was made before, whose trials may have ended. */
    int64_t serial;
    int64_t cycles, points; /* that count */
    /* The cycles that count ended behind first_ns, the first end after the warm-up, and until the
     * first end after the load's time: answers that end many cycles at once do not round the
     * rate. */
    int64_t first_ns, last_ns;
    int64_t measured_ns; /* the latest points that count; behind until_ns if none came before */
    struct usage begin, end;
    struct str body; /* of the next request */
    int epoll;
};

/* Register the runners; the time begins. *ret is zeroed, or has the memory of earlier times. */
void load_begin(struct load *l, const struct load_plan *plan, struct load_result *ret);
/* Fill in the result. */
void load_finish(struct load *l);

/* Open a connection whose answers load_wait() reports under `ptr`. */
void load_connect(struct load *l, struct wire *w, void *ptr);

/* Does a closed load begin further cycles? It does until its time is over, a cycle counts, and
 * points count if it sends some. */
bool load_goes_on(const struct load *l, int64_t now_ns);

/* Does what happens at that time count? */
bool load_counts(const struct load *l, int64_t at_ns);
/* A claim, or a whole cycle, that was due at due_ns is answered. Its time counts if what happened
 * when it was due counts: those that take longer than the load are not left out. */
void load_claimed(struct load *l, int64_t due_ns, int64_t now_ns);
void load_completed(struct load *l, int64_t due_ns, int64_t now_ns);
/* The points of a request are stored. Those behind the load's time count if none did before. */
void load_measured(struct load *l, int64_t now_ns);

/* Wait for answers, or until the next cycle is due; the number of events. Ends the program when
 * nothing came for a minute. Sets *ret_now. */
int load_wait(struct load *l, struct epoll_event *events, int max, int64_t *ret_now_ns);

#endif
