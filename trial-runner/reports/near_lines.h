/* Lines of a program's output in which a metric was perhaps meant. */
#ifndef ASSAY_TRIAL_RUNNER_REPORTS_NEAR_LINES_H
#define ASSAY_TRIAL_RUNNER_REPORTS_NEAR_LINES_H

#include <stddef.h>

#include "base/str.h"

#define NEAR_MAX_LINES 3
#define NEAR_MAX_BYTES 120 /* of a line */

/* Append the last NEAR_MAX_LINES lines of `log` that have a digit and the metric's name, or one of
 * n texts of at least three characters, each shortened and in quotes: 'a', 'b'. In a name capitals
 * and the characters between its words do not count: "Val loss" is val_loss. The runner's own lines
 * do not count. If none has a digit, lines with the name alone. */
void near_lines(const char *log, const char *metric, const char *const *texts, size_t n,
                struct str *b);

#endif
