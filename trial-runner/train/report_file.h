/* Measurements, as the runner expects them from any child: one line of JSON each, appended to
 * $ASSAY_REPORT with a single write. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_REPORT_FILE_H
#define ASSAY_TRIAL_RUNNER_TRAIN_REPORT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

struct report_value {
    const char *name;
    double value; /* NaN and infinities are written as text (base/json.h) */
};

/* Append {"step": …, name: value, …} and a newline to `line`. AS_E_NOMEM. */
AS_MUST_CHECK as_status report_format(int64_t step, const struct report_value *values, size_t n,
                                      struct str *line, struct as_err *err);

/* A report file. The first line opens it, and it stays open, because on a busy file system opening
 * takes longer than an epoch of a small model. One thread at a time. */
struct report_file {
    char *path; /* owned; NULL: lines go nowhere */
    int fd;     /* -1: not open yet */
};

/* Copy path, which may be NULL. The file is not opened yet. AS_E_NOMEM. */
AS_MUST_CHECK as_status report_file_init(struct report_file *r, const char *path,
                                         struct as_err *err);
void report_file_done(struct report_file *r);

/* Append a formatted line in one write. The file is created if it does not exist. AS_E_IO naming
 * the file, also for a full disk. */
AS_MUST_CHECK as_status report_file_append(struct report_file *r, const struct str *line,
                                           struct as_err *err);

/* The step of a line that report_format() wrote; -1: another text. */
int64_t report_step(const char *line);

#define REPORT_LINES_MAX ((size_t)16 << 20)

/* Append to `lines` those of the file whose step is above `after`, of its last REPORT_LINES_MAX
 * bytes. A file that does not exist has none. AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status report_file_lines(const struct report_file *r, int64_t after,
                                          struct str *lines, struct as_err *err);

#endif
