/* The results of one rung in the order of their ranks.
 *
 * A result is better than another if it is feasible and the other is not, then by value; NaN is
 * worst of all. With several metrics, of two feasible (or two infeasible) results the one that
 * fewer others dominate is better. Equal results have equal ranks; where one of them must be chosen,
 * the one with the lower trial number is. */
#ifndef ASSAY_SEARCH_STOPPING_STANDINGS_H
#define ASSAY_SEARCH_STOPPING_STANDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/problem/problem.h"

/* One result. */
struct standing {
    uint64_t number;
    double costs[SEARCH_MAX_OBJECTIVES]; /* minimised; the values that count */
    uint8_t kind;                        /* 0: feasible, 1: infeasible, 2: some value is NaN */
    bool waits;
    size_t dominators; /* several metrics: results of this kind that dominate it */
};

/* Zeroed: empty. With one metric the rows are sorted; with several they are in order of arrival. */
struct standings {
    size_t n_metrics; /* set by the owner; 1..SEARCH_MAX_OBJECTIVES */
    struct standing *rows;
    size_t n, cap, n_waiting;
};
void standings_done(struct standings *s);

/* Add a row; its `dominators` is not read. AS_E_NOMEM. */
AS_MUST_CHECK as_status standings_add(struct standings *s, const struct standing *row,
                                      struct as_err *err);

/* Row `number` with these costs waits no longer. */
void standings_leave(struct standings *s, const struct standing *row);

/* The rank that `row` has, or would have if it was added: one more than those that are better. */
size_t standings_rank(const struct standings *s, const struct standing *row, bool is_added);

/* The best waiting row, a view until the next change; NULL: none waits. */
const struct standing *standings_best_waiting(const struct standings *s);

#endif
