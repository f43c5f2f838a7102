#include "cli/view/pairs.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/view/format.h"
#include "cli/view/text.h"

void pairs_add(struct pairs *p, const char *name, style s, const char *value)
{
    if (!value || !*value)
        return;
    struct str label = {0};
    text_escape(&label, name, strlen(name), TEXT_ONE_LINE);
    if (p->terminal.tty) {
        terminal_style_on(&p->terminal, STYLE_DIM, &p->text);
        text_pad(&p->text, str_cstr(&label), p->name_width, false, terminal_ellipsis(&p->terminal));
        terminal_style_off(&p->terminal, STYLE_DIM, &p->text);
        str_puts(&p->text, "  ");
    } else {
        str_puts(&p->text, str_cstr(&label));
        str_putc(&p->text, '\t');
    }
    terminal_style_on(&p->terminal, s, &p->text);
    text_escape(&p->text, value, strlen(value), TEXT_ONE_LINE);
    terminal_style_off(&p->terminal, s, &p->text);
    str_putc(&p->text, '\n');
    p->text.failed = p->text.failed || label.failed;
    str_done(&label);
}

void pairs_addf(struct pairs *p, const char *name, const char *fmt, ...)
{
    char value[600];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(value, sizeof value, fmt, args);
    va_end(args);
    pairs_add(p, name, STYLE_PLAIN, value);
}

void pairs_add_json(struct pairs *p, const char *name, const json_t *v)
{
    struct str b = {0};
    format_value(&b, v, p->terminal.tty ? FORMAT_SHORT : FORMAT_EXACT);
    pairs_add(p, name, STYLE_PLAIN, str_cstr(&b));
    p->text.failed = p->text.failed || b.failed;
    str_done(&b);
}

as_status pairs_print(struct pairs *p, struct as_err *err)
{
    as_status st = str_check(&p->text, err);
    if (st == AS_OK && fwrite(str_cstr(&p->text), 1, p->text.len, stdout) != p->text.len)
        st = as_fail(err, AS_E_IO, "cannot write the output");
    str_done(&p->text);
    return st;
}
