/* The sweep of a plan: its document as commented YAML, which `assay run` takes. Pure. */
#ifndef ASSAY_CLI_FIT_FIT_SWEEP_H
#define ASSAY_CLI_FIT_FIT_SWEEP_H

#include "base/status.h"
#include "base/str.h"
#include "cli/fit/fit_plan.h"

/* Append the document.
 *   name     of the sweep, and of the data set: slugs
 *   command  what made it, for the head of the document; a line */
void fit_sweep_write(const struct fit_plan *p, const struct fit_facts *f, const char *name,
                     const char *dataset, const char *command, struct str *b);

#endif
