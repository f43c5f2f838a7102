#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static const char *log_program = "assay";
static log_level log_lowest = LOG_INFO;
static const char *const level_names[] = {"debug", "info", "warn", "error"};

void log_setup(const char *program, log_level lowest)
{
    log_program = program;
    log_lowest = lowest;
}

as_status log_level_parse(const char *s, log_level *ret, struct as_err *err)
{
    for (unsigned i = 0; i < sizeof level_names / sizeof level_names[0]; i++) {
        if (strcmp(s, level_names[i]) == 0) {
            *ret = (log_level)i;
            return AS_OK;
        }
    }
    return as_fail(err, AS_E_INVAL, "log level: found '%.20s', expected debug, info, warn or error",
                   s);
}

void log_write(log_level level, const char *msg, const char *fmt, ...)
{
    if (level < log_lowest)
        return;
    char line[2048], ts[32];
    int n = snprintf(line, sizeof line, "ts=%s level=%s program=%s msg=\"%s\" ",
                     clock_format_utc(clock_wall_ms(), ts), level_names[level], log_program, msg);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line - 2 ? (size_t)n : sizeof line - 2;
    va_list ap;
    va_start(ap, fmt);
    n = vsnprintf(line + len, sizeof line - 1 - len, fmt, ap);
    va_end(ap);
    if (n > 0)
        len += (size_t)n < sizeof line - 2 - len ? (size_t)n : sizeof line - 2 - len;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = ' ';
    line[len++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, len);
    (void)written; /* an error of the log cannot be logged */
}
