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
    const char *predicted;        /* JSON: a prediction, or one of each objective; NULL: none */
    bool has_value, has_step;
    double value;
    int64_t step;
    bool infeasible;
    int64_t rungs;                                /* that it has reached */
    const char *decision;                         /* of early stopping; NULL: none */
    const char *runner, *client, *group, *reason; /* NULL: none */
    const char *tags;                             /* with commas between them; NULL: none */
    int64_t parent, fork_step;                    /* of a fork: what it goes on from; -1: none */
    int64_t created_ms, started_ms, finished_ms;  /* 0: not yet */
    int64_t ran_ms;           /* of the attempts that ended; -1: from started_ms to finished_ms */
    int64_t running_since_ms; /* when its attempt was handed out; 0: it does not run */
};

/* A trial that changed, and the id of the last event about it. */
struct table_change {
    int64_t number, event;
    int64_t attempt;       /* the latest that an event named; 0: none */
    bool is_measured_only; /* its attempt reported values, and nothing else happened */
};

/* Which points of a trial to read. */
struct point_want {
    int64_t number;
    int64_t attempt; /* POINTS_ANY_ATTEMPT: of each step the value that counts */
    int64_t after;   /* only points after this step; -1: all */
};
#define POINTS_ANY_ATTEMPT (-1)

/* All points of the trials with numbers in [from, to), as far as so many chunks go. */
struct point_range {
    int64_t from, to;
    int64_t chunks;
};

struct point_row {
    int64_t number, attempt, step;
    double value; /* may be NaN or infinite */
    bool has_seconds;
    double seconds; /* from the beginning of its attempt to its arrival at the server */
};

/* An attempt, or a seat of a gang's attempt. */
struct timeline_row {
    int64_t number, attempt;
    int64_t seat;                        /* -1: the attempt itself */
    const char *runner, *client, *group; /* NULL: none */
    const char *outcome;                 /* NULL: it runs */
    int64_t began_ms, ended_ms;          /* 0: not yet */
};

/* Where a sweep stands. */
struct table_head {
    int64_t n_trials;
    int64_t horizon;      /* no event up to this id is still to come */
    int64_t last_event;   /* of the sweep, up to there; 0: none is kept */
    const char *document; /* NULL unless it was requested */
};

#endif
