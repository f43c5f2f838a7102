/* The results of one rung in the order of their ranks.
 *
 * A result is better than another if it is feasible and the other is not, then by value; NaN is
 * worst of all, and so is an infinity on the good side, with which no trial can end. With several
 * metrics, of two feasible (or two infeasible) results the one that fewer others dominate is
 * better. Equal results have equal ranks; where one of them must be chosen, it is the one with the
 * lower trial number.
 *
 * With one metric the rows are a list with ranks (rank_list.h), and asking costs O(log n). With
 * several metrics one result changes the ranks of others, and a call costs O(n). */
#ifndef ASSAY_SEARCH_STOPPING_STANDINGS_H
#define ASSAY_SEARCH_STOPPING_STANDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "search/problem/problem.h"
#include "search/stopping/rank_list.h"

/* One result. */
struct standing {
    uint64_t number;
    double costs[SEARCH_MAX_OBJECTIVES]; /* minimised; those that count */
    uint8_t kind; /* 0: feasible, 1: infeasible, 2: a cost is NaN, or was -infinite */
    bool waits;
};

/* -1: a is better; 1: b is; 0: neither. Several costs are compared by dominance. */
int standing_compare(const struct standing *a, const struct standing *b, size_t n_metrics);

struct standings_row; /* standings.c */

/* Zeroed, with n_metrics set: empty. */
struct standings {
    size_t n_metrics; /* 1..SEARCH_MAX_OBJECTIVES */
    struct standings_row *rows;
    size_t n, cap, n_waiting;
    struct rank_list list; /* of one metric */
};
void standings_done(struct standings *s);

/* Make room for one more row, so that the next standings_add() cannot fail. AS_E_NOMEM. */
AS_MUST_CHECK as_status standings_reserve(struct standings *s, struct as_err *err);

/* Add a row; there is room for it. */
void standings_add(struct standings *s, const struct standing *row);

/* This row, which was added, waits no longer. */
void standings_leave(struct standings *s, const struct standing *row);

/* The rank that `row` has, or would have if it was added: one more than the rows that are
 * better. */
size_t standings_rank(const struct standings *s, const struct standing *row, bool is_added);

/* The row at place k of the order, k < s->n, a view until the next change. One metric only. */
const struct standing *standings_at(const struct standings *s, size_t k);

/* The best waiting row, a view until the next change; NULL: none waits. */
const struct standing *standings_best_waiting(const struct standings *s);

#endif
