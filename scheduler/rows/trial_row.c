/* The words for the origins and the sort orders of trials, and how long one ran. */
#include "scheduler/rows/trial_row.h"

const char *const trial_origin_words[] = {"suggested", "enqueued", "known", "forked", NULL};

const char *const trial_sort_words[] = {"number",   "value",      "started_at", "finished_at",
                                        "duration", "created_at", "state",      "metric",
                                        "param",    NULL};

int64_t trial_ran_ms(const struct trial_row *r)
{
    if (r->started_ms == 0)
        return -1;
    if (r->ended_ran_ms >= 0)
        return r->ended_ran_ms;
    return r->finished_ms > r->started_ms ? r->finished_ms - r->started_ms : 0;
}
