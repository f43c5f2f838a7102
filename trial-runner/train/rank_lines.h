/* Report lines that go to a rank that is behind: each rank's report file has every line, also of
 * steps that it took no part in. So whichever rank leads when a checkpoint is kept can send all
 * lines before it, although the runner of the rank that led when they were measured is gone with
 * those that it had not sent. */
#ifndef ASSAY_TRIAL_RUNNER_TRAIN_RANK_LINES_H
#define ASSAY_TRIAL_RUNNER_TRAIN_RANK_LINES_H

#include "trial-runner/train/member.h"

/* The lines of steps above `after`, which the receiver has reported last, and m's last line.
 * AS_E_IO, AS_E_NOMEM. */
AS_MUST_CHECK as_status rank_lines_collect(const struct member *m, int64_t after, struct str *lines,
                                           struct as_err *err);

/* Appends the lines to m's report; the last one is the report that it has now. AS_E_IO,
 * AS_E_NOMEM. */
AS_MUST_CHECK as_status rank_lines_take(struct member *m, const struct str *lines,
                                        struct as_err *err);

#endif
