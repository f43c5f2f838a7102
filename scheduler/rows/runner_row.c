/* The words for what a runner says about a process. */
#include "scheduler/rows/runner_row.h"

const char *const run_phase_words[] = {"preparing", "running", "ended", NULL};
const char *const directive_action_words[] = {"stop", "prune", "pause", NULL};
