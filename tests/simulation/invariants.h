/* What must hold of the tables after each commit, and where violations are kept. */
#ifndef ASSAY_TESTS_SIMULATION_INVARIANTS_H
#define ASSAY_TESTS_SIMULATION_INVARIANTS_H

#include <stdbool.h>

#include "base/status.h"

struct sim_tables;

/* Keep the first violation of a simulation. */
void violation(const char *fmt, ...) AS_PRINTF(1, 2);
/* The text of the first one; "": none. */
const char *violation_text(void);
void violation_clear(void);

/* The invariants (scheduler/README.md). */
void check_tables(const struct sim_tables *t);
/* Are they equal, but for times, turns, epochs, and the places in the order of ends? Differences
 * are violations. */
bool same_tables(const struct sim_tables *a, const struct sim_tables *b);

#endif
