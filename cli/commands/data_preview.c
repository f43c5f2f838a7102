/* Formats what the server found in the values (DatasetPreview of the API). A distribution is a line
 * of blocks, its bins added up until they fit. */
#include "cli/commands/data_preview.h"

#include <time.h>

#include "base/json.h"
#include "cli/session/request.h"
#include "cli/view/blocks.h"
#include "cli/view/text_table.h"

#define BLOCKS ((size_t)24)
#define TOP_SHOWN ((size_t)4)
#define ROW_CELL 60 /* bytes of a cell of the first rows on a terminal */

static double count_at(const json_t *list, size_t i)
{
    const json_t *v = json_array_get(list, i);
    return (double)json_integer_value(json_is_object(v) ? json_object_get(v, "rows") : v);
}

/* `counts`: numbers, or objects with `rows`. */
static void add_blocks(const json_t *counts, struct str *b)
{
    const size_t n = json_array_size(counts), wide = n < BLOCKS ? n : BLOCKS;
    double sums[BLOCKS] = {0}, most = 1;
    for (size_t i = 0; i < n; i++) {
        double *sum = &sums[i * wide / n];
        *sum += count_at(counts, i);
        most = *sum > most ? *sum : most;
    }
    for (size_t i = 0; i < wide; i++)
        str_puts(b, block_of(sums[i] > 0 ? sums[i] / most : -1));
}

/* A number of the column; of dates the day. */
static void add_figure(const json_t *numbers, const char *field, bool is_date, struct str *b)
{
    const double v = json_number_value(json_object_get(numbers, field));
    const time_t seconds = (time_t)(v * 86400);
    struct tm day;
    if (is_date && gmtime_r(&seconds, &day))
        str_printf(b, "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
    else
        str_printf(b, "%.6g", v);
}

static void describe_numbers(const json_t *column, const json_t *numbers, struct str *b)
{
    const char *kind = json_string_value(json_object_get(column, "kind"));
    const bool is_date = as_streq(kind, "date");
    add_figure(numbers, "least", is_date, b);
    str_puts(b, " to ");
    add_figure(numbers, "most", is_date, b);
    if (is_date)
        return;
    str_puts(b, as_streq(kind, "text") ? " bytes, mean " : ", mean ");
    add_figure(numbers, "mean", false, b);
    str_puts(b, ", deviation ");
    add_figure(numbers, "deviation", false, b);
}

static void describe_values(const json_t *values, struct str *b)
{
    const json_t *top = json_object_get(values, "top");
    const json_int_t different = json_integer_value(json_object_get(values, "different"));
    size_t i;
    json_t *v;
    json_array_foreach(top, i, v)
    {
        if (i == TOP_SHOWN)
            break;
        str_printf(b, "%s%.40s %" JSON_INTEGER_FORMAT, i ? ", " : "",
                   json_string_value(json_object_get(v, "value")),
                   json_integer_value(json_object_get(v, "rows")));
    }
    if (different > (json_int_t)TOP_SHOWN)
        str_printf(b, ", … (%" JSON_INTEGER_FORMAT " in all)", different);
}

static void add_column(struct table *t, const json_t *column)
{
    AS_AUTO(str_done) struct str picture = {0};
    AS_AUTO(str_done) struct str words = {0};
    const json_t *numbers = json_object_get(column, "numbers");
    const json_t *values = json_object_get(column, "values");
    if (numbers) {
        add_blocks(json_object_get(numbers, "counts"), &picture);
        describe_numbers(column, numbers, &words);
    } else if (values) {
        add_blocks(json_object_get(values, "top"), &picture);
        describe_values(values, &words);
    }
    const bool is_target = json_is_true(json_object_get(column, "target"));
    table_cellf(t, "%s%s", json_string_value(json_object_get(column, "name")),
                is_target ? " (target)" : "");
    table_cell(t, json_string_value(json_object_get(column, "kind")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(column, "missing")));
    table_cell(t, picture.len ? str_cstr(&picture) : NULL);
    table_cell(t, words.len ? str_cstr(&words) : NULL);
}

static void fill_columns(struct table *t, const json_t *preview)
{
    const json_t *columns = json_object_get(preview, "columns");
    size_t i;
    json_t *column;
    table_column(t, "column", TABLE_LEFT, 8);
    table_column(t, "kind", TABLE_LEFT, 0);
    table_column(t, "missing", TABLE_RIGHT, 0);
    table_column(t, "distribution", TABLE_LEFT, 0);
    table_column(t, "values", TABLE_LEFT, 20);
    json_array_foreach(columns, i, column) add_column(t, column);
}

static void fill_rows(const struct session *s, struct table *t, const json_t *preview)
{
    const json_t *columns = json_object_get(preview, "columns");
    size_t i, k;
    json_t *item, *cell;
    json_array_foreach(columns, i, item)
        table_column(t, json_string_value(json_object_get(item, "name")), TABLE_LEFT, 4);
    json_array_foreach(json_object_get(preview, "first_rows"), i, item)
    {
        json_array_foreach(item, k, cell)
        {
            const char *text = json_string_value(cell);
            size_t len = as_utf8_prefix(text, s->terminal.tty ? ROW_CELL : SIZE_MAX);
            table_cellf(t, "%.*s", (int)len, text);
        }
    }
}

as_status data_preview(const struct session *s, const char *name, bool first_rows,
                       struct as_err *err)
{
    JSON_AUTO preview = NULL;
    AS_AUTO(table_freep) struct table *t = table_create();
    AS_AUTO(str_done) struct str path = {0};
    if (!t)
        return as_fail_nomem(err);
    str_puts(&path, "/v1/datasets");
    client_path_add(&path, name);
    str_puts(&path, "/preview");
    as_status st = str_check(&path, err);
    if (st == AS_OK)
        st = client_call(s->client, "GET", path.s, NULL, NULL, NULL, &preview, NULL, err);
    if (st < 0)
        return st;
    if (s->json)
        return session_print_json(preview, err);
    if (first_rows && json_array_size(json_object_get(preview, "first_rows")) == 0)
        return as_fail(err, AS_E_UNSUPPORTED, "'%.63s' has no table: its rows cannot be shown",
                       name);
    if (first_rows)
        fill_rows(s, t, preview);
    else
        fill_columns(t, preview);
    return session_print_table(s, t, err);
}
