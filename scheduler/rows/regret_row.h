/* What a sweep can still gain at most, and which trial is best in spite of noise, as it was kept.
 * Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_REGRET_ROW_H
#define ASSAY_SCHEDULER_ROWS_REGRET_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bound after so many completed trials (search/regret_bound.h). */
struct regret_check {
    int64_t completed; /* trials */
    int64_t seq;       /* of the last of them, in the sweep's order */
    double bound;      /* in the metric's unit; NaN: there was no model */
    double relative;   /* its share of median - best of the completed trials; NaN: none */
    bool enough;       /* so many trials that it says something */
    bool has_best;     /* the four below are set: values are noisy (search/incumbent.h) */
    int64_t best;      /* the trial that is best by the mean of a model */
    double best_mean, best_deviation, best_noise; /* in the metric's unit */
    int64_t made_ms;
};

struct regret_check_list {
    struct regret_check *rows; /* ascending by completed */
    size_t n;
};

#endif
