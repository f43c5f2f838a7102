/* One Metropolis chain over the points of a space: its move and its rule, without trials.
 *
 * The move is symmetric: from a to b is as likely as from b to a. So at a fixed temperature T, with
 * the rule below, the chain is at a configuration x with a probability proportional to
 * exp(-cost(x) / T), counting each active continuous parameter uniformly in its place (N.
 * Metropolis et al., "Equation of state calculations by fast computing machines", 1953). */
#ifndef ASSAY_SEARCH_MCMC_CHAIN_H
#define ASSAY_SEARCH_MCMC_CHAIN_H

#include <stdbool.h>

#include "base/rng.h"
#include "search/space/encoding.h"

/* Widths of a step, of the range, drawn on a log scale. */
#define CHAIN_LEAST 0.005
#define CHAIN_MOST 0.5

/* Move the point, which is snapped, and stays so. One parameter of all is chosen: an inactive one,
 * or one with a single value, changes nothing. A choice becomes another choice. A level moves by at
 * least one level, and comes back from the ends; a continuous place moves by a normal step. What
 * becomes active gets a place anywhere.
 *   scratch  [2 x enc->n]
 * Returns the parameter that was chosen. */
size_t chain_move(const struct encoding *e, struct rng *r, bool *scratch, double *point);

/* Is a move accepted? Always if the cost does not rise; else with probability exp(-rise /
 * temperature). Costs may be INFINITY, temperature 0 or more; u is uniform in [0, 1). */
bool chain_accepts(double cost, double proposed, double temperature, double u);

#endif
