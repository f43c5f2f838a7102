/* The fastest way for the first blocks and the first stages follows from that for one stage less.
 * (Giving each stage in turn what fits is not best where stages differ in speed: a slow one may
 * then have to take a large block.) */
#include "trial-runner/distributed/block_placement.h"

#include <math.h>

#include "base/mem.h"

/* For the first `end` blocks on the first stages. */
struct way {
    double slowest; /* INFINITY: there are too few blocks */
    size_t last;    /* where the last of these stages begins */
};

/* before [end + 1]: on one stage less. */
static struct way best_way(const double *cost, double pace, const struct way *before, size_t end)
{
    struct way best = {.slowest = INFINITY};
    double own = 0;
    for (size_t first = end; first > 0 && own <= best.slowest;) {
        own += cost[--first] * pace;
        double slowest = fmax(own, before[first].slowest);
        if (slowest < best.slowest)
            best = (struct way){slowest, first};
    }
    return best;
}

as_status block_placement(const double *cost, const double *pace, size_t n, size_t stages,
                          size_t *bounds, struct as_err *err)
{
    size_t row = n + 1;
    AS_AUTO(as_freep) struct way *ways = as_calloc((stages + 1) * row, sizeof *ways);
    if (!ways)
        return as_fail_nomem(err);
    for (size_t end = 1; end <= n; end++)
        ways[end].slowest = INFINITY;
    for (size_t s = 0; s < stages; s++)
        for (size_t end = 0; end <= n; end++)
            ways[(s + 1) * row + end] = best_way(cost, pace ? pace[s] : 1, ways + s * row, end);
    bounds[stages] = n;
    for (size_t s = stages; s > 0; s--)
        bounds[s - 1] = ways[s * row + bounds[s]].last;
    return AS_OK;
}

static double sum_of(const double *cost, size_t first, size_t end)
{
    double sum = 0;
    for (size_t i = first; i < end; i++)
        sum += cost[i];
    return sum;
}

static double slowest(const double *cost, const double *pace, size_t stages, const size_t *bounds)
{
    double most = 0;
    for (size_t s = 0; s < stages; s++)
        most = fmax(most, sum_of(cost, bounds[s], bounds[s + 1]) * pace[s]);
    return most;
}

/* Times become paces. A stage whose blocks cost nothing, or took no time, counts as the average.
 * False: nothing is known. */
static bool find_paces(const double *cost, double *times, size_t stages, const size_t *bounds)
{
    double all = 0, time = 0;
    for (size_t s = 0; s < stages; s++) {
        double own = sum_of(cost, bounds[s], bounds[s + 1]);
        times[s] = own > 0 ? times[s] / own : 0;
        all += times[s] > 0 ? own : 0;
        time += times[s] * own;
    }
    for (size_t s = 0; s < stages; s++)
        if (times[s] <= 0 && all > 0)
            times[s] = time / all;
    return all > 0;
}

as_status block_placement_anew(const double *cost, double *times, size_t n, size_t stages,
                               const size_t *bounds, size_t *ret, bool *ret_gains,
                               struct as_err *err)
{
    *ret_gains = false;
    if (!find_paces(cost, times, stages, bounds))
        return AS_OK;
    as_status st = block_placement(cost, times, n, stages, ret, err);
    if (st == AS_OK)
        *ret_gains =
            slowest(cost, times, stages, ret) * BLOCK_GAIN <= slowest(cost, times, stages, bounds);
    return st;
}
