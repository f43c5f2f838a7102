/* Text for a POSIX shell. */
#ifndef ASSAY_BASE_SHELL_TEXT_H
#define ASSAY_BASE_SHELL_TEXT_H

#include "base/str.h"

/* Append the text as one word of the shell, whatever it has in it: 'it'\''s'. */
void shell_quote(struct str *b, const char *text);

/* The same, but a text of letters, digits and . _ - / @ alone stays as it is. */
void shell_word(struct str *b, const char *text);

/* Append " NAME N" with `unit` behind it; nothing if the number is 0. */
void shell_number(struct str *b, const char *name, int64_t v, const char *unit);

/* Append "export NAME='text'" and a line end; nothing if the text is NULL. */
void shell_export(struct str *b, const char *name, const char *text);

#endif
