#include "scheduler/sweep/trial_seed.h"

#include "base/rng.h"

int64_t trial_seed_of(int64_t sweep_seed, int64_t number)
{
    return (int64_t)(rng_mix((uint64_t)sweep_seed, (uint64_t)number) & 0x7fffffff);
}
