/* What to say when a program ended well and its metric was never reported. */
#ifndef ASSAY_TRIAL_RUNNER_DELIVERY_NEVER_REPORTED_H
#define ASSAY_TRIAL_RUNNER_DELIVERY_NEVER_REPORTED_H

#include "trial-runner/attempt/attempt.h"

/* Append the reason: which metric, what was reported instead (`seen`) and what was skipped, as
 * its name is none of a metric (`skipped`): objects with a field for each name, may be NULL; which
 * sources had nothing, which lines of the output came near, and where to read on. At most
 * VERDICT_REASON_MAX bytes. The attempt has ended and its collector has finished. */
void never_reported(const struct attempt *a, const char *metric, const json_t *seen,
                    const json_t *skipped, struct str *b);

#endif
