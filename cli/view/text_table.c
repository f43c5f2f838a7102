/* Tables for terminals and pipes.
 *
 * Cells are stored as escaped copies, and their widths are measured when they are added. Only
 * table_format() knows the terminal, so that the same table can go to a pipe, where widths play no
 * role. Numbers are never cut, because a cut number is a wrong number; texts are.
 *
 * No function that adds to a table returns a status. The first failure sets `failed`, and
 * table_format() reports it: a verb adds hundreds of cells and checks once. */
#include "cli/view/text_table.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "cli/view/text.h"

#define GAP 2 /* blanks between columns */

struct column {
    char *header;
    table_align align;
    size_t min;
    size_t natural; /* width of the widest cell or the header */
    size_t cells;   /* width of the widest cell */
    size_t width;   /* chosen by fit_columns() */
};

struct cell {
    char *text; /* NULL: there is no value */
    style style;
};

struct table {
    struct column *columns;
    size_t n_columns, columns_cap;
    struct cell *cells;
    size_t n_cells, cells_cap;
    size_t shown; /* columns, from the left; chosen by table_format_head() */
    bool failed;
};

struct table *table_create(void)
{
    return as_calloc(1, sizeof(struct table));
}

void table_free(struct table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_columns; i++)
        free(t->columns[i].header);
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i].text);
    free(t->columns);
    free(t->cells);
    free(t);
}

static char *copy_escaped(const char *text)
{
    struct str b = {0};
    text_escape(&b, text, strlen(text), TEXT_ONE_LINE);
    if (!b.s && !b.failed)
        return as_strdup("");
    return str_take(&b);
}

void table_column(struct table *t, const char *header, table_align align, size_t min)
{
    if (t->failed ||
        as_reserve_one(&t->columns, t->n_columns, &t->columns_cap, sizeof *t->columns, NULL) < 0) {
        t->failed = true;
        return;
    }
    struct column *c = &t->columns[t->n_columns];
    *c = (struct column){.header = copy_escaped(header), .align = align};
    t->failed = !c->header;
    if (t->failed)
        return;
    c->natural = text_width(c->header);
    c->min = min ? min : c->natural;
    t->n_columns++;
}

void table_cell_styled(struct table *t, style s, const char *text)
{
    if (t->failed ||
        as_reserve_one(&t->cells, t->n_cells, &t->cells_cap, sizeof *t->cells, NULL) < 0) {
        t->failed = true;
        return;
    }
    struct cell *cell = &t->cells[t->n_cells];
    *cell = (struct cell){.text = text ? copy_escaped(text) : NULL, .style = s};
    t->failed = text && !cell->text;
    if (t->failed)
        return;
    struct column *c = &t->columns[t->n_cells++ % t->n_columns];
    size_t width = text ? text_width(cell->text) : 1;
    c->cells = width > c->cells ? width : c->cells;
    c->natural = width > c->natural ? width : c->natural;
}

void table_cell(struct table *t, const char *text)
{
    table_cell_styled(t, STYLE_PLAIN, text);
}

