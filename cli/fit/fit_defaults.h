/* What `assay fit` begins with where its server has seen too few similar tables: configurations
 * that were good on public ones (fit_learned.h). Pure. */
#ifndef ASSAY_CLI_FIT_FIT_DEFAULTS_H
#define ASSAY_CLI_FIT_FIT_DEFAULTS_H

#include <jansson.h>

/* A list of configurations, the one that is to run first first. A new reference; NULL: memory is
 * out. */
json_t *fit_defaults(void);

#endif
