/* What the readers of this folder have in common: where they pass measurements, and how names and
 * numbers of other programs become metrics. */
#ifndef ASSAY_TRIAL_RUNNER_REPORTS_MEASURED_H
#define ASSAY_TRIAL_RUNNER_REPORTS_MEASURED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metric_name.h"
#include "base/status.h"

#define REPORT_MAX_METRICS 100                    /* of one item */
#define REPORT_MAX_STEP INT64_C(9007199254740991) /* 2^53 - 1: survives a double */
#define REPORT_MAX_NOTE 1024                      /* bytes of a note's text */

struct report_fns {
    /* Takes `metrics`, an object of numbers. A status other than AS_OK ends the reading. */
    as_status (*on_item)(void *arg, int64_t step, json_t *metrics, struct as_err *err);
    /* Something was skipped. `line` counts from 1; 0: not of one line. */
    void (*on_bad)(void *arg, size_t line, const char *why);
    /* A text beside the numbers: `name` as for a metric, `text` UTF-8 of at most REPORT_MAX_NOTE
     * bytes; both borrowed. NULL: texts are skipped. */
    as_status (*on_note)(void *arg, const char *name, const char *text, struct as_err *err);
    /* A field was skipped: its name is none of a metric, or there are too many. The name is
     * borrowed; on_bad was told why. May be NULL. */
    void (*on_skip)(void *arg, const char *name);
    void *arg;
};

/* A number as programs print it: 0.5, -1e-3, +2, .5, 1., nan, -inf, Infinity (any case); blanks
 * around it do not count. False: it is something else. */
bool report_number(const char *text, size_t len, double *ret);

/* A whole number from 0 to REPORT_MAX_STEP, as programs print it: 3, 3.0. */
bool report_step(const char *text, size_t len, int64_t *ret);

/* Copy a text as a note: valid UTF-8, not cut inside a character. */
void report_note_text(const char *text, size_t len, char ret[REPORT_MAX_NOTE + 1]);

/* Put a number into an object of metrics. AS_E_NOMEM. */
AS_MUST_CHECK as_status report_put(json_t *metrics, const char *name, double value,
                                   struct as_err *err);

#endif
