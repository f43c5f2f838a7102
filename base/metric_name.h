/* The names of metrics: one rule for documents, reports, requests, tables and the CLI. It has what
 * Lightning, TensorBoard, W&B and others write: val/acc, train.loss, recall@10,
 * metrics/mAP50-95(B). Blanks, commas, quotes, colons and = are left out, because names stand in
 * lists, in tables and before values. api/openapi.yaml (MetricName) says the same. */
#ifndef ASSAY_BASE_METRIC_NAME_H
#define ASSAY_BASE_METRIC_NAME_H

#include <stdbool.h>

#define METRIC_NAME_MAX 63 /* bytes */
#define METRIC_NAME_RULE                                                                           \
    "a letter or _, then letters, digits and _ . - / @ ( ), at most 63 characters"

/* Is it a name of a metric, [A-Za-z_][A-Za-z0-9_./@()-]{0,62}? */
bool metric_name_valid(const char *name);

/* Another program's name as that of a metric: `_` for each byte that is not allowed, and before a
 * first one that may not be first; cut to METRIC_NAME_MAX. Never empty. */
void metric_name_from(const char *name, char ret[METRIC_NAME_MAX + 1]);

#endif
