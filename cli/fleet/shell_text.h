/* Text for a POSIX shell. */
#ifndef ASSAY_CLI_FLEET_SHELL_TEXT_H
#define ASSAY_CLI_FLEET_SHELL_TEXT_H

#include "base/str.h"

/* Append the text as one word of the shell, whatever it has in it: 'it'\''s'. */
void shell_quote(struct str *b, const char *text);

/* Append " NAME 'text'"; nothing if the text is NULL. */
void shell_option(struct str *b, const char *name, const char *text);
/* The same of a number; nothing if it is 0. `unit` stands behind it. */
void shell_number(struct str *b, const char *name, int64_t v, const char *unit);

/* Append "export NAME='text'" and a line end; nothing if the text is NULL. */
void shell_export(struct str *b, const char *name, const char *text);

#endif
