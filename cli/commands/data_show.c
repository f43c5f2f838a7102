/* Formats the record that the API returns; nothing is computed from the data. A column's
 * description follows its kind (number, category, date, text), as data/dataset.h names them. Long
 * lists of values are cut, because a column may have a thousand categories. */
#include "cli/commands/data_show.h"

#include <time.h>

#include "base/json.h"
#include "cli/view/format.h"
#include "cli/view/pairs.h"
#include "cli/session/request.h"

#define VALUES_SHOWN 12

/* Append "a, b, c, … (n in all)". */
static void list_values(const json_t *values, struct str *b)
{
    size_t i, n = json_array_size(values);
    json_t *v;
    json_array_foreach(values, i, v)
    {
        if (i == VALUES_SHOWN)
            break;
        str_printf(b, "%s%.40s", i ? ", " : "", json_string_value(v));
    }
    if (n > VALUES_SHOWN)
        str_printf(b, ", … (%zu in all)", n);
}

bool data_show_numbers_are_classes(const json_t *d)
{
    const char *format = json_string_value(json_object_get(d, "format"));
    const json_t *classes = json_object_get(d, "classes");
    size_t i;
    json_t *name;
    if (json_array_size(classes) == 0 || as_streq(format, "idx") || as_streq(format, "cifar"))
        return false;
    json_array_foreach(classes, i, name)
    {
        int64_t number;
        if (as_parse_i64(json_string_value(name), &number, NULL) != AS_OK)
            return false;
    }
    return true;
}

static void add_head(struct pairs *p, const json_t *d)
{
    static const char *const names[] = {"format", "task",     "input",  "target",
                                        "rows",   "features", "outputs"};
    const json_t *image = json_object_get(d, "image"), *options = json_object_get(d, "options");
    const json_t *classes = json_object_get(d, "classes");
    AS_AUTO(str_done) struct str b = {0};
    const char *key;
    json_t *value;
    pairs_add_json(p, "data set", json_object_get(d, "name"));
    pairs_add_json(p, "description", json_object_get(d, "description"));
    for (size_t i = 0; i < AS_ARRAY_LEN(names); i++)
        pairs_add_json(p, names[i], json_object_get(d, names[i]));
    pairs_add_json(p, "test rows", json_object_get(json_object_get(d, "test"), "rows"));
    list_values(classes, &b);
    pairs_add(p, "classes", STYLE_PLAIN, str_cstr(&b));
    if (json_array_size(classes) == 2)
        pairs_add_json(p, "positive", json_array_get(classes, 1));
    if (data_show_numbers_are_classes(d))
        pairs_add(p, "note", STYLE_PLAIN,
                  "the classes are whole numbers; --task regression of data add predicts numbers");
    if (image)
        pairs_addf(p, "image",
                   "%" JSON_INTEGER_FORMAT " x %" JSON_INTEGER_FORMAT
                   " pixels, %" JSON_INTEGER_FORMAT " channel%s",
                   json_integer_value(json_object_get(image, "height")),
                   json_integer_value(json_object_get(image, "width")),
                   json_integer_value(json_object_get(image, "channels")),
                   json_integer_value(json_object_get(image, "channels")) == 1 ? "" : "s");
    json_object_foreach((json_t *)options, key, value)
    {
        if (!as_streq(key, "positive"))
            pairs_add_json(p, key, value);
    }
    pairs_add_json(p, "digest", json_object_get(d, "sha256"));
    pairs_add_json(p, "created", json_object_get(d, "created_at"));
}

/* "days since 2024-03-09, week, hour". */
static void describe_date(const json_t *column, struct str *b)
{
    time_t since = (time_t)(json_integer_value(json_object_get(column, "since")) * 86400);
    struct tm day;
    size_t i;
    json_t *cycle;
    if (gmtime_r(&since, &day))
        str_printf(b, "days since %04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
    json_array_foreach(json_object_get(column, "cycles"), i, cycle)
        str_printf(b, ", %.20s", json_string_value(cycle));
}

static void add_column(struct table *t, const json_t *column)
{
    AS_AUTO(str_done) struct str b = {0};
    json_int_t other = json_integer_value(json_object_get(column, "other"));
    list_values(json_object_get(column, "values"), &b);
    if (json_object_get(column, "since"))
        describe_date(column, &b);
    if (json_object_get(column, "buckets"))
        str_printf(&b, "words, hashed into %" JSON_INTEGER_FORMAT " numbers",
                   json_integer_value(json_object_get(column, "buckets")));
    if (other > 0)
        str_printf(&b, "%s%" JSON_INTEGER_FORMAT " row%s of rare values", b.len ? "; " : "", other,
                   other == 1 ? "" : "s");
    table_cell(t, json_string_value(json_object_get(column, "name")));
    table_cell(t, json_string_value(json_object_get(column, "kind")));
    table_cellf(t, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(column, "missing")));
    table_cell(t, b.len ? str_cstr(&b) : NULL);
}

static as_status print_columns(const struct session *s, const json_t *columns, struct as_err *err)
{
    AS_AUTO(table_freep) struct table *t = table_create();
    size_t i;
    json_t *column;
    if (!t)
        return as_fail_nomem(err);
    table_column(t, "column", TABLE_LEFT, 8);
    table_column(t, "kind", TABLE_LEFT, 0);
    table_column(t, "missing", TABLE_RIGHT, 0);
    table_column(t, "values", TABLE_LEFT, 20);
    json_array_foreach(columns, i, column) add_column(t, column);
    return session_print_table(s, t, err);
}

as_status data_show(const struct session *s, const char *name, struct as_err *err)
{
    JSON_AUTO d = NULL;
    as_status st = request_one(s->client, "/v1/datasets", name, &d, err);
    if (st < 0)
        return st;
    if (s->json)
        return session_print_json(d, err);
    struct pairs p = {.terminal = s->terminal};
    add_head(&p, d);
    st = pairs_print(&p, err);
    if (st < 0)
        return st;
    const json_t *columns = json_object_get(d, "columns");
    return json_array_size(columns) ? print_columns(s, columns, err) : AS_OK;
}
