/* The rows of a simulation: what the tables sweep, trial, attempt, measurement, trial_note, runner
 * and event hold of what the scheduler decides by. No pointers to other rows, so that a copy is one
 * memcpy(). */
#ifndef ASSAY_TESTS_SIMULATION_ROWS_H
#define ASSAY_TESTS_SIMULATION_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/rows/sweep_row.h"
#include "scheduler/sweep/trial_state.h"

#define SIM_SWEEPS 3
#define SIM_TRIALS 10
#define SIM_ATTEMPTS 16
#define SIM_POINTS 12 /* of an attempt */
#define SIM_RUNNERS 3
#define SIM_METRICS 2
#define SIM_NOTES 2

extern const char *const sim_metrics[]; /* loss, acc */
extern const char *const sim_notes[];   /* said, mood */

struct sim_tx;

/* The begin of each row. */
struct sim_row {
    struct sim_tx *holder; /* of its lock */
};

struct sim_point {
    int64_t step;
    int64_t metric;
    double value;
};

struct sim_attempt {
    bool has_ended;
    char runner[8], claim_id[24];
    int64_t epoch;
    char outcome[12], reported[12]; /* "": none */
    char reason[96];
    int n_points;
    struct sim_point points[SIM_POINTS];
};

struct sim_trial {
    struct sim_row row;
    bool is_there;
    trial_state state;
    int64_t attempt, restarts, seed, index, step, finish_seq, epoch, claimed_ns, missing;
    bool has[SIM_METRICS]; /* the latest values; the first is that of the sweep's metric */
    double latest[SIM_METRICS];
    bool has_step, has_feasible, feasible, timed_out;
    char params[64], suggestion[160], runner[8], reason[96], notes[SIM_NOTES][16];
    struct sim_attempt attempts[SIM_ATTEMPTS + 1]; /* by number */
};

struct sim_sweep {
    struct sim_row row;
    bool is_there, has_started, has_target, keeps_timed_out;
    char id[8], reason[96];
    const char *document, *outcomes;
    sweep_state state;
    int64_t seed, planned, max_concurrent, max_failed, max_restarts, priority, trial_timeout_ms;
    double target;
    struct trial_counts counts;
    int64_t finish_seq, suggested, turns, served;
};

struct sim_runner {
    struct sim_row row;
    bool is_there, is_live;
    char name[8];
    int64_t epoch, slots, expires_ns;
};

struct sim_event {
    char what; /* 'c' trial.changed, 'm' trial.measured, 's' sweep.changed, 'r' runner.changed */
    int64_t sweep_key, number, attempt;
    char state[12];
};

/* The key of a sweep is its place, and 1. */
struct sim_tables {
    struct sim_sweep sweeps[SIM_SWEEPS];
    struct sim_trial trials[SIM_SWEEPS][SIM_TRIALS];
    struct sim_runner runners[SIM_RUNNERS];
};

#endif
