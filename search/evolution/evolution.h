/* Regularised evolution: the method `evolution` (E. Real et al., "Regularized evolution for image
 * classifier architecture search", 2019).
 *
 * The population is the EVOLUTION_POPULATION trials that ended last. Of EVOLUTION_SAMPLE of them,
 * drawn at random, the best is the parent; the suggestion is the parent with one or two of its
 * active parameters changed. Who is old leaves, however good: so a lucky measurement does not rule
 * for ever.
 *
 * A change of a choice is another choice. A change of a number is a normal step, whose width is
 * drawn between EVOLUTION_LEAST and EVOLUTION_MOST of the range on a log scale, so that both far
 * moves and fine ones happen; a level moves by at least one. What the change makes active is
 * drawn at random. */
#ifndef ASSAY_SEARCH_EVOLUTION_EVOLUTION_H
#define ASSAY_SEARCH_EVOLUTION_EVOLUTION_H

#include "search/problem/method.h"

/* Sizes for sweeps of hundreds to thousands of trials; the paper has 100 and 25 for tens of
 * thousands. Decision 4012 measures the method with these; other values are not recorded. */
#define EVOLUTION_POPULATION 50
#define EVOLUTION_SAMPLE 10
#define EVOLUTION_LEAST 0.005
#define EVOLUTION_MOST 0.5

/* The reason: {"method": "evolution", "observed", "pending", "failed", "phase", "parent": a trial's
 * number, "changed": ["lr"]}. */
extern const struct search_method search_evolution;

#endif
