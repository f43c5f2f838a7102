#include "base/shell_text.h"

#include <string.h>

void shell_quote(struct str *b, const char *text)
{
    str_putc(b, '\'');
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            str_puts(b, "'\\''");
        else
            str_putc(b, *c);
    str_putc(b, '\'');
}

void shell_word(struct str *b, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/@";
    if (*text && *text != '-' && !text[strspn(text, plain)])
        str_puts(b, text);
    else
        shell_quote(b, text);
}

void shell_number(struct str *b, const char *name, int64_t v, const char *unit)
{
    if (v > 0)
        str_printf(b, " %s %lld%s", name, (long long)v, unit);
}

void shell_export(struct str *b, const char *name, const char *text)
{
    if (!text)
        return;
    str_printf(b, "export %s=", name);
    shell_quote(b, text);
    str_putc(b, '\n');
}
