/* What early stopping decided about trials at rungs. Conventions: "Rows" in scheduler/README.md. */
#ifndef ASSAY_SCHEDULER_ROWS_RUNG_ROW_H
#define ASSAY_SCHEDULER_ROWS_RUNG_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/rows/series_row.h"

/* What stands for the latest attempt of a trial, whatever that does. */
typedef enum trial_decision {
    DECIDED_NOTHING, /* it goes on */
    DECIDED_PRUNE,
    DECIDED_PAUSE,
    DECIDED_RESUME /* it was told to pause, and is promoted: another attempt goes on */
} trial_decision;
extern const char *const trial_decision_words[]; /* NULL-terminated, in the enum's order; the first
                                                    is "", and null in the table */

/* Where a trial stands. */
struct rung_place {
    int64_t rung; /* the next one that it may reach */
    trial_decision decision;
    const char *reason; /* of the decision; NULL: none */
};

/* At which steps a report may reach the next rung of a trial; 0: none is left. */
struct rung_near {
    int64_t step;  /* its own */
    int64_t after; /* or any from here on: the rung was missed, counts late, or was passed by an
                      attempt that was told to end before it (then it is `step`) */
};

/* May these points reach a rung, so that the row of their sweep is needed too? Pure. */
bool rung_is_near(const struct rung_near *near, const struct measurement *points, size_t n);

/* Had the trial reported a step from its next rung on? Then values of that rung may be stored. Also
 * true where late reports count. Pure. */
bool rung_is_past(const struct rung_near *near);

/* What a sweep shows of a rung. */
struct rung_count {
    int64_t reached, stopped, waiting, obeyed, disobeyed;
};

/* What early stopping has done in a sweep. */
struct stopping_report {
    bool is_there; /* false: the document asks for none */
    const int64_t *steps;
    const struct rung_count *rungs; /* n_rungs of both */
    size_t n_rungs;
    int64_t steps_spent, steps_saved;
    int64_t n_completed; /* trials, known ones too */
    const char *warning; /* NULL: none */
};

#endif
