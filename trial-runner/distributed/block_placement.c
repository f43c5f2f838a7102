/* The least time is found by halving: for a given time each stage in turn takes as many blocks as it
 * can do in it and leaves one for each stage behind it. */
#include "trial-runner/distributed/block_placement.h"

#include <stdbool.h>
#include <string.h>

#define HALVINGS 60 /* more than a double has digits */

static double time_of(const double *cost, size_t first, size_t end, double pace)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += cost[i];
    return sum * pace;
}

/* Returns false if the blocks do not fit into that time. */
static bool fill(const double *cost, size_t n, const double *pace, size_t stages, double most,
                 size_t *bounds)
{
    size_t at = 0;
    for (size_t s = 0; s < stages; s++) {
        size_t rest = stages - s - 1, first = at;
        bounds[s] = at;
        do
            at++;
        while (at + rest < n && time_of(cost, first, at + 1, pace[s]) <= most);
        if (time_of(cost, first, at, pace[s]) > most)
            return false;
    }
    bounds[stages] = at;
    return at == n;
}

void block_placement(const double *cost, size_t n, const double *pace, size_t stages,
                     size_t *bounds)
{
    double low = 0, high = 0;
    for (size_t s = 0; s < stages; s++) {
        double all = time_of(cost, 0, n, pace[s]);
        high = all > high ? all : high;
    }
    for (int i = 0; i < HALVINGS; i++) {
        double mid = low + (high - low) / 2;
        if (fill(cost, n, pace, stages, mid, bounds))
            high = mid;
        else
            low = mid;
    }
    (void)fill(cost, n, pace, stages, high, bounds);
}

double block_placement_time(const double *cost, const double *pace, size_t stages,
                            const size_t *bounds)
{
    double most = 0;
    for (size_t s = 0; s < stages; s++) {
        double t = time_of(cost, bounds[s], bounds[s + 1], pace[s]);
        most = t > most ? t : most;
    }
    return most;
}
