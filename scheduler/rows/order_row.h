/* The place of a trial in an order of its sweep's trials. */
#ifndef ASSAY_SCHEDULER_ROWS_ORDER_ROW_H
#define ASSAY_SCHEDULER_ROWS_ORDER_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/rows/trial_row.h"

/* By which key trials are ordered. */
struct order_key {
    trial_sort sort;
    const char *name;         /* of the metric or parameter */
    const char *const *words; /* BY_PARAM, values that are not all numbers: its values, as they are
                                 in `params`, in the document's order; else NULL */
    size_t n_words;
    const char *group; /* only trials that ran in this group last; NULL: all */
};

struct order_row {
    double key; /* not NaN; 0 without one */
    int64_t number;
    trial_state state;
    bool has_key;
};

#endif
