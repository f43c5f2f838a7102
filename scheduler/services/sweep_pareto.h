/* The Pareto front of a sweep. */
#ifndef ASSAY_SCHEDULER_SERVICES_SWEEP_PARETO_H
#define ASSAY_SCHEDULER_SERVICES_SWEEP_PARETO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/trial_row.h"
#include "scheduler/services/sweep_fronts.h"
#include "scheduler/store/store.h"

/* The trials that no other trial dominates. */
struct pareto_row {
    struct trial_row *rows; /* feasible and completed, by number */
    size_t n;
    const char **metrics; /* the names of the objectives, in the document's order */
    bool *maximize;
    size_t n_metrics;
    bool has_reference; /* the two below are set; false without a completed, feasible trial */
    double *reference;  /* n_metrics, in the metrics' own units */
    double hypervolume; /* between the front and the reference */
    bool has_more;      /* the rows passed PAGE_BYTES_MAX: next_cursor continues */
    const char *next_cursor;
};

/* The Pareto front of a sweep, from completed, feasible trials. With one objective: the best of
 * them. `cursor` NULL: from the first trial of the front; the rest of the row is that of the whole
 * front on each page. AS_E_NOT_FOUND. AS_E_INVAL: the cursor. */
AS_MUST_CHECK as_status sweep_pareto(struct store *db, struct sweep_fronts *fronts, struct arena *a,
                                     const char *id, const char *cursor, struct pareto_row *ret,
                                     struct as_err *err);

#endif
