/* Annealed Metropolis: the method `mcmc` (S. Kirkpatrick et al., "Optimization by simulated
 * annealing", 1983, over the chain of chain.h).
 *
 * The best trial of the initial design is where the first chain is. Its suggestion is one move
 * away; when the trial has ended, the chain goes there or stays, by the rule of Metropolis.
 * Configurations that were tried before are walked over with the results that they have, without a
 * trial. While a chain waits for its trial, the next suggestion is another chain's, and a new chain
 * is at the next best trial of the design: so there are as many chains as trials run at the same
 * time.
 *
 * The temperature of a chain after k steps is T / (1 + k / MCMC_COOLING), where T is the spread
 * (between the quartiles) of the design's values. With several metrics the cost of a trial is its
 * place in the order of population.h, from 0 to 1. What failed or broke a bound is left at once and
 * never gone to from elsewhere.
 *
 * The state that a suggestion leaves: {"chains": [{"at", "try": trials' numbers, "steps",
 * "accepted"}]}. A chain without "try" waits for no trial. */
#ifndef ASSAY_SEARCH_MCMC_MCMC_H
#define ASSAY_SEARCH_MCMC_MCMC_H

#include "search/problem/method.h"

/* Half of the spread after ten steps, an eleventh after a hundred: sweeps have hundreds of trials.
 * Other values are not recorded. */
#define MCMC_COOLING 10.0

/* The reason: {"method": "mcmc", "observed", "pending", "failed", "phase", "chain", "parent": a
 * trial's number, "changed": ["lr"], "temperature", "acceptance": accepted steps among those of the
 * chain, null before its first step}. */
extern const struct search_method search_mcmc;

#endif
