/* The seed of a trial. */
#ifndef ASSAY_SCHEDULER_SWEEP_TRIAL_SEED_H
#define ASSAY_SCHEDULER_SWEEP_TRIAL_SEED_H

#include <stdint.h>

/* The seed of the trial with that number, from the sweep's seed: 31 bits, because that is what
 * every library's generator takes. The same on every machine. */
int64_t trial_seed_of(int64_t sweep_seed, int64_t number);

#endif
