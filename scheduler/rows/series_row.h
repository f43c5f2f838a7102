/* Measurements and output of trials. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_SERIES_ROW_H
#define ASSAY_SCHEDULER_ROWS_SERIES_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct measurement {
    int64_t step;       /* >= 0 */
    const char *metric; /* base/metric_name.h */
    double value;       /* NaN and infinities are recorded */
};

/* The first point of this metric at this step; NULL: none. */
const struct measurement *measurement_at(const struct measurement *points, size_t n,
                                         const char *metric, int64_t step);

struct measured {
    int64_t recorded; /* the number of new points */
    bool has_value;   /* the trial has a value of the sweep's metric; set only if something was
                         recorded */
    double value;
};

/* Points of one attempt, and what became of them. */
struct trial_points {
    int64_t sweep_key, number, attempt;
    const struct measurement *points; /* borrowed; no step is negative */
    size_t n;
    bool keeps_row;      /* the latest values of the trial are written with its end: `ret` has no
                            value */
    struct measured ret; /* set by store_measurement_add_many() */
};

/* One metric of one trial: steps ascending. If attempts overlap, the latest one counts. */
struct series_row {
    const char *metric;
    int64_t *steps;
    double *values; /* may be NaN or infinite */
    size_t n;
};

#define SERIES_POINTS_MAX 100000 /* in one page; about 4 MB of JSON */

struct series_query {
    const char *metric;       /* NULL: all */
    const char *after_metric; /* the page begins after this point; NULL: at the first one */
    int64_t after_step;
    int64_t limit; /* points */
};

struct series_list {
    struct series_row *rows; /* in the order of metric names */
    size_t n;
    bool has_more;           /* there are points after the last one of these */
    const char *next_cursor; /* set by the service; NULL on the last page */
};

struct log_row {
    int64_t attempt;  /* 0: nothing is stored yet */
    const char *text; /* never NULL */
    bool truncated;
};

#endif
