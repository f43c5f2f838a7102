#include "cli/view/csv_writer.h"

#include <string.h>

static bool is_formula(const char *text)
{
    return *text && strchr("=+-@\t\r", *text);
}

void csv_cell(struct str *b, bool first, csv_kind kind, const char *text)
{
    if (!first)
        str_putc(b, ',');
    bool guard = kind == CSV_TEXT && is_formula(text);
    size_t len = strlen(text);
    bool quote = strpbrk(text, ",\"\r\n") || (len && (text[0] == ' ' || text[len - 1] == ' '));
    if (quote)
        str_putc(b, '"');
    if (guard)
        str_putc(b, '\'');
    for (const char *c = text; *c; c++) {
        if (*c == '"')
            str_putc(b, '"');
        str_putc(b, *c);
    }
    if (quote)
        str_putc(b, '"');
}
