/* What `assay autoscale` does next: how many jobs to ask for, which to end, and why. Pure: the
 * demand, the jobs and the runners are what the caller found a moment ago. */
#ifndef ASSAY_CLI_FLEET_AUTOSCALE_PLAN_H
#define ASSAY_CLI_FLEET_AUTOSCALE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/fleet/engine.h"
#include "cli/fleet/fleet_spec.h"

struct autoscale_bounds {
    int64_t min, max;     /* jobs; 0 <= min <= max, max at least 1 */
    int64_t cool_down_ms; /* between two times that jobs are asked for */
    int64_t idle_ms;      /* a job whose runners are idle for so long is ended */
};

/* Slots that wait, of one kind: demand_kind of the API. */
struct autoscale_kind {
    int64_t slots, ranks, gpus, cpus, memory_bytes;
    bool is_exclusive;
};

/* A job, and what its runners say. A slot that is kept for a gang is used. */
struct autoscale_unit {
    const struct fleet_unit *unit;
    int64_t runners;            /* live ones */
    int64_t coming;             /* those that it has yet to start, when it has some already */
    bool is_idle;               /* has runners, and none of their slots is used */
    int64_t cpus, memory_bytes; /* that the largest of them has; 0: not known */
};

struct autoscale_look {
    int64_t now_ms; /* monotonic */
    const struct autoscale_kind *kinds;
    size_t n_kinds;
    const struct autoscale_unit *units;
    size_t n_units;
};

/* What is known of a job from look to look. */
struct autoscale_known {
    char id[128];
    bool had_runner;
    int64_t idle_since_ms; /* -1: it is not idle */
};

/* Zeroed: nothing is known yet. */
struct autoscale_memory {
    struct autoscale_known *known; /* owned */
    size_t n;
    int64_t asked;    /* jobs that were started since the last look; the next one lists them */
    int64_t asked_ms; /* when jobs were asked for last; 0: never */
    int64_t deaths;   /* looks in a row that found jobs which had ended without a runner */
    int64_t wait_ms;  /* ask for none before asked_ms + wait_ms */
    int64_t cpus, memory_bytes; /* of the largest runner that was ever seen; 0: none was */
};
void autoscale_memory_done(struct autoscale_memory *m);

#define AUTOSCALE_BACK_OFF_MAX_MS (60 * 60 * 1000)

struct autoscale_action {
    int64_t start;     /* jobs to ask for */
    const char **stop; /* owned list of views of the look's units: jobs to end */
    size_t n_stop;
    struct str why; /* one line, always */
};
void autoscale_action_done(struct autoscale_action *a);

/* Decide. m is changed by what was found; after the caller has done what `ret` says, and at once
 * when that failed, it calls autoscale_asked(). ret must be zeroed. AS_E_NOMEM.
 *
 * Jobs are asked for when slots wait that would fit in them and are not expected from jobs that
 * have no runner yet, or not all of their ranks, up to `max`; the ranks of a trial are asked for
 * together, or not at all. Jobs
 * are ended when nothing that fits waits, they or their runners do nothing, and more than `min` are
 * left. When jobs ended without a runner, the time between two attempts doubles. */
AS_MUST_CHECK as_status autoscale_plan(const struct fleet_spec *spec,
                                       const struct autoscale_bounds *bounds,
                                       const struct autoscale_look *look,
                                       struct autoscale_memory *m, struct autoscale_action *ret,
                                       struct as_err *err);

/* Jobs were asked for at this time, with success or without. started: how many the engine has from
 * now on; none in a dry run. */
void autoscale_asked(struct autoscale_memory *m, const struct autoscale_bounds *bounds,
                     int64_t now_ms, bool with_success, int64_t started);

#endif
