#include "cli/view/export_csv.h"

#include <stdio.h>

#include "base/json.h"
#include "cli/view/csv_writer.h"
#include "cli/view/format.h"

static const char *const first_fields[] = {"number", "state", "value", "attempt", "restarts"};
static const char *const last_fields[] = {
    "runner",   "reason", "created_at", "started_at", "finished_at", "client", "origin",
    "feasible", "index",  "seen",       "finish_seq", "shape",       "group"};

static void add_headers(struct str *b, const char *group, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)names, i, name)
    {
        struct str header = {0};
        str_printf(&header, "%s.%s", group, json_string_value(name));
        csv_cell(b, false, CSV_TEXT, str_cstr(&header));
        str_done(&header);
    }
}

static void add_value(struct str *b, bool first, const json_t *v)
{
    struct str cell = {0};
    format_value(&cell, v, FORMAT_EXACT);
    /* "-Infinity" is a number, although JSON carries it as a text; it gets no ' before it. */
    double d;
    csv_cell(b, first, json_number_get(v, &d) ? CSV_NUMBER : CSV_TEXT, str_cstr(&cell));
    b->failed = b->failed || cell.failed;
    str_done(&cell);
}

static void add_values(struct str *b, const json_t *values, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)names, i, name)
    {
        const json_t *v = json_object_get(values, json_string_value(name));
        if (json_is_null(v))
            csv_cell(b, false, CSV_TEXT, "null"); /* a value; an inactive parameter is empty */
        else
            add_value(b, false, v);
    }
}

static void add_row(struct str *b, const json_t *trial, const json_t *params, const json_t *metrics)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(first_fields); i++)
        add_value(b, i == 0, json_object_get(trial, first_fields[i]));
    add_values(b, json_object_get(trial, "params"), params);
    add_values(b, json_object_get(trial, "metrics"), metrics);
    for (size_t i = 0; i < AS_ARRAY_LEN(last_fields); i++)
        add_value(b, false, json_object_get(trial, last_fields[i]));
    str_putc(b, '\n');
}

as_status export_csv_head(const struct trial_facts *f, struct str *b, struct as_err *err)
{
    for (size_t i = 0; i < AS_ARRAY_LEN(first_fields); i++)
        csv_cell(b, i == 0, CSV_TEXT, first_fields[i]);
    add_headers(b, "param", f->params);
    add_headers(b, "metric", f->metrics);
    for (size_t i = 0; i < AS_ARRAY_LEN(last_fields); i++)
        csv_cell(b, false, CSV_TEXT, last_fields[i]);
    str_putc(b, '\n');
    return str_check(b, err);
}

as_status export_csv_rows(const struct trial_facts *f, const json_t *items, struct str *b,
                          struct as_err *err)
{
    size_t i;
    json_t *trial;
    json_array_foreach((json_t *)items, i, trial) add_row(b, trial, f->params, f->metrics);
    return str_check(b, err);
}
