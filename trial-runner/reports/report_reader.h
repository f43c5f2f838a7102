/* Reads the lines of JSON that a trial appends to $ASSAY_REPORT.
 *
 *   {"step": 3, "val_error": 0.031}
 *
 * One object per line. `step` is a whole number >= 0. A line without it has the step after that of
 * the line before, and the first line has 0. Every other field is a metric, named
 * as base/metric_name.h says, if it is a number, or "NaN", "Infinity", "-Infinity" as text or
 * bare (as Python's json writes them). A text, a list, an object or a truth is a note; null is as
 * if the field were absent. A field with another name is skipped and passed to on_bad, and the
 * others count. A line that is no object, is too long, has a wrong step or nothing to keep is
 * passed to on_bad as a whole. Pure: bytes in, measurements out. */
#ifndef ASSAY_TRIAL_RUNNER_REPORTS_REPORT_READER_H
#define ASSAY_TRIAL_RUNNER_REPORTS_REPORT_READER_H

#include "base/str.h"
#include "trial-runner/reports/measured.h"

#define REPORT_MAX_LINE (64 << 10)

struct report_reader {
    struct str partial; /* the line being read */
    size_t line;        /* lines ended so far */
    int64_t next_step;
    bool skipping;         /* the line being read is too long */
    const char *step_name; /* of the field with the step; borrowed; NULL: "step" */
    bool of_others;        /* the file is not written for Assay: names are made valid ones */
};

void report_reader_done(struct report_reader *r);

/* Read more bytes. A last line without a newline is kept until the rest comes. AS_E_NOMEM, or the
 * status of on_item. */
AS_MUST_CHECK as_status report_reader_feed(struct report_reader *r, const char *bytes, size_t len,
                                           const struct report_fns *fns, struct as_err *err);

/* The file has ended: a last line without a newline counts if it is complete. */
AS_MUST_CHECK as_status report_reader_end(struct report_reader *r, const struct report_fns *fns,
                                          struct as_err *err);

/* The file was truncated or replaced: forget the incomplete line. Steps continue. */
void report_reader_restart(struct report_reader *r);

#endif
