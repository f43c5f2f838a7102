/* A random forest as the model of a sweep: the method `forest` (F. Hutter, H. Hoos, K.
 * Leyton-Brown, "Sequential model-based optimization for general algorithm configuration", 2011;
 * the forest and its search are in forest.h and forest_search.h).
 *
 * It follows the value of the metric where there is one objective without constraints and no trial
 * stopped at a rung; else the order of population.h. Failed trials that say something of their
 * place (training_set.h) are worse than all others. The logarithm of the priors is added to the
 * acquisition as in gp (search/prior/trust.h). */
#ifndef ASSAY_SEARCH_FOREST_FOREST_METHOD_H
#define ASSAY_SEARCH_FOREST_FOREST_METHOD_H

#include "search/problem/method.h"

/* The reason: {"method": "forest", "observed", "pending", "failed", "phase": "initial" (with
 * "point") or "search", "value": the logarithm of the expected improvement, "predicted": {"mean",
 * "deviation"} where the forest follows the metric, "prior": the weight of the priors}. */
extern const struct search_method search_forest;

#endif
