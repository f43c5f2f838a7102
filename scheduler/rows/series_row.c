/* Points of a trial. */
#include "scheduler/rows/series_row.h"

#include "base/str.h"

const struct measurement *measurement_at(const struct measurement *points, size_t n,
                                         const char *metric, int64_t step)
{
    for (size_t i = 0; i < n; i++)
        if (points[i].step == step && as_streq(points[i].metric, metric))
            return &points[i];
    return NULL;
}
