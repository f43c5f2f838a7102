/* The file is read back only to combine several models (folds, stages): gain, cover and weight are
 * summed over splits and divided at the end, as XGBoost defines the averages. Columns are sorted by
 * gain. A file from another process is checked like any input. */
#include "trial-runner/train/importance_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

#define NAME "importance.json"
#define MAX_FILE ((size_t)256 << 20)

as_status importance_file_write(const char *folder, const json_t *importance, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(folder, NAME);
    AS_AUTO(as_freep) char *text = json_format_pretty(importance);
    if (!path || !text)
        return as_fail_nomem(err);
    const struct iovec part = {text, strlen(text)};
    return file_publishv(path, &part, 1, 0644, err);
}

as_status importance_file_read(const char *folder, json_t **ret, struct as_err *err)
{
    AS_AUTO(as_freep) char *path = file_join(folder, NAME);
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    as_status st = path ? file_read(path, MAX_FILE, &text, &len, err) : as_fail_nomem(err);
    return st == AS_OK ? json_parse(text, len, ret, err) : st;
}

/* ---- the mean of several models ---- */

struct column {
    const char *name;           /* borrowed from the first model that has it */
    size_t place;               /* the order in which the columns were found */
    double gain, cover, weight; /* sums over all splits; the splits */
};

static as_status add_column(struct column *c, const json_t *score, struct as_err *err)
{
    double gain, cover, weight;
    if (!json_number_get(json_object_get(score, "gain"), &gain) ||
        !json_number_get(json_object_get(score, "cover"), &cover) ||
        !json_number_get(json_object_get(score, "weight"), &weight))
        return as_fail(err, AS_E_INVAL, NAME ": column '%.80s' has no gain, cover or weight",
                       c->name);
    c->gain += gain * weight;
    c->cover += cover * weight;
    c->weight += weight;
    return AS_OK;
}

/* Add a model's columns. `places` maps a column's name to its index in `columns`. */
static as_status add_model(const json_t *model, json_t *places, struct column *columns,
                           struct as_err *err)
{
    size_t i;
    const json_t *score;
    json_array_foreach(json_object_get(model, "columns"), i, score)
    {
        const char *name = json_string_value(json_object_get(score, "column"));
        if (!name)
            return as_fail(err, AS_E_INVAL, NAME ": entry %zu has no column", i);
        const json_t *known = json_object_get(places, name);
        size_t at = known ? (size_t)json_integer_value(known) : json_object_size(places);
        if (!known && json_object_set_new(places, name, json_integer((json_int_t)at)) != 0)
            return as_fail_nomem(err);
        if (!known)
            columns[at] = (struct column){.name = name, .place = at};
        as_status st = add_column(&columns[at], score, err);
        if (st != AS_OK)
            return st;
    }
    return AS_OK;
}

static int by_gain(const void *a, const void *b)
{
    const struct column *l = a, *r = b;
    if (l->gain > r->gain || l->gain < r->gain)
        return l->gain > r->gain ? -1 : 1;
    return l->place < r->place ? -1 : l->place > r->place;
}

static json_t *columns_to_json(const struct column *columns, size_t n)
{
    double all = 0;
    JSON_AUTO list = json_array();
    for (size_t i = 0; i < n; i++)
        all += columns[i].gain;
    for (size_t i = 0; i < n; i++) {
        const struct column *c = &columns[i];
        double splits = c->weight > 0 ? c->weight : 1;
        json_t *score = json_pack("{s:s, s:f, s:f, s:f, s:f}", "column", c->name, "gain",
                                  c->gain / splits, "cover", c->cover / splits, "weight", c->weight,
                                  "share", all > 0 ? c->gain / all : 0.0);
        if (json_array_append_new(list, score) != 0)
            return NULL;
    }
    return json_pack("{s:O}", "columns", list);
}

as_status importance_of_mean(json_t *const *each, size_t n, json_t **ret, struct as_err *err)
{
    size_t most = 0;
    JSON_AUTO places = json_object();
    for (size_t i = 0; i < n; i++)
        most += json_array_size(json_object_get(each[i], "columns"));
    AS_AUTO(as_freep) struct column *columns = as_calloc(most ? most : 1, sizeof *columns);
    if (!places || !columns)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        as_status st = add_model(each[i], places, columns, err);
        if (st != AS_OK)
            return st;
    }
    size_t found = json_object_size(places);
    qsort(columns, found, sizeof *columns, by_gain);
    *ret = columns_to_json(columns, found);
    return *ret ? AS_OK : as_fail_nomem(err);
}
