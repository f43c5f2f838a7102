#include "cli/view/meter.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/view/format.h"
#include "cli/view/say.h"
#include "cli/view/terminal.h"
#include "cli/view/text.h"

#define FIRST_NS NS_PER_S
#define TERMINAL_NS (NS_PER_S / 4)
#define PLAIN_NS (10 * NS_PER_S)

void meter_start(struct meter *m, const char *name, const char *doing, int64_t total_bytes)
{
    *m = (struct meter){.name = name,
                        .doing = doing,
                        .total_bytes = total_bytes,
                        .start_ns = clock_mono_ns(),
                        .tty = isatty(STDERR_FILENO) && !say_is_quiet()};
}

void meter_format(const struct meter *m, int64_t done_bytes, struct str *b)
{
    char done[32], total[32];
    str_printf(b, "%s: %s, %s", m->name, m->doing, format_size(done_bytes, done));
    if (m->total_bytes > 0)
        str_printf(b, " of %s (%.0f %%)", format_size(m->total_bytes, total),
                   100.0 * (double)done_bytes / (double)m->total_bytes);
}

static void draw_line(const char *text)
{
    struct str escaped = {0}, line = {0};
    struct terminal terminal = terminal_of(stderr);
    text_escape(&escaped, text, strlen(text), TEXT_ONE_LINE);
    text_cut(&line, str_cstr(&escaped), terminal.width - 1, terminal_ellipsis(&terminal));
    (void)fprintf(stderr, "\r%s\x1b[K\r", str_cstr(&line));
    (void)fflush(stderr);
    str_done(&escaped);
    str_done(&line);
}

void meter_show(struct meter *m, int64_t done_bytes)
{
    int64_t now = clock_mono_ns();
    int64_t next =
        m->shown ? m->shown_ns + (m->tty ? TERMINAL_NS : PLAIN_NS) : m->start_ns + FIRST_NS;
    if (now < next)
        return;
    m->shown = true;
    m->shown_ns = now;
    struct str b = {0};
    meter_format(m, done_bytes, &b);
    if (m->tty)
        draw_line(str_cstr(&b));
    else
        say("%s", str_cstr(&b));
    str_done(&b);
}

void meter_end(struct meter *m)
{
    if (m->tty && m->shown)
        (void)fputs("\r\x1b[K", stderr);
    m->shown = false;
}
