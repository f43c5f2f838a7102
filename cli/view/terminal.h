/* How a stream wants its text: a terminal of some width with colours, or plain bytes for a pipe. */
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

/* Choose a UTF-8 character type for the process (its own locale, or C.UTF-8 for measuring only).
 * Once, first. */
void terminal_setup(void);

/* What the descriptor behind `f` is now; asks the terminal for its width each time. COLUMNS wins.
 */
struct terminal terminal_of(FILE *f);

/* "…" or "...". */
const char *terminal_ellipsis(const struct terminal *terminal);

/* Append the escape that switches the style on, and the one that ends it: nothing without colours.
 */
void terminal_style_on(const struct terminal *terminal, style s, struct str *b);
void terminal_style_off(const struct terminal *terminal, style s, struct str *b);

/* The style of a sweep's, trial's or runner's state. */
style terminal_state_style(const char *state);

#endif
