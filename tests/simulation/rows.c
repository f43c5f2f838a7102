#include "tests/simulation/rows.h"

const char *const sim_metrics[] = {"loss", "acc"};
const char *const sim_notes[] = {"said", "mood"};
