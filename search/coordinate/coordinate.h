/* Coordinate descent: the method `coordinate` (S. Wright, "Coordinate descent algorithms", 2015;
 * the line search: R. Brent, "Algorithms for minimization without derivatives", 1973, chapter 5).
 *
 * The best point of the initial design is the start. Cycles change one parameter after another, in
 * the order of the document, and keep what is better:
 *   choices, and numbers of at most COORDINATE_POINTS + 1 levels   every other value is tried
 *   other numbers   COORDINATE_POINTS places spread over a bracket, then the vertex of the parabola
 *                   through the best one and its neighbours; the bracket shrinks to these
 *                   neighbours. If the parabola held, the line is done; else, in the first
 *                   cycle, the shrunk bracket is searched in the same way
 * The bracket of the first cycle is the whole range; that of a later one follows how far the
 * parameter moved in the cycle before. A cycle of the narrowest brackets that changes nothing ends
 * the run, and another one begins at a random point.
 *
 * The descent is computed from the history alone: it runs from its start with the results that are
 * there, and the first point that nobody tried is the suggestion. A point that is being tried
 * counts as no better until its result is there, so trials that run at the same time are those of
 * one line, then those of the next.
 *
 * With several metrics or bounds, "better" is the order of population.h, and there is no
 * parabola. */
#ifndef ASSAY_SEARCH_COORDINATE_COORDINATE_H
#define ASSAY_SEARCH_COORDINATE_COORDINATE_H

#include "search/problem/method.h"

/* Enough for the parabola to see the shape of a line; other values are not recorded. */
#define COORDINATE_POINTS 4
#define COORDINATE_NARROWEST (1.0 / 64) /* of a range */

/* The reason: {"method": "coordinate", "observed", "pending", "failed", "phase", "cycle": from 0,
 * "restarts", "changed": ["lr"], "step": the width of the bracket, of the range}. "changed" is
 * empty where a run begins. */
extern const struct search_method search_coordinate;

#endif
