/* The cases of bench/scheduler. Each reports its figures. */
#ifndef ASSAY_BENCH_SCHEDULER_CASES_H
#define ASSAY_BENCH_SCHEDULER_CASES_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/scheduler/load.h"

#define ROUNDS_MAX 15
#define BRIEF_S 1 /* --seconds below it, as in tests, which judge no figure */

struct settings {
    double seconds; /* of each measurement */
    int64_t rounds;
    int64_t filled, points; /* trials in all; measurements of each */
    double idle_s;          /* how long the other transaction is idle */
    int64_t cancelled;      /* live trials of a sweep that is cancelled */
};

/* A way to send cycles. */
struct routes {
    const char *name;
    void (*run)(const struct load_plan *plan, struct load_result *ret);
};
#define N_ROUTES 2
extern const struct routes all_routes[N_ROUTES];

/* A new server with these sweeps. */
void case_server(struct server *s, int sweeps);
/* A closed load of cycles on it. */
struct load_plan case_plan(struct server *s, const struct settings *o, int runners);
/* Make it an open load of so many cycles a second, that lasts until there are times to compare. */
void case_open(struct load_plan *plan, double rate);

/* The floors, closed loads by sweeps and runners, and their ratios; then claims at half of the
 * load. */
void case_cycles(const struct settings *o);
/* The last of these alone, after a closed load of its own. */
void case_claims(const struct settings *o);
/* The processor time of a cycle by program, of closed loads by the batch route, without floors. */
void case_budget(const struct settings *o);
/* Many measured points in each request. */
void case_points(const struct settings *o);
/* One measured point in each request, with early stopping beside without. */
void case_rungs(const struct settings *o);
/* Ask and tell. */
void case_asks(const struct settings *o);
/* Cycles after many trials, beside those on an empty database. */
void case_filled(const struct settings *o);
/* Cycles while another transaction is idle, beside those without it. */
void case_idle(const struct settings *o);
/* Claims of other sweeps while large ones are cancelled. */
void case_cancel(const struct settings *o);

#endif
