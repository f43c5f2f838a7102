/* Results that stand apart from all others (apart.h), and whether they are faults of the
 * measurement.
 *
 * A very good one is in doubt until its configuration was measured again. If the second value
 * stands apart, too, the first is true. If it does not, the first one counts as none, and so do all
 * others that stand at least half as far apart and were not confirmed. Very bad ones that come
 * anywhere count as none: not in one region, and where other trials are, too (neighbour_test.h).
 * Else they say where not to go. */
#ifndef ASSAY_SEARCH_REGRESSION_DOUBT_H
#define ASSAY_SEARCH_REGRESSION_DOUBT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "search/problem/problem.h"
#include "search/regression/covariance.h"

/* The trials of a sweep of one objective without early stopping; all borrowed, [n]. */
struct doubt_rows {
    const struct space *space;
    bool is_exact; /* the document says that values have no noise: a good one is true */
    size_t n;
    const struct observation *trials;
    const observation_state *state; /* as a training set sees them */
    const double *costs;            /* of completed trials */
    const bool *feasible;
    const struct gp_columns *columns;
    const double *x;  /* n x columns->n_real */
    const int32_t *z; /* n x columns->n_cat */
    bool *dropped;    /* false before; out: the trial's value counts as none */
};

/* Set r->dropped, and whether the best of what is left is to be measured again. Both are a function
 * of the rows. O(n log n), and O(k n d) for k values that stand apart. AS_E_NOMEM. */
AS_MUST_CHECK as_status doubt_judge(const struct doubt_rows *r, bool *ret_in_doubt,
                                    struct as_err *err);

#endif
