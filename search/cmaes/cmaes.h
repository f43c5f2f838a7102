/* Covariance matrix adaptation: the method `cmaes` (N. Hansen, "The CMA evolution strategy: a
 * tutorial", 2016; its names and its default constants).
 *
 * Numbers are drawn from a normal distribution over their places in [0, 1]. The trials that ended,
 * in the order of their numbers, are cut into generations; each moves the mean to its better half
 * and adapts the covariance and the step. A trial counts by where it lies, whichever distribution
 * it was drawn from, so any number may run at once and trials that people add count too: steps
 * longer than draws are shortened (N. Hansen, "Injecting external solutions into CMA-ES", 2011).
 * The first mean is the best trial of the initial design.
 *
 *   levels       keep a deviation that reaches the next level in one of (parameters x generation
 *                size) draws (R. Hamano et al., "CMA-ES with margin", 2022)
 *   choices      have a probability for each value, moved towards the better half's, with a margin
 *                (R. Hamano et al., "CatCMA", 2024, without its trust region)
 *   conditions   a parameter that is not active in a trial does not move by it
 *   dimensions   above CMAES_FULL_MOST the covariance is diagonal (R. Ros, N. Hansen, "A simple
 *                modification in CMA-ES achieving linear time and space complexity", 2008)
 *   the end      of a run that stands still: it begins anew at a random place with twice the
 *                generation (A. Auger, N. Hansen, "A restart CMA evolution strategy with increasing
 *                population size", 2005)
 *
 * The path of the step is whitened with the Cholesky factor (O. Krause et al., "CMA-ES with optimal
 * covariance update and storage complexity", 2016). The distribution is computed from the history
 * each time: O(trials x (d^2 + d^3 / generation)). */
#ifndef ASSAY_SEARCH_CMAES_CMAES_H
#define ASSAY_SEARCH_CMAES_CMAES_H

#include "search/problem/method.h"

/* Numbers with the full covariance. Beyond, O(trials x d^2) for each suggestion (all generations
 * are computed again, decision 4012) would be felt. */
#define CMAES_FULL_MOST 64

/* The reason: {"method": "cmaes", "observed", "pending", "failed", "phase", "generation",
 * "restarts", "step": its size in units of the range}. */
extern const struct search_method search_cmaes;

#endif
