/* Points that arrive, as the series that they belong to. Pure; private to this folder. */
#ifndef ASSAY_SCHEDULER_STORE_POINT_SERIES_PRIV_H
#define ASSAY_SCHEDULER_STORE_POINT_SERIES_PRIV_H

#include "base/arena.h"
#include "base/status.h"
#include "scheduler/rows/series_row.h"

#define CHUNK_POINTS_MAX 64 /* in a row of measurement_chunk: its constraint */

struct series_point {
    int64_t step;
    double value;
    size_t set;       /* the first set that has it */
    bool is_stored;   /* before this transaction */
    bool has_time;    /* false: now, or it is stored and older than times */
    int64_t recorded; /* microseconds since 1970 */
};

/* Points of one metric of one attempt: each step once, ascending. */
struct point_series {
    int64_t sweep_key, number, attempt;
    const char *metric; /* borrowed from the sets */
    struct series_point *points;
    size_t n; /* at least 1 */
};

struct point_series_list {
    struct point_series *rows;
    size_t n;
};

/* The points of n sets. Of points with one step the first one of the first set counts. In the
 * arena; AS_E_NOMEM. */
AS_MUST_CHECK as_status point_series_of(struct arena *a, const struct trial_points *sets, size_t n,
                                        struct point_series_list *ret, struct as_err *err);

/* Take the points of `stored`, which has no step twice, into *s: a step that both have keeps what
 * is stored. *ret_added: how many of *s are not stored. In the arena; AS_E_NOMEM. */
AS_MUST_CHECK as_status point_series_merge(struct arena *a, struct point_series *s,
                                           const struct series_point *stored, size_t n_stored,
                                           size_t *ret_added, struct as_err *err);

#endif
