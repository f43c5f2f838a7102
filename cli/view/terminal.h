/* Properties of an output stream: a terminal with a width and colours, or a pipe. */
#ifndef ASSAY_CLI_VIEW_TERMINAL_H
#define ASSAY_CLI_VIEW_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/str.h"

typedef enum style {
    STYLE_PLAIN,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_GOOD,
    STYLE_BAD,
    STYLE_WARN,
    STYLE_BUSY,
} style;

struct terminal {
    bool tty;
    bool color;   /* a terminal, and NO_COLOR is not set */
    bool unicode; /* the locale is UTF-8 */
    size_t width; /* columns; SIZE_MAX: do not cut */
};

/* Set LC_CTYPE of the process: its own locale if that is UTF-8, else C.UTF-8, which is then used
 * only to measure text. main() calls it once, before all else. */
void terminal_setup(void);

/* The properties of the stream `f` now. The width comes from COLUMNS if it is set, else from the
 * terminal, which is asked each time. */
struct terminal terminal_of(FILE *f);

/* "…" or "...". */
const char *terminal_ellipsis(const struct terminal *terminal);

/* Append the escape sequence that begins or ends a style; nothing without colours. */
void terminal_style_on(const struct terminal *terminal, style s, struct str *b);
void terminal_style_off(const struct terminal *terminal, style s, struct str *b);

/* The style for a state of a sweep, trial or runner. */
style terminal_state_style(const char *state);

#endif
