/* Reads the lines of JSON that a trial appends to $ASSAY_REPORT.
 *
 *   {"step": 3, "val_error": 0.031}
 *
 * One object per line. `step` is a whole number >= 0. A line without it has the step after that of
 * the line before, and the first line has 0. Every other field is a metric, named
 * [A-Za-z_][A-Za-z0-9_.-]{0,62}: a number, or "NaN", "Infinity", "-Infinity" as text or bare (as
 * Python's json writes them). Any other line is refused as a whole and passed to on_bad, and
 * reading continues with the next line. Pure: bytes in, measurements out. */
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
    /* Takes `metrics`, an object of numbers. A status other than AS_OK ends the reading. */
    as_status (*on_item)(void *arg, int64_t step, json_t *metrics, struct as_err *err);
    void (*on_bad)(void *arg, size_t line, const char *why);
    void *arg;
};

void report_reader_done(struct report_reader *r);

/* Read more bytes. A last line without a newline is kept until the rest comes. AS_E_NOMEM, or the
 * status of on_item. */
AS_MUST_CHECK as_status report_reader_feed(struct report_reader *r, const char *bytes, size_t len,
                                           const struct report_reader_fns *fns, struct as_err *err);

/* The file has ended: a last line without a newline counts if it is complete. */
AS_MUST_CHECK as_status report_reader_end(struct report_reader *r,
                                          const struct report_reader_fns *fns, struct as_err *err);

/* The file was truncated or replaced: forget the incomplete line. Steps continue. */
void report_reader_restart(struct report_reader *r);

#endif
