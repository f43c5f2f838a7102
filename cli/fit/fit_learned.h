/* Configurations that were good together on public tables, in the order in which they run: `assay
 * fit` begins with them where its server has seen no similar table (decision 4030).
 * bench/models/defaults.py writes the list. */
#ifndef ASSAY_CLI_FIT_FIT_LEARNED_H
#define ASSAY_CLI_FIT_FIT_LEARNED_H

#include <stddef.h>

/* NAME=VALUE …: parameters of the sweeps of `assay fit`; what is not there is that of the first
 * trial of the kind. */
extern const char *const fit_learned[];
extern const size_t fit_n_learned;

#endif
