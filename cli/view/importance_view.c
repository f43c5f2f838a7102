/* A bar has three marks: up to the lower end of the interval of the total share, up to the
 * estimate, up to the upper end. In a pipe the columns are the API's fields, so that scripts find
 * them by name. An unknown share is null in the API and an empty cell here. */
#include "cli/view/importance_view.h"

#include <math.h>

#include "base/json.h"
#include "cli/view/format.h"

static size_t cells_of(double share, size_t width)
{
    if (!(share > 0))
        return 0;
    return share >= 1 ? width : (size_t)lround(share * (double)width);
}

void importance_view_bar(double low, double value, double high, size_t width, bool unicode,
                         struct str *b)
{
    static const char *const glyphs[2][4] = {{"#", "=", "-", " "}, {"█", "▓", "░", " "}};
    size_t full = cells_of(low, width), sure = cells_of(value, width), most = cells_of(high, width);
    if (sure < full)
        full = sure;
    if (most < sure)
        most = sure;
    for (size_t i = 0; i < width; i++)
        str_puts(b, glyphs[unicode][i < full ? 0 : i < sure ? 1 : i < most ? 2 : 3]);
}

static double share_of(const json_t *parameter, const char *field)
{
    double v;
    return json_number_get(json_object_get(parameter, field), &v) ? v : NAN;
}

static void add_bar(struct table *t, const json_t *parameter, const struct terminal *terminal)
{
    struct str b = {0};
    importance_view_bar(share_of(parameter, "total_low"), share_of(parameter, "total"),
                        share_of(parameter, "total_high"), IMPORTANCE_BAR_WIDTH, terminal->unicode,
                        &b);
    table_cell(t, str_cstr(&b));
    str_done(&b);
}

/* The API writes null for an unknown share. */
static void add_share(struct table *t, double share)
{
    if (isfinite(share))
        table_cellf(t, "%.2f", share);
    else
        table_cell(t, NULL);
}

/* The columns of the table in a pipe. */
static const char *const fields[] = {"first",     "first_low",  "first_high", "total",
                                     "total_low", "total_high", "top",        "conditional"};

static void add_row(struct table *t, const json_t *p, const struct terminal *terminal)
{
    table_cell(t, json_string_value(json_object_get(p, "name")));
    if (!terminal->tty) {
        for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++) {
            struct str b = {0};
            format_value(&b, json_object_get(p, fields[i]), FORMAT_EXACT);
            table_cell(t, b.len ? b.s : NULL);
            str_done(&b);
        }
        return;
    }
    double low = share_of(p, "total_low"), high = share_of(p, "total_high");
    add_share(t, share_of(p, "total"));
    if (isfinite(low) && isfinite(high))
        table_cellf(t, "%.2f-%.2f", low, high);
    else
        table_cell(t, NULL);
    add_share(t, share_of(p, "first"));
    add_share(t, share_of(p, "top"));
    add_bar(t, p, terminal);
}

as_status importance_view_table(const json_t *importance, const struct terminal *terminal,
                                struct table **ret, struct as_err *err)
{
    struct table *t = table_create();
    if (!t)
        return as_fail_nomem(err);
    table_column(t, "parameter", TABLE_LEFT, 9);
    if (terminal->tty) {
        table_column(t, "total", TABLE_RIGHT, 0);
        table_column(t, "90 %", TABLE_RIGHT, 9);
        table_column(t, "alone", TABLE_RIGHT, 0);
        table_column(t, "top", TABLE_RIGHT, 0);
        table_column(t, "", TABLE_LEFT, IMPORTANCE_BAR_WIDTH);
    } else {
        for (size_t i = 0; i < AS_ARRAY_LEN(fields); i++)
            table_column(t, fields[i], TABLE_RIGHT, 0);
    }
    size_t i;
    json_t *p;
    json_array_foreach(json_object_get(importance, "parameters"), i, p) add_row(t, p, terminal);
    *ret = t;
    return AS_OK;
}
