#include "trial-runner/train/rank_lines.h"

#include <string.h>

as_status rank_lines_collect(const struct member *m, int64_t after, struct str *lines,
                             struct as_err *err)
{
    const char *last = str_cstr(&m->last_report);
    as_status st = report_file_lines(&m->report, after, lines, err);
    if (st < 0)
        return st;
    size_t n = m->last_report.len;
    if (lines->len < n || memcmp(str_cstr(lines) + lines->len - n, last, n) != 0)
        str_puts(lines, last);
    return str_check(lines, err);
}

as_status rank_lines_take(struct member *m, const struct str *lines, struct as_err *err)
{
    const char *last = str_cstr(lines), *end;
    while ((end = strchr(last, '\n')) && end[1])
        last = end + 1;
    bool is_new = !as_streq(str_cstr(lines), str_cstr(&m->last_report));
    str_clear(&m->last_report);
    str_puts(&m->last_report, last);
    as_status st = str_check(&m->last_report, err);
    return st == AS_OK && is_new ? report_file_append(&m->report, lines, err) : st;
}
