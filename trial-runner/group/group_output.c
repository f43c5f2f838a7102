#include "trial-runner/group/group_output.h"

#include <string.h>

#define MARK_LEN (sizeof GROUP_OUTPUT_MARK - 1)

static char printable(char c)
{
    return (unsigned char)c < ' ' || c == 0x7f ? ' ' : c;
}

static void keep_last(struct group_output *o)
{
    size_t blank = 0;
    while (blank < o->len && printable(o->line[blank]) == ' ')
        blank++;
    if (blank == o->len)
        return;
    for (size_t i = 0; i < o->len; i++)
        o->last[i] = printable(o->line[i]);
    o->last[o->len] = '\0';
}

static void end_line(struct group_output *o, group_output_line_fn *on_line, void *arg)
{
    char text[MARK_LEN + GROUP_OUTPUT_LINE + 1];
    memcpy(text, GROUP_OUTPUT_MARK, MARK_LEN);
    memcpy(text + MARK_LEN, o->line, o->len);
    text[MARK_LEN + o->len] = '\n';
    on_line(arg, text, MARK_LEN + o->len + 1);
    keep_last(o);
    o->len = 0;
}

void group_output_add(struct group_output *o, const char *bytes, size_t n,
                      group_output_line_fn *on_line, void *arg)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            end_line(o, on_line, arg);
            continue;
        }
        if (o->len == GROUP_OUTPUT_LINE)
            end_line(o, on_line, arg);
        o->line[o->len++] = bytes[i];
    }
}

void group_output_end(struct group_output *o, group_output_line_fn *on_line, void *arg)
{
    if (o->len > 0)
        end_line(o, on_line, arg);
}
