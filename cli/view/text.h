/* Text for terminals: width, padding, truncation, and the escaping of characters that control a
 * terminal.
 *
 * Input is UTF-8. Widths need a UTF-8 LC_CTYPE (terminal_setup chooses one); without it a character
 * that is not ASCII counts as one column. */
#ifndef ASSAY_CLI_VIEW_TEXT_H
#define ASSAY_CLI_VIEW_TEXT_H

#include <stddef.h>

#include "base/str.h"

typedef enum text_lines {
    TEXT_ONE_LINE,   /* new lines and tabs are escaped too */
    TEXT_KEEP_LINES, /* new lines and tabs stay */
} text_lines;

/* Append s with control characters (C0, DEL, C1), bidirectional overrides and bytes that are not
 * UTF-8 written as \n, \t, \r, \xNN or \u{N}. */
void text_escape(struct str *b, const char *s, size_t len, text_lines lines);

/* The number of columns that s takes on a terminal. */
size_t text_width(const char *s);

/* Append s in exactly `width` columns: cut with `ellipsis` at its end when too long, filled with
 * blanks on the right (or left) when shorter. `ellipsis` is "…" or "...". */
void text_pad(struct str *b, const char *s, size_t width, bool to_right, const char *ellipsis);

/* Append at most `width` columns of s, cut as text_pad does. */
void text_cut(struct str *b, const char *s, size_t width, const char *ellipsis);

#endif
