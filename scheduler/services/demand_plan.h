/* How many slots wait, of which kind: what sweeps could hand out now, less what fits in what live
 * runners have left. Pure. */
#ifndef ASSAY_SCHEDULER_SERVICES_DEMAND_PLAN_H
#define ASSAY_SCHEDULER_SERVICES_DEMAND_PLAN_H

#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/demand_row.h"

#define DEMAND_KINDS_MAX 256

/* Slots with equal needs. */
struct demand_kind {
    int64_t gpus, cpus, memory_bytes; /* of each slot */
    int64_t ranks;                    /* slots that one trial needs together */
    bool is_exclusive;                /* each needs a machine for itself */
    int64_t slots;                    /* that wait */
    int64_t sweeps;                   /* whose trials they are */
    int64_t since_ms;                 /* for the longest of them */
};

struct demand {
    int64_t now_ms;
    int64_t slots;             /* that wait, of all kinds */
    int64_t since_ms;          /* 0: none waits */
    int64_t runners;           /* live ones */
    int64_t free_slots;        /* of them, when all that fits has been placed */
    struct demand_kind *kinds; /* in the order in which they are served; at most
                                  DEMAND_KINDS_MAX: slots of more kinds are in `slots` alone */
    size_t n;
};

/* sweeps: in the order in which they get slots. runners: those of one machine together; what is
 * placed is added to what they use. ret's times are the caller's. AS_E_NOMEM. */
AS_MUST_CHECK as_status demand_plan(const struct demand_sweep *sweeps, size_t n_sweeps,
                                    struct demand_runner *runners, size_t n_runners,
                                    struct arena *a, struct demand *ret, struct as_err *err);

#endif
