/* A trial as the table of its sweep shows it. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_TABLE_ROW_H
#define ASSAY_SCHEDULER_ROWS_TABLE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/sweep/trial_state.h"

struct table_row {
    int64_t number;
    trial_state state;
    const char *origin; /* a word of trial_origin_words */
    int64_t attempt, restarts;
    const char *params, *metrics; /* JSON, as in trial_row */
    bool has_value, has_step;
    double value;
    int64_t step;
    bool infeasible;
    int64_t rungs;                                /* that it has reached */
    const char *decision;                         /* of early stopping; NULL: none */
    const char *runner, *client, *group, *reason; /* NULL: none */
    int64_t created_ms, started_ms, finished_ms;  /* 0: not yet */
};

/* A trial that changed, and the id of the last event about it. */
struct table_change {
    int64_t number, event;
};

/* Where a sweep stands. */
struct table_head {
    int64_t n_trials;
    int64_t horizon;      /* no event up to this id is still to come */
    int64_t last_event;   /* of the sweep, up to there; 0: none is kept */
    const char *document; /* NULL unless it was requested */
};

#endif
