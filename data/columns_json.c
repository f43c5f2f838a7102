/* The features of a table as JSON.
 *
 * An item describes a column of the file, and dataset_info has one entry for each feature, so a
 * column of dates or texts is one item and several entries: dates give `days` and two entries for
 * each cycle, texts give one for each bucket. */
#include "data/columns_json.h"

#include <string.h>

#include "data/date.h"
#include "data/names_json.h"
#include "base/json.h"

typedef enum column_kind { NUMERIC, CATEGORICAL, DATE, TEXT } column_kind;

static const char *const kinds[] = {"numeric", "categorical", "date", "text", NULL};
static const char *const cycles[] = {"week", "month", "hour", NULL};

static column_kind kind_of(const struct dataset_column *c)
{
    if (c->part == DATASET_CELL)
        return c->categorical ? CATEGORICAL : NUMERIC;
    return c->part == DATASET_HASHED ? TEXT : DATE;
}

/* ---- writing ---- */

static json_t *cycles_to_json(const struct dataset_column *c)
{
    JSON_AUTO list = json_array();
    for (size_t i = 1; i < dataset_column_width(c); i += 2) {
        const char *name = cycles[(c[i].part - DATASET_WEEK_SIN) / 2];
        if (json_array_append_new(list, json_string(name)) != 0)
            return NULL;
    }
    return as_steal(list);
}

static json_t *column_to_json(const struct dataset_column *c)
{
    column_kind kind = kind_of(c);
    size_t missing = kind == TEXT ? c->n_empty : c->n_missing;
    JSON_AUTO obj = json_pack("{s:s, s:s, s:I}", "name", c->name, "kind", kinds[kind], "missing",
                              (json_int_t)missing);
    int bad = obj == NULL;
    if (kind == CATEGORICAL) {
        bad |= json_object_set_new(obj, "other", json_integer((json_int_t)c->n_other));
        bad |= json_object_set_new(obj, "values", names_json_new(c->values, c->n_values));
    } else if (kind == DATE) {
        bad |= json_object_set_new(obj, "since", json_integer((json_int_t)c->since));
        bad |= json_object_set_new(obj, "cycles", cycles_to_json(c));
    } else if (kind == TEXT) {
        bad |= json_object_set_new(obj, "buckets", json_integer((json_int_t)c->n_parts));
    }
    return bad ? NULL : as_steal(obj);
}

json_t *dataset_columns_to_json(const struct dataset_info *info)
{
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < info->n_features; i += dataset_column_width(&info->columns[i]))
        if (json_array_append_new(list, column_to_json(&info->columns[i])) != 0)
            return NULL;
    return as_steal(list);
}

/* ---- reading ---- */

/* The fields of an item; views of the JSON. */
struct item {
    struct json_fields f;
    const char *name;
    column_kind kind;
    int64_t missing, other, since, buckets;
    json_t *values, *cycles;
    dataset_part parts[8]; /* dates */
    size_t width;
};

static as_status read_cycles(struct item *it, struct as_err *err)
{
    size_t i, next = 0;
    const json_t *name;
    it->parts[0] = DATASET_DAYS;
    it->width = 1;
    json_array_foreach(it->cycles, i, name)
    {
        const char *s = json_string_value(name);
        while (cycles[next] && (!s || strcmp(s, cycles[next]) != 0))
            next++;
        if (!cycles[next])
            return as_fail_at(err, AS_E_INVAL, it->f.pointer,
                              "%s/cycles/%zu: expected week, month and hour in this order, each at "
                              "most once",
                              it->f.pointer, i);
        it->parts[it->width++] = DATASET_WEEK_SIN + 2 * next;
        it->parts[it->width++] = DATASET_WEEK_SIN + 2 * next + 1;
        next++;
    }
    return AS_OK;
}

