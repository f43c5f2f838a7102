/* Reading buckets.json, which the authors of trials write: {"column": NAME, "values": [TEXT, …]}
 * with a text for each held-out row. Equal texts are one bucket; buckets are numbered as they come.
 * For a column that no trial left, the values come from the data set (ensemble_column.h). */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "scheduler/content/blob_file.h"
#include "scheduler/lifecycle/ensemble_column.h"
#include "scheduler/lifecycle/ensemble_data.h"
#include "search/ensemble/ensemble_input.h"

#define MAX_BYTES ((size_t)256 << 20)

/* The number of a text, from an object of those that came before. */
static as_status number_of(struct ensemble_data *d, json_t *known, const json_t *value, size_t row,
                           uint32_t *ret, struct as_err *err)
{
    const char *text = json_string_value(value);
    if (!text)
        return as_fail(err, AS_E_INVAL, "buckets.json: /values/%zu is no text", row);
    const json_t *number = json_object_get(known, text);
    *ret = (uint32_t)json_integer_value(number);
    if (number)
        return AS_OK;
    if (d->n_buckets == ENSEMBLE_MAX_BUCKETS)
        return as_fail(err, AS_E_INVAL,
                       "the column '%.60s' has more than %d values in the held-out rows",
                       d->bucket_column, ENSEMBLE_MAX_BUCKETS);
    *ret = (uint32_t)d->n_buckets++;
    if (json_object_set_new(known, text, json_integer((json_int_t)*ret)) != 0 ||
        json_array_append(d->bucket_values, (json_t *)value) != 0)
        return as_fail_nomem(err);
    return AS_OK;
}

static as_status read_values(struct ensemble_data *d, const json_t *values, struct as_err *err)
{
    JSON_AUTO known = json_object();
    size_t n = json_array_size(values);
    if (n != d->rows)
        return as_fail(err, AS_E_INVAL, "buckets.json has %zu values, the targets ask for %zu", n,
                       d->rows);
    AS_AUTO(as_freep) uint32_t *buckets = as_calloc(n, sizeof *buckets);
    d->bucket_values = json_array();
    if (!known || !buckets || !d->bucket_values)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        as_status st = number_of(d, known, json_array_get(values, i), i, &buckets[i], err);
        if (st != AS_OK)
            return st;
    }
    d->buckets = as_steal(buckets);
    return AS_OK;
}

/* `column` NULL: that of the file. A file of another column is passed over. */
static as_status parse_buckets(const char *text, size_t len, const char *column,
                               struct ensemble_data *d, struct as_err *err)
{
    JSON_AUTO all = NULL;
    as_status st = json_parse(text, len, &all, err);
    if (st != AS_OK)
        return st == AS_E_NOMEM ? st : as_err_prefix(err, AS_E_INVAL, "buckets.json");
    const char *own = json_string_value(json_object_get(all, "column"));
    if (!own)
        return as_fail(err, AS_E_INVAL, "buckets.json: /column is no text");
    if (column && !as_streq(own, column))
        return AS_OK;
    d->bucket_column = as_strdup(own);
    return d->bucket_column ? read_values(d, json_object_get(all, "values"), err)
                            : as_fail_nomem(err);
}

as_status ensemble_data_parse_buckets(const char *text, size_t len, struct ensemble_data *d,
                                      struct as_err *err)
{
    return parse_buckets(text, len, NULL, d, err);
}

static as_status read_file(struct store *db, const char *sha256, const char *column,
                           struct ensemble_data *d, struct as_err *err)
{
    AS_AUTO(blob_file_done) struct blob_file file = {0};
    AS_AUTO(as_freep) char *text = NULL;
    size_t len = 0;
    as_status st = blob_file_init(db, sha256, &file, err);
    if (st == AS_OK)
        st = file_read(file.path, MAX_BYTES, &text, &len, err);
    return st == AS_OK ? parse_buckets(text, len, column, d, err) : st;
}

/* A column that no trial left is read from the data set of the first candidate. */
static as_status read_column(struct store *db, const char *column, bool is_test,
                             struct ensemble_data *d, struct as_err *err)
{
    JSON_AUTO values = NULL;
    as_status st = ensemble_column_read(db, &d->candidates[0], column, is_test, d, &values, err);
    if (st != AS_OK)
        return st;
    d->bucket_column = as_strdup(column);
    return d->bucket_column ? read_values(d, values, err) : as_fail_nomem(err);
}

as_status ensemble_data_read_buckets(struct store *db, size_t n, const char *column, bool is_test,
                                     struct ensemble_data *d, struct as_err *err)
{
    const char *before = "";
    for (size_t i = 0; i < n && !d->buckets; i++) {
        const char *sha256 = d->candidates[i].buckets;
        if (!sha256[0] || as_streq(sha256, before))
            continue;
        as_status st = read_file(db, sha256, column, d, err);
        if (st != AS_OK)
            return st;
        before = sha256;
    }
    return d->buckets || !column ? AS_OK : read_column(db, column, is_test, d, err);
}
