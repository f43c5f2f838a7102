/* The trials of `assay fit` that run first. Pure. */
#ifndef ASSAY_CLI_FIT_FIT_FIRST_H
#define ASSAY_CLI_FIT_FIT_FIRST_H

#include <jansson.h>

#include "cli/fit/fit_plan.h"

/* A list as the API takes it, [{"params": {…}}]: one configuration of each kind, and of boosted
 * trees three. A new reference; NULL: memory is out. */
json_t *fit_first_trials(const struct fit_plan *p, const struct fit_facts *f);

/* Put configurations of other sweeps in front, as far as the plan has them: numbers are moved into
 * the ranges, other values and what the configuration lacks stay those of the first trial of its
 * kind, and a kind that the plan has not is left out, as are equal ones.
 *   spaces  the parameters of the sweep's document
 *   warm    a list of configurations, the one that is to run first first
 *   trials  from fit_first_trials()
 * Returns -1 if memory is out. */
int fit_first_trials_warm(const struct fit_plan *p, const json_t *spaces, const json_t *warm,
                          json_t *trials);

/* Leave out the last ones, so that there are no more than the plan's trials. */
void fit_first_trials_limit(const struct fit_plan *p, json_t *trials);

#endif