static as_status read_item(const json_t *j, const char *pointer, size_t rows, struct item *it,
                           struct as_err *err)
{
    int kind = 0;
    struct json_fields *f = &it->f;
    as_status st = json_fields_init(f, j, pointer, err);
    if (st < 0 || (st = json_fields_str(f, "name", JSON_REQUIRED, &it->name, err)) < 0 ||
        (st = json_fields_word(f, "kind", JSON_REQUIRED, kinds, &kind, err)) < 0 ||
        (st = json_fields_i64(f, "missing", JSON_OPTIONAL, 0, (int64_t)rows, &it->missing, err)) <
            0 ||
        (st = json_fields_i64(f, "other", JSON_OPTIONAL, 0, (int64_t)rows, &it->other, err)) < 0 ||
        (st = json_fields_array(f, "values", JSON_OPTIONAL, &it->values, err)) < 0)
        return st;
    it->kind = (column_kind)kind;
    it->width = 1;
    if (it->kind == DATE &&
        ((st = json_fields_i64(f, "since", JSON_REQUIRED, DATE_MIN_DAY, DATE_MAX_DAY, &it->since,
                               err)) < 0 ||
         (st = json_fields_array(f, "cycles", JSON_REQUIRED, &it->cycles, err)) < 0 ||
         (st = read_cycles(it, err)) < 0))
        return st;
    if (it->kind == TEXT) {
        st = json_fields_i64(f, "buckets", JSON_REQUIRED, (int64_t)DATASET_MIN_BUCKETS,
                             (int64_t)DATASET_MAX_BUCKETS, &it->buckets, err);
        it->width = (size_t)it->buckets;
    }
    return st < 0 ? st : json_fields_end(f, err);
}

static as_status read_values(const struct item *it, struct dataset_column *c, struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX];
    json_pointer_child(it->f.pointer, "values", pointer);
    if (it->kind != CATEGORICAL)
        return it->values ? as_fail_at(err, AS_E_INVAL, pointer, "%s: a %s column has none",
                                       pointer, kinds[it->kind])
                          : AS_OK;
    if (json_array_size(it->values) > DATASET_MAX_CATEGORIES)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: found %zu, expected at most %zu", pointer,
                          json_array_size(it->values), DATASET_MAX_CATEGORIES);
    as_status st = names_json_read(it->values, pointer, &c->values, &c->n_values, err);
    if (st != AS_OK)
        return st;
    for (size_t i = 1; i < c->n_values; i++)
        if (strcmp(c->values[i - 1], c->values[i]) >= 0)
            return as_fail_at(err, AS_E_INVAL, pointer,
                              "%s: expected distinct names in ascending order", pointer);
    return AS_OK;
}

/* Fill the entries of the item. */
static as_status fill_columns(const struct item *it, struct dataset_column *c, struct as_err *err)
{
    for (size_t i = 0; i < it->width; i++) {
        c[i].index = i;
        c[i].n_parts = it->width;
        c[i].part = it->kind == DATE ? it->parts[i] : it->kind == TEXT ? DATASET_HASHED : 0;
        c[i].since = it->since;
        if (!(c[i].name = as_strdup(it->name)))
            return as_fail_nomem(err);
    }
    c->categorical = it->kind == CATEGORICAL;
    c->n_other = (size_t)it->other;
    if (it->kind == TEXT)
        c->n_empty = (size_t)it->missing;
    else
        c->n_missing = (size_t)it->missing;
    return read_values(it, c, err);
}

as_status dataset_columns_from_json(const json_t *list, const char *parent,
                                    struct dataset_info *info, struct as_err *err)
{
    char pointer[AS_ERR_POINTER_MAX], child[AS_ERR_POINTER_MAX];
    size_t n = json_array_size(list), at = 0;
    json_pointer_child(parent, "columns", pointer);
    if (info->input != DATASET_TABLE || n > info->n_features || n > DATASET_MAX_COLUMNS)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found %zu, expected those of a table's %zu features, at most %zu",
                          pointer, n, info->n_features, DATASET_MAX_COLUMNS);
    info->columns = as_calloc(info->n_features, sizeof *info->columns);
    if (!info->columns)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        struct item it = {0};
        json_pointer_index(pointer, i, child);
        as_status st = read_item(json_array_get(list, i), child, info->n_rows, &it, err);
        if (st != AS_OK)
            return st;
        if (it.width > info->n_features - at)
            return as_fail_at(err, AS_E_INVAL, pointer, "%s: found more than the %zu features",
                              pointer, info->n_features);
        st = fill_columns(&it, &info->columns[at], err);
        if (st != AS_OK)
            return st;
        at += it.width;
    }
    if (at != info->n_features)
        return as_fail_at(err, AS_E_INVAL, pointer,
                          "%s: found %zu columns of %zu features, expected %zu features", pointer,
                          n, at, info->n_features);
    if (dataset_category_slots(info) > DATASET_MAX_FEATURES)
        return as_fail_at(err, AS_E_INVAL, pointer, "%s: more than %zu categories in all", pointer,
                          DATASET_MAX_ALL_CATEGORIES);
    return AS_OK;
}
