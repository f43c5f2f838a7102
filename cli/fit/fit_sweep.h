/* The sweep of a plan: its document as commented YAML, which `assay run` takes, and the trials that
 * run first. Pure. */
#ifndef ASSAY_CLI_FIT_FIT_SWEEP_H
#define ASSAY_CLI_FIT_FIT_SWEEP_H

#include <jansson.h>

#include "base/status.h"
#include "base/str.h"
#include "cli/fit/fit_plan.h"

/* Append the document.
 *   name     of the sweep, and of the data set: slugs
 *   command  what made it, for the head of the document; a line */
void fit_sweep_write(const struct fit_plan *p, const struct fit_facts *f, const char *name,
                     const char *dataset, const char *command, struct str *b);

/* The configurations that run first, as the body of addTrial: one of each kind that is good on
 * most tables, the fastest first, so that the sweep has a model after the shortest time; no more
 * than the sweep may have. New reference; NULL when memory is out. */
json_t *fit_sweep_first_trials(const struct fit_plan *p, const struct fit_facts *f);

#endif
