/* The words of decisions, and when a report may reach a rung. */
#include "scheduler/rows/rung_row.h"

const char *const trial_decision_words[] = {"", "prune", "pause", "resume", NULL};

bool rung_is_near(const struct rung_near *near, const struct measurement *points, size_t n)
{
    for (size_t i = 0; i < n && near->step > 0; i++)
        if (points[i].step == near->step || (near->after > 0 && points[i].step >= near->after))
            return true;
    return false;
}

bool rung_is_past(const struct rung_near *near)
{
    return near->step > 0 && near->step == near->after;
}
