/* Values that stand apart from all others: a loss of -1e8, or of 1000, among values around 1.
 *
 * They are credible (problem/credible.h), because a needle or a diverged run looks the same.
 * Whether they are faults of the measurement, other trials say: a repeat of the configuration, or
 * where such values come (doubt.h). This file only says which values stand apart. */
#ifndef ASSAY_SEARCH_REGRESSION_APART_H
#define ASSAY_SEARCH_REGRESSION_APART_H

#include <stddef.h>

/* A gap so many times as wide as the range of most others; beyond what a steep function has between
 * its best value and the second best one, and among its worst ones (decision 4042). */
#define APART_GAP_GOOD 10.0
#define APART_GAP_BAD 30.0
#define APART_LEAST 8 /* values */

/* How many of the lowest values stand apart from those above: the largest such number, at most a
 * third of them. The range of the others ends at the third quartile of all, so that bad values do
 * not hide good ones.
 *   v      n finite values, ascending; borrowed
 *   known  this value is true, so none above it stands apart; INFINITY: nothing is known
 * 0: none, or fewer than APART_LEAST values, or all others are equal. O(n). */
size_t apart_lowest(const double *v, size_t n, double known);

/* How many of the highest values stand apart from those below, from the first quartile on: the
 * largest such number, at most half of them. As above. */
size_t apart_highest(const double *v, size_t n);

#endif
