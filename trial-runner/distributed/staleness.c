#include "trial-runner/distributed/staleness.h"

bool clock_may_begin(int64_t bound, int64_t slowest, int64_t next)
{
    return bound == CLOCK_NO_BOUND || next - slowest <= bound;
}

int64_t clock_slowest(const int64_t *done, size_t n)
{
    int64_t least = done[0];
    for (size_t i = 1; i < n; i++)
        least = done[i] < least ? done[i] : least;
    return least;
}
