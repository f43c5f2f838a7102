/* The trials of `assay fit` that run first. Pure. */
#ifndef ASSAY_CLI_FIT_FIT_FIRST_H
#define ASSAY_CLI_FIT_FIT_FIRST_H

#include <jansson.h>

#include "cli/fit/fit_plan.h"

/* A list as the API takes it, [{"params": {…}}]: one configuration of each kind, and of boosted
 * trees three. A new reference; NULL: memory is out. */
json_t *fit_first_trials(const struct fit_plan *p, const struct fit_facts *f);

/* Configurations that were found elsewhere; borrowed, each may be NULL. */
struct fit_found {
    const json_t *warm;     /* of other sweeps of this server, the one that is to run first first */
    const json_t *defaults; /* of fit_defaults(): they fill up, if there are fewer … */
    size_t most;            /* … than these */
};

/* Put them in front, as far as the plan has them. What a configuration lacks is that of the first
 * trial of its kind; a kind that the plan has not is left out, as are equal ones: what was among
 * the trials already comes forward. Of other sweeps numbers are moved into the ranges, and other
 * values stay those of the first trial; a default with a value that the space excludes is left out.
 *   spaces  the parameters of the sweep's document
 *   trials  from fit_first_trials()
 *   says    a line for each default that is used
 * Returns -1 if memory is out. */
int fit_first_trials_found(const struct fit_plan *p, const json_t *spaces,
                           const struct fit_found *found, json_t *trials, struct str *says);

/* Leave out the last ones, so that there are no more than the plan's trials. */
void fit_first_trials_limit(const struct fit_plan *p, json_t *trials);

#endif
