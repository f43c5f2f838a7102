/* A simulated installation: servers with the real committer, runners, a network and a reaper, on
 * the tables of tables.h, under faults that a seed chooses. What runners were told is compared with
 * the tables at the end. */
#ifndef ASSAY_TESTS_SIMULATION_WORLD_H
#define ASSAY_TESTS_SIMULATION_WORLD_H

#include "tests/simulation/tables.h"

/* What happened, for the tests that all of it does. */
struct sim_report {
    int64_t batches, alone, fallbacks, postponed, reruns,
        waits;                        /* of committers and transactions */
    int64_t kills, stops, cuts, idle; /* faults */
    int64_t lost_attempts, late_ends, stale, unavailable, copies;
    int64_t acknowledged; /* ends */
    int64_t steps;
};

/* One run of a seed. The first violation is kept (invariants.h). */
void sim_world_run(uint64_t seed, sim_plant plant, struct sim_report *ret);

/* Sweeps of a seed, in empty tables. */
void sim_make_sweeps(struct sim_db *db);
/* The deeds of `db`, one at a time on the path of single operations, give equal tables. Runs in a
 * fiber. */
void sim_replay(const struct sim_db *db, struct sim_db *again);

/* A name of a sweep that says whose it is: sim_member_at() finds the member by its address. */
const char *sim_name_for(const struct commit_member *m, const char *sweep);

#endif
