/* Measurements, as the runner expects them from any child: one line of JSON each, appended whole to
 * $ASSAY_REPORT with a single write. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_REPORT_H
#define ASSAY_TRIAL_RUNNER_TRAIN_REPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

struct report_value {
    const char *name;
    double value; /* NaN and infinities travel as text (base/json.h) */
};

/* {"step": …, name: value, …} and a new line, appended to `line`. AS_E_NOMEM. */
AS_MUST_CHECK as_status report_format(int64_t step, const struct report_value *values, size_t n,
                                      struct str *line, struct as_err *err);

/* Append a formatted line to the file `path`, which is made when it is not there. NULL: nowhere.
 * AS_E_IO naming the file (a full disk too). */
AS_MUST_CHECK as_status report_append(const char *path, const struct str *line, struct as_err *err);

#endif
