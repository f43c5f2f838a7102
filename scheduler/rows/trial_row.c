/* The words for the origins and the sort orders of trials. */
#include "scheduler/rows/trial_row.h"

const char *const trial_origin_words[] = {"suggested", "enqueued", "known", "forked", NULL};

const char *const trial_sort_words[] = {"number",   "value",      "started_at", "finished_at",
                                        "duration", "created_at", "state",      "metric",
                                        "param",    NULL};
