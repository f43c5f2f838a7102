/* One line of logfmt on stderr: `ts=… level=info msg="trial claimed" trial=digits/3 attempt=1`.
 *
 * Only programs log: the function that makes an error final logs it once, with its ids.
 * Thread-safe: a line is one write(2). */
#ifndef ASSAY_BASE_LOG_H
#define ASSAY_BASE_LOG_H

#include "base/status.h"

typedef enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR } log_level;

/* The program's name and the lowest level written. `program` is a literal: it is never copied. */
void log_setup(const char *program, log_level lowest);

/* "debug", "info", "warn", "error". AS_E_INVAL. */
AS_MUST_CHECK as_status log_level_parse(const char *s, log_level *ret, struct as_err *err);

/* `fmt` is the rest of the line as logfmt pairs after a quoted message:
 *   log_write(LOG_INFO, "trial claimed", "trial=%s attempt=%d", name, attempt);
 * A value with a blank, a quote, an equals sign, a backslash or a control character is written in
 * quotes, with \", \\, \n, \r, \t and \u00XX inside, so that a reader gets the value back; so is
 * an empty one, and one that has quotes in `fmt`. A %s without a key stands for pairs of ids that
 * the program has formatted before (an attempt's label) and is written as it is. A NULL of %s is
 * empty. `fmt` may be "". A line has at most 2 KiB: what does not fit is left out, and its quotes
 * are closed. Directives: %s, %c, %d, %u, %x, %ld, %lld, %zu, %g, %f and their precisions. */
void log_write(log_level level, const char *msg, const char *fmt, ...) AS_PRINTF(3, 4);

#endif
