#include "trial-runner/distributed/portions.h"

/* Shards in a second; of one whose time is not known, the mean of the others, or 1. */
static double mean_speed(const double *seconds, int32_t n)
{
    double sum = 0;
    int32_t known = 0;
    for (int32_t r = 0; r < n; r++) {
        sum += seconds[r] > 0 ? 1 / seconds[r] : 0;
        known += seconds[r] > 0;
    }
    return known > 0 ? sum / known : 1;
}

/* Each run ends where the share of the ranks up to it does, rounded. */
void portions(const double *seconds, int32_t n, uint32_t total, struct shard_run *ret)
{
    double mean = mean_speed(seconds, n), all = 0, so_far = 0;
    uint32_t end = 0;
    for (int32_t r = 0; r < n; r++)
        all += seconds[r] > 0 ? 1 / seconds[r] : mean;
    for (int32_t r = 0; r < n; r++) {
        so_far += seconds[r] > 0 ? 1 / seconds[r] : mean;
        uint32_t first = end;
        end = r + 1 == n ? total : (uint32_t)(so_far / all * total + 0.5);
        end = end < first ? first : end > total ? total : end;
        ret[r] = (struct shard_run){.first = first, .count = end - first};
    }
}
