#include "cli/view/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool locale_is_utf8;

void terminal_setup(void)
{
    locale_is_utf8 = setlocale(LC_CTYPE, "") && as_streq(nl_langinfo(CODESET), "UTF-8");
    if (!locale_is_utf8)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

static size_t terminal_width(int fd)
{
    struct winsize size;
    int64_t columns;
    const char *env = getenv("COLUMNS");
    if (env && as_parse_i64(env, &columns, NULL) == AS_OK && columns >= 20 && columns < 10000)
        return (size_t)columns;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col;
    return 80;
}

struct terminal terminal_of(FILE *f)
{
    struct terminal terminal = {.unicode = locale_is_utf8, .width = SIZE_MAX};
    terminal.tty = isatty(fileno(f));
    if (terminal.tty) {
        const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
        terminal.color = !(no_color && *no_color) && !as_streq(term, "dumb");
        terminal.width = terminal_width(fileno(f));
    }
    return terminal;
}

const char *terminal_ellipsis(const struct terminal *terminal)
{
    return terminal->unicode ? "…" : "...";
}

void terminal_style_on(const struct terminal *terminal, style s, struct str *b)
{
    static const char *const codes[] = {
        [STYLE_PLAIN] = "", [STYLE_BOLD] = "1",  [STYLE_DIM] = "2",   [STYLE_GOOD] = "32",
        [STYLE_BAD] = "31", [STYLE_WARN] = "33", [STYLE_BUSY] = "36",
    };
    if (terminal->color && s != STYLE_PLAIN)
        str_printf(b, "\x1b[%sm", codes[s]);
}

void terminal_style_off(const struct terminal *terminal, style s, struct str *b)
{
    if (terminal->color && s != STYLE_PLAIN)
        str_puts(b, "\x1b[0m");
}

style terminal_state_style(const char *state)
{
    static const struct {
        const char *state;
        style style;
    } styles[] = {
        {"running", STYLE_BUSY}, {"finishing", STYLE_BUSY}, {"queued", STYLE_DIM},
        {"paused", STYLE_WARN},  {"completed", STYLE_GOOD}, {"live", STYLE_GOOD},
        {"failed", STYLE_BAD},   {"lost", STYLE_BAD},       {"cancelled", STYLE_WARN},
        {"left", STYLE_DIM},     {"pruned", STYLE_DIM},     {"ready", STYLE_GOOD},
    };
    for (size_t i = 0; state && i < AS_ARRAY_LEN(styles); i++)
        if (strcmp(state, styles[i].state) == 0)
            return styles[i].style;
    return STYLE_PLAIN;
}
