/* The seed of a trial. */
#ifndef ASSAY_SCHEDULER_SWEEP_TRIAL_SEED_H
#define ASSAY_SCHEDULER_SWEEP_TRIAL_SEED_H

#include <stdint.h>

/* The seed of the trial with that number, computed from the sweep's seed. It has 31 bits, because
 * the generator of every library accepts that many. It is the same on every machine. */
int64_t trial_seed_of(int64_t sweep_seed, int64_t number);

#endif
