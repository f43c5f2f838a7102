/* When a sweep is over: one rule for the end of a sweep that runs, and for running on after an end.
 * Pure. */
#ifndef ASSAY_SCHEDULER_SWEEP_SWEEP_END_H
#define ASSAY_SCHEDULER_SWEEP_SWEEP_END_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Where a sweep stands. */
struct sweep_standing {
    int64_t planned, total; /* total: trials that exist */
    int64_t live;           /* trials that are queued or run; paused ones wait for a promotion */
    int64_t failed;         /* without known results */
    int64_t max_failed;     /* -1: no limit */
    bool wall_time_over;
    bool is_spent; /* limits.max_steps is used up */
    bool is_blind; /* early_stopping.strict: a trial ended, and none has a value at a rung below the
                      last one, where nobody is compared */
    bool target_reached; /* a completed, feasible trial is at least as good as limits.target */
    bool little_left;    /* what may be left to gain is within limits.stop_when */
};

typedef enum sweep_end {
    SWEEP_GOES_ON,
    SWEEP_TARGET_REACHED,
    SWEEP_TOO_MANY_FAILED,
    SWEEP_IS_BLIND, /* early stopping compares nothing */
    SWEEP_LITTLE_LEFT,
    SWEEP_OUT_OF_TIME,
    SWEEP_OUT_OF_STEPS,
    SWEEP_ALL_ENDED /* no trial is live, and no other will begin */
} sweep_end;

/* The first of them, in this order of importance: target, failures, early stopping, little left,
 * time, steps, trials. */
sweep_end sweep_end_of(const struct sweep_standing *s);

/* Why a sweep stays as it is and what would make it run on, for people: "wall_time is over: raise
 * it". In the arena; NULL when memory is out. Only for ends. */
const char *sweep_end_advice(struct arena *a, const struct sweep_standing *s, sweep_end end);

#endif
