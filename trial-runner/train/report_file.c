/* Writes lines of measurements, and reads back those that a rank that joins has not reported.
 *
 * A line is one write to a file that was opened for appending: a process that dies leaves whole
 * lines. A value that is not finite is a text, because JSON has no such number. */
#include "trial-runner/train/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define STEP_FIRST "{\"step\": "

as_status report_format(int64_t step, const struct report_value *values, size_t n, struct str *line,
                        struct as_err *err)
{
    str_printf(line, STEP_FIRST "%" PRId64, step);
    for (size_t i = 0; i < n; i++) {
        char number[32];
        bool plain = isfinite(values[i].value);
        str_puts(line, ", \"");
        str_puts(line, values[i].name);
        str_puts(line, plain ? "\": " : "\": \"");
        str_puts(line, as_format_double(values[i].value, number, sizeof number));
        if (!plain)
            str_putc(line, '"');
    }
    str_puts(line, "}\n");
    return str_check(line, err);
}

as_status report_file_init(struct report_file *r, const char *path, struct as_err *err)
{
    *r = (struct report_file){.path = as_strdup(path), .fd = -1};
    return path && !r->path ? as_fail_nomem(err) : AS_OK;
}

void report_file_done(struct report_file *r)
{
    free(r->path);
    if (r->fd >= 0)
        (void)close(r->fd);
    *r = (struct report_file){.fd = -1};
}

as_status report_file_append(struct report_file *r, const struct str *line, struct as_err *err)
{
    if (!r->path || line->len == 0)
        return AS_OK;
    if (r->fd < 0)
        r->fd = open(r->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    ssize_t n = -1;
    if (r->fd >= 0) {
        do
            n = write(r->fd, line->s, line->len);
        while (n < 0 && errno == EINTR);
    }
    if (n < 0)
        return as_fail(err, AS_E_IO, "cannot report to %.200s: %s", r->path, strerror(errno));
    if ((size_t)n < line->len)
        return as_fail(err, AS_E_IO, "cannot report to %.200s: no space left", r->path);
    return AS_OK;
}

int64_t report_step(const char *line)
{
    char *end = NULL;
    if (!as_starts_with(line, STEP_FIRST))
        return -1;
    long long step = strtoll(line + strlen(STEP_FIRST), &end, 10);
    return *end == ',' || *end == '}' ? step : -1;
}

/* Read `n` bytes at `at`, fewer if the file has become shorter. `buf` has room for a NUL. */
static as_status read_at(int fd, char *buf, size_t n, int64_t at, const char *path,
                         struct as_err *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(fd, buf + done, n - done, (off_t)at + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return as_fail(err, AS_E_IO, "cannot read %.200s: %s", path, strerror(errno));
        if (got == 0)
            break;
        done += (size_t)got;
    }
    buf[done] = '\0';
    return AS_OK;
}

as_status report_file_lines(const struct report_file *r, int64_t after, struct str *lines,
                            struct as_err *err)
{
    struct stat sb;
    AS_AUTO(file_closep) int fd = r->path ? open(r->path, O_RDONLY | O_CLOEXEC) : -1;
    if (!r->path || (fd < 0 && errno == ENOENT))
        return AS_OK;
    if (fd < 0 || fstat(fd, &sb) < 0)
        return as_fail(err, AS_E_IO, "cannot read %.200s: %s", r->path, strerror(errno));
    size_t n = (size_t)sb.st_size < REPORT_LINES_MAX ? (size_t)sb.st_size : REPORT_LINES_MAX;
    AS_AUTO(as_freep) char *text = malloc(n + 1);
    if (!text)
        return as_fail_nomem(err);
    as_status st = read_at(fd, text, n, sb.st_size - (int64_t)n, r->path, err);
    if (st < 0)
        return st;
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        if (report_step(line) <= after) /* also the rest of a line that was cut */
            continue;
        *end = '\0';
        str_printf(lines, "%s\n", line);
    }
    return str_check(lines, err);
}
