/* Figures in the text format of Prometheus, 0.0.4, each with HELP and TYPE. */
#ifndef ASSAY_BASE_PROMETHEUS_H
#define ASSAY_BASE_PROMETHEUS_H

#include <stdint.h>

#include "base/str.h"

/* The lines before the values of a metric. Names and help are the program's own: nothing is
 * escaped. */
void prometheus_head(struct str *b, const char *name, const char *type, const char *help);

/* A metric with one value and no label. */
void prometheus_counter(struct str *b, const char *name, const char *help, int64_t v);
void prometheus_gauge(struct str *b, const char *name, const char *help, int64_t v);

#endif
