/* The lines of JSON that a trial appends to $ASSAY_REPORT.
 *
 *   {"step": 3, "val_error": 0.031}
 *
 * One object per line. `step` is a whole number >= 0; without it, the step after the one before (0
 * at first). Every other field is a metric, named [A-Za-z_][A-Za-z0-9_.-]{0,62}: a number, or
 * "NaN", "Infinity", "-Infinity" as text or bare (as Python's json writes them). A line that is
 * anything else is refused whole, and said to be so; reading goes on. Pure: bytes in, measurements
 * out. */
#ifndef ASSAY_TRIAL_RUNNER_AGENT_REPORT_READER_H
#define ASSAY_TRIAL_RUNNER_AGENT_REPORT_READER_H

#include <jansson.h>

#include "base/str.h"

#define REPORT_MAX_LINE (64 << 10)
#define REPORT_MAX_METRICS 100
#define REPORT_MAX_NAME 63
#define REPORT_MAX_STEP INT64_C(9007199254740991) /* 2^53 - 1: survives a double */

struct report_reader {
    struct str partial; /* the line being read */
    size_t line;        /* lines ended so far */
    int64_t next_step;
    bool skipping; /* the line being read is too long */
};

struct report_reader_fns {
    /* Takes `metrics`, an object of numbers. Not AS_OK ends the reading. */
    as_status (*on_item)(void *arg, int64_t step, json_t *metrics, struct as_err *err);
    void (*on_bad)(void *arg, size_t line, const char *why);
    void *arg;
};

void report_reader_done(struct report_reader *r);

/* Read more bytes; the end without a new line waits for the rest. AS_E_NOMEM, or what on_item said.
 */
AS_MUST_CHECK as_status report_reader_feed(struct report_reader *r, const char *bytes, size_t len,
                                           const struct report_reader_fns *fns, struct as_err *err);

/* The file ended: a last line without its new line counts when it is whole. */
AS_MUST_CHECK as_status report_reader_end(struct report_reader *r,
                                          const struct report_reader_fns *fns, struct as_err *err);

/* The file was truncated or replaced: forget the half line; steps go on. */
void report_reader_restart(struct report_reader *r);

#endif
