#include "trial-runner/train/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

as_status report_format(int64_t step, const struct report_value *values, size_t n, struct str *line,
                        struct as_err *err)
{
    str_printf(line, "{\"step\": %" PRId64, step);
    for (size_t i = 0; i < n; i++) {
        char number[32];
        const char *quote = isfinite(values[i].value) ? "" : "\"";
        str_printf(line, ", \"%s\": %s%s%s", values[i].name, quote,
                   as_format_double(values[i].value, number, sizeof number), quote);
    }
    str_puts(line, "}\n");
    return str_check(line, err);
}

as_status report_append(const char *path, const struct str *line, struct as_err *err)
{
    if (!path || line->len == 0)
        return AS_OK;
    AS_AUTO(file_closep) int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    ssize_t n = -1;
    if (fd >= 0) {
        do
            n = write(fd, line->s, line->len);
        while (n < 0 && errno == EINTR);
    }
    if (n < 0)
        return as_fail(err, AS_E_IO, "cannot report to %.200s: %s", path, strerror(errno));
    if ((size_t)n < line->len)
        return as_fail(err, AS_E_IO, "cannot report to %.200s: no space left", path);
    return AS_OK;
}