void table_cellf(struct table *t, const char *fmt, ...)
{
    char buf[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(buf, sizeof buf, fmt, args);
    va_end(args);
    table_cell(t, buf);
}

size_t table_rows(const struct table *t)
{
    return t->n_columns ? t->n_cells / t->n_columns : 0;
}

static size_t sum_widths(const struct table *t, size_t shown)
{
    size_t sum = shown > 0 ? (shown - 1) * GAP : 0;
    for (size_t i = 0; i < shown; i++)
        sum += t->columns[i].width;
    return sum;
}

static size_t least_width(const struct column *c)
{
    size_t least = c->align == TABLE_RIGHT && c->cells > c->min ? c->cells : c->min;
    return c->natural < least ? c->natural : least;
}

/* Choose the widths so that the first columns fit into `room`; returns how many are shown. First,
 * columns are hidden from the right until the minimum widths of the others fit. Then the widest
 * column loses one column at a time until the line fits: narrow columns keep their full text. */
static size_t fit_columns(const struct table *t, size_t room)
{
    size_t shown = t->n_columns;
    for (size_t i = 0; i < shown; i++)
        t->columns[i].width = least_width(&t->columns[i]);
    while (shown > 1 && sum_widths(t, shown) > room)
        shown--;
    for (size_t i = 0; i < shown; i++) {
        struct column *c = &t->columns[i];
        size_t least = least_width(c);
        c->width = c->natural <= room ? c->natural : least > room ? least : room;
    }
    while (sum_widths(t, shown) > room) {
        struct column *widest = NULL;
        for (size_t i = 0; i < shown; i++) {
            struct column *c = &t->columns[i];
            if (c->width > least_width(c) && (!widest || c->width > widest->width))
                widest = c;
        }
        if (!widest)
            break;
        widest->width--;
    }
    return shown;
}

static void format_line(const struct table *t, const struct terminal *terminal, size_t shown,
                        const struct cell *cells, struct str *b)
{
    const char *ellipsis = terminal_ellipsis(terminal);
    for (size_t i = 0; i < shown; i++) {
        const struct column *c = &t->columns[i];
        style s = cells ? cells[i].style : STYLE_BOLD;
        const char *text = cells ? cells[i].text : c->header;
        struct str upper = {0};
        for (const char *h = c->header; !cells && *h; h++)
            str_putc(&upper, (char)((unsigned char)*h < 0x80 ? toupper((unsigned char)*h) : *h));
        text = cells ? (text ? text : "-") : str_cstr(&upper);
        if (i > 0)
            str_puts(b, "  ");
        terminal_style_on(terminal, s, b);
        if (i + 1 < shown || c->align == TABLE_RIGHT)
            text_pad(b, text, c->width, c->align == TABLE_RIGHT, ellipsis);
        else
            text_cut(b, text, c->width, ellipsis); /* no blanks at the end of a line */
        terminal_style_off(terminal, s, b);
        str_done(&upper);
    }
    str_putc(b, '\n');
}

static void format_tabs(const struct table *t, struct str *b)
{
    for (size_t i = 0; i < table_rows(t) * t->n_columns; i++) {
        str_puts(b, t->cells[i].text ? t->cells[i].text : "");
        str_putc(b, (i + 1) % t->n_columns ? '\t' : '\n');
    }
}

as_status table_format_head(struct table *t, const struct terminal *terminal, struct str *b,
                            struct str *ret_hidden, struct as_err *err)
{
    if (t->failed)
        return as_fail_nomem(err);
    if (terminal->tty) {
        t->shown = fit_columns(t, terminal->width);
        format_line(t, terminal, t->shown, NULL, b);
        for (size_t i = t->shown; ret_hidden && i < t->n_columns; i++) {
            str_puts(ret_hidden, i > t->shown ? ", " : "");
            str_puts(ret_hidden, t->columns[i].header);
        }
        return str_check(b, err);
    }
    for (size_t i = 0; i < t->n_columns; i++) {
        str_puts(b, i ? "\t" : "");
        str_puts(b, t->columns[i].header);
    }
    str_putc(b, '\n');
    return str_check(b, err);
}

as_status table_format_rows(const struct table *t, const struct terminal *terminal, struct str *b,
                            struct as_err *err)
{
    if (t->failed)
        return as_fail_nomem(err);
    if (!terminal->tty)
        format_tabs(t, b);
    for (size_t row = 0; terminal->tty && row < table_rows(t); row++)
        format_line(t, terminal, t->shown, t->cells + row * t->n_columns, b);
    return str_check(b, err);
}

as_status table_format(struct table *t, const struct terminal *terminal, struct str *b,
                       struct str *ret_hidden, struct as_err *err)
{
    as_status st = table_format_head(t, terminal, b, ret_hidden, err);
    return st < 0 ? st : table_format_rows(t, terminal, b, err);
}

void table_forget_rows(struct table *t)
{
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i].text);
    t->n_cells = 0;
}
