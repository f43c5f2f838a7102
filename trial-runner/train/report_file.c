#include "trial-runner/train/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

as_status report_format(int64_t step, const struct report_value *values, size_t n, struct str *line,
                        struct as_err *err)
{
    str_printf(line, "{\"step\": %" PRId64, step);
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
