/* One schedule of results and claims, once in batches under faults, once one at a time without:
 * equal tables. Differences are violations (invariants.h). */
#ifndef ASSAY_TESTS_SIMULATION_ROUNDS_H
#define ASSAY_TESTS_SIMULATION_ROUNDS_H

#include <stdint.h>

/* What a run did. */
struct rounds_report {
    int64_t batches, members, alone, fallbacks, repeats, reruns;
};

void sim_rounds_run(uint64_t seed, struct rounds_report *ret);

#endif
