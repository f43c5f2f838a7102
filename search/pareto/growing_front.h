/* A Pareto front to which points are added, without keeping those that it dominates. The front of
 * what was added is the same in every order and however often it was settled. One thread at a time.
 */
#ifndef ASSAY_SEARCH_PARETO_GROWING_FRONT_H
#define ASSAY_SEARCH_PARETO_GROWING_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/pareto/pareto.h"

struct front_point {
    int64_t number;
    double values[GP_PARETO_MAX_OBJECTIVES]; /* in the metrics' own units */
};

struct growing_front {
    size_t m; /* objectives */
    bool maximize[GP_PARETO_MAX_OBJECTIVES];
    struct front_point *points; /* owned; once settled the front, ascending by number */
    size_t n, cap;
    size_t n_front; /* points that were the front when it was settled last; others follow */
    double lowest[GP_PARETO_MAX_OBJECTIVES], highest[GP_PARETO_MAX_OBJECTIVES]; /* of all added */
};

/* Of no points. `maximize` [m]: each objective's goal. AS_E_INVAL: m is not
 * 1..GP_PARETO_MAX_OBJECTIVES. */
AS_MUST_CHECK as_status growing_front_init(struct growing_front *f, size_t m, const bool *maximize,
                                           struct as_err *err);
void growing_front_done(struct growing_front *f);

/* Add a point; values [m]. It may settle the front to make room, so that at most twice the front
 * and some 65,536 points are in memory. AS_E_INVAL: a value is not finite. AS_E_NOMEM. After an
 * error the point was not added. */
AS_MUST_CHECK as_status growing_front_add(struct growing_front *f, int64_t number,
                                          const double *values, struct as_err *err);

/* Drop the points that others dominate, and memory that is not needed. AS_E_NOMEM: they are still
 * there. */
AS_MUST_CHECK as_status growing_front_settle(struct growing_front *f, struct as_err *err);

/* The reference point (gp_pareto_reference() of all points that were added) and the hypervolume up
 * to it, of a settled front that is not empty. ret_reference [m]. AS_E_NOMEM. */
AS_MUST_CHECK as_status growing_front_measure(const struct growing_front *f, double *ret_reference,
                                              double *ret_hypervolume, struct as_err *err);

#endif
