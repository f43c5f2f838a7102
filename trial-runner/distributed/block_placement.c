/* The least sum is found by halving: for a given one each stage in turn takes as many blocks as fit
 * and leaves one for each stage behind it. */
#include "trial-runner/distributed/block_placement.h"

#include <stdbool.h>
#include <string.h>

#define HALVINGS 60 /* more than a double has digits */

static double sum_of(const double *cost, size_t first, size_t end)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += cost[i];
    return sum;
}

/* Returns false if a stage would have more than `most`. */
static bool fill(const double *cost, size_t n, size_t stages, double most, size_t *bounds)
{
    size_t at = 0;
    for (size_t s = 0; s < stages; s++) {
        size_t rest = stages - s - 1, first = at;
        bounds[s] = at;
        do
            at++;
        while (at + rest < n && sum_of(cost, first, at + 1) <= most);
        if (sum_of(cost, first, at) > most)
            return false;
    }
    bounds[stages] = at;
    return at == n;
}

void block_placement(const double *cost, size_t n, size_t stages, size_t *bounds)
{
    double low = 0, high = sum_of(cost, 0, n);
    for (int i = 0; i < HALVINGS; i++) {
        double mid = low + (high - low) / 2;
        if (fill(cost, n, stages, mid, bounds))
            high = mid;
        else
            low = mid;
    }
    (void)fill(cost, n, stages, high, bounds);
}
