/* Requests about a running attempt: measurements, output, files, and its end.
 *
 * The size of a batch is checked before memory is allocated for it. The points of a batch are
 * counted first and allocated once, in the arena of the request. A value may be a number or one of
 * the strings "NaN", "Infinity" and "-Infinity"; an error names the value by its JSON pointer.
 * Clients that ask send the same batches (codec_suggestion.c), so the readers are shared. */
#include "api/codec/wire.h"

#include <string.h>

#include "api/codec/wire_priv.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"

#define ITEMS_MAX 1000
#define METRICS_MAX 100

as_status metric_values_read(json_t *values, const char *pointer, int64_t step,
                             struct measurement_list *ret, struct as_err *err)
{
    char child[AS_ERR_POINTER_MAX];
    if (json_object_size(values) > METRICS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, pointer, "%zu metrics, at most %d",
                          json_object_size(values), METRICS_MAX);
    for (void *it = json_object_iter(values); it; it = json_object_iter_next(values, it)) {
        struct measurement *m = &ret->rows[ret->n];
        const json_t *value = json_object_iter_value(it);
        m->step = step;
        m->metric = json_object_iter_key(it);
        json_pointer_child(pointer, m->metric, child);
        if (!json_number_get(value, &m->value)) {
            bool is_long = json_is_object(value) || json_is_array(value);
            AS_AUTO(as_freep) char *text = is_long ? NULL : json_format(value);
            return as_fail_at(
                err, AS_E_INVAL, child,
                "%s: found %.60s, expected a number or \"NaN\", \"Infinity\", \"-Infinity\"", child,
                text ? text : json_type_name(value));
        }
        ret->n++;
    }
    return AS_OK;
}

/* Append the metrics of one item to ret. */
static as_status item_decode(const json_t *item, const char *pointer, struct measurement_list *ret,
                             struct as_err *err)
{
    struct json_fields f;
    json_t *metrics = NULL;
    int64_t step = 0;
    char at[AS_ERR_POINTER_MAX];
    as_status st = json_fields_init(&f, item, pointer, err);
    if (st < 0 || (st = json_fields_i64(&f, "step", JSON_REQUIRED, 0, INT64_MAX, &step, err)) < 0 ||
        (st = json_fields_object(&f, "metrics", JSON_REQUIRED, &metrics, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    json_pointer_child(pointer, "metrics", at);
    return metric_values_read(metrics, at, step, ret, err);
}

static size_t count_points(const json_t *items)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(items); i++)
        n += json_object_size(json_object_get(json_array_get(items, i), "metrics"));
    return n;
}

as_status measurement_items_read(struct json_fields *f, struct arena *a,
                                 struct measurement_list *ret, struct as_err *err)
{
    json_t *items = NULL;
    struct measurement_list list = {0};
    as_status st = json_fields_array(f, "items", JSON_REQUIRED, &items, err);
    if (st < 0)
        return st;
    if (json_array_size(items) > ITEMS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/items", "%zu items, at most %d",
                          json_array_size(items), ITEMS_MAX);
    list.rows = arena_alloc(a, count_points(items) + 1, sizeof *list.rows);
    if (!list.rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for the measurements");
    for (size_t i = 0; i < json_array_size(items); i++) {
        char pointer[AS_ERR_POINTER_MAX];
        json_pointer_index("/items", i, pointer);
        st = item_decode(json_array_get(items, i), pointer, &list, err);
        if (st != AS_OK)
            return st;
    }
    *ret = list;
    return AS_OK;
}

static as_status notes_read(struct json_fields *f, struct arena *a, struct measurement_batch *ret,
                            struct as_err *err)
{
    json_t *notes = NULL;
    as_status st = json_fields_object(f, "notes", JSON_OPTIONAL, &notes, err);
    size_t n = json_object_size(notes);
    if (st < 0 || n == 0)
        return st;
    if (n > TRIAL_NOTES_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/notes", "%zu notes, at most %d", n,
                          TRIAL_NOTES_MAX);
    ret->notes = arena_alloc(a, n, sizeof *ret->notes);
    if (!ret->notes)
        return as_fail(err, AS_E_NOMEM, "out of memory for the notes");
    for (void *it = json_object_iter(notes); it; it = json_object_iter_next(notes, it)) {
        const json_t *text = json_object_iter_value(it);
        char at[AS_ERR_POINTER_MAX];
        json_pointer_child("/notes", json_object_iter_key(it), at);
        if (!json_is_string(text))
            return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected a string", at,
                              json_type_name(text));
        ret->notes[ret->n_notes++] =
            (struct trial_note){.name = json_object_iter_key(it), .text = json_string_value(text)};
    }
    return AS_OK;
}

as_status measurement_batch_read(struct json_fields *f, struct arena *a,
                                 struct measurement_batch *ret, struct as_err *err)
{
    struct measurement_batch batch = {0};
    as_status st = measurement_items_read(f, a, &batch.points, err);
    if (st < 0 || (st = notes_read(f, a, &batch, err)) < 0)
        return st;
    *ret = batch;
    return AS_OK;
}

as_status measurements_decode(const json_t *doc, struct arena *a, struct measurement_batch *ret,
                              struct as_err *err)
{
    struct json_fields f;
    struct measurement_batch batch = {0};
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = measurement_batch_read(&f, a, &batch, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    *ret = batch;
    return AS_OK;
}

as_status log_decode(const json_t *doc, struct log_request *ret, struct as_err *err)
{
    struct json_fields f;
    struct log_request r = {0};
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_str(&f, "text", JSON_REQUIRED, &r.text, err)) < 0 ||
        (st = json_fields_bool(&f, "truncated", JSON_OPTIONAL, &r.truncated, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (strlen(r.text) > LOG_TAIL_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/text", "has %zu bytes, at most %d", strlen(r.text),
                          LOG_TAIL_MAX);
    *ret = r;
    return AS_OK;
}

/* One list of samples: numbers from 0 on, or null where nothing was measured. */
static as_status samples_check(struct json_fields *f, const char *name, json_need need, size_t *n,
                               struct as_err *err)
{
    char at[AS_ERR_POINTER_MAX], one[AS_ERR_POINTER_MAX];
    json_t *list = NULL;
    as_status st = json_fields_array(f, name, need, &list, err);
    if (st < 0 || !list)
        return st;
    json_pointer_child(f->pointer, name, at);
    if (json_array_size(list) > USAGE_SAMPLES_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, at, "has %zu samples, at most %d",
                          json_array_size(list), USAGE_SAMPLES_MAX);
    if (need == JSON_REQUIRED)
        *n = json_array_size(list);
    else if (json_array_size(list) != *n)
        return as_fail_at(err, AS_E_INVAL, at, "has %zu samples, expected as many as cpu: %zu",
                          json_array_size(list), *n);
    for (size_t i = 0; i < *n; i++) {
        const json_t *v = json_array_get(list, i);
        if (json_is_null(v) || (json_is_number(v) && json_number_value(v) >= 0))
            continue;
        json_pointer_index(at, i, one);
        return as_fail_at(err, AS_E_INVAL, one, "is no number from 0 on, and not null");
    }
    return AS_OK;
}

as_status usage_decode(const json_t *doc, struct arena *a, const char **ret, struct as_err *err)
{
    struct json_fields f;
    int64_t every_ms = 0;
    size_t n = 0;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 ||
        (st = json_fields_i64(&f, "every_ms", JSON_REQUIRED, 1, RUN_MAX_MS, &every_ms, err)) < 0 ||
        (st = samples_check(&f, "cpu", JSON_REQUIRED, &n, err)) < 0 ||
        (st = samples_check(&f, "memory_bytes", JSON_OPTIONAL, &n, err)) < 0 ||
        (st = samples_check(&f, "gpu", JSON_OPTIONAL, &n, err)) < 0 ||
        (st = samples_check(&f, "gpu_memory_bytes", JSON_OPTIONAL, &n, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    AS_AUTO(as_freep) char *text = json_format_ordered(doc);
    *ret = text ? arena_strdup(a, text) : NULL;
    return *ret ? AS_OK : as_fail_nomem(err);
}

static as_status file_decode(const json_t *j, const char *pointer, struct file_row *ret,
                             struct as_err *err)
{
    struct json_fields f;
    char at[AS_ERR_POINTER_MAX];
    struct file_row r = {0};
    as_status st = json_fields_init(&f, j, pointer, err);
    if (st < 0 || (st = json_fields_str(&f, "path", JSON_REQUIRED, &r.path, err)) < 0 ||
        (st = json_fields_i64(&f, "size", JSON_REQUIRED, 0, INT64_MAX, &r.size, err)) < 0 ||
        (st = json_fields_str(&f, "sha256", JSON_REQUIRED, &r.sha256, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    if (!sha256_hex_valid(r.sha256)) {
        json_pointer_child(pointer, "sha256", at);
        return as_fail_at(err, AS_E_INVAL, at,
                          "is not a SHA-256: expected 64 lower-case hexadecimal digits");
    }
    *ret = r;
    return AS_OK;
}

as_status files_decode(const json_t *doc, struct arena *a, struct files_request *ret,
                       struct as_err *err)
{
    static const char *const kinds[] = {"artifact", "checkpoint", "kept", "log", NULL};
    struct json_fields f;
    json_t *list = NULL;
    const char *lost = NULL;
    int kind = 0;
    int64_t step = -1;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_word(&f, "kind", JSON_REQUIRED, kinds, &kind, err)) < 0 ||
        (st = json_fields_array(&f, "files", JSON_REQUIRED, &list, err)) < 0 ||
        (st = json_fields_text(&f, "lost", JSON_OPTIONAL, 1, REASON_MAX, &lost, err)) < 0 ||
        (st = json_fields_i64(&f, "step", JSON_OPTIONAL, 0, INT64_MAX, &step, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    size_t n = json_array_size(list);
    if (lost && (n > 0 || kind != FILE_CHECKPOINT))
        return as_fail_at(err, AS_E_INVAL, "/lost",
                          "/lost: found beside %s%s, expected kind checkpoint and no files",
                          n > 0 ? "files" : "kind ", n > 0 ? "" : kinds[kind]);
    if ((kind == FILE_KEPT) != (step >= 0))
        return as_fail_at(err, AS_E_INVAL, "/step",
                          "/step: %s kind %s, expected a step beside kind kept alone",
                          step >= 0 ? "found beside" : "is missing beside", kinds[kind]);
    if (n > ITEMS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/files", "%zu files, at most %d", n, ITEMS_MAX);
    struct file_row *rows = arena_alloc(a, n ? n : 1, sizeof *rows);
    if (!rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for the files");
    for (size_t i = 0; i < n; i++) {
        char pointer[AS_ERR_POINTER_MAX];
        json_pointer_index("/files", i, pointer);
        st = file_decode(json_array_get(list, i), pointer, &rows[i], err);
        if (st != AS_OK)
            return st;
    }
    *ret = (struct files_request){
        .kind = (file_kind)kind, .lost = lost, .step = step, .files = {.rows = rows, .n = n}};
    return AS_OK;
}

as_status parts_decode(const json_t *doc, struct arena *a, struct parts_request *ret,
                       struct as_err *err)
{
    struct json_fields f;
    json_t *list = NULL, *part;
    size_t i;
    int64_t size = 0;
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = json_fields_i64(&f, "size", JSON_REQUIRED, 1, INT64_MAX, &size, err)) < 0 ||
        (st = json_fields_array(&f, "parts", JSON_REQUIRED, &list, err)) < 0 ||
        (st = json_fields_end(&f, err)) < 0)
        return st;
    size_t n = json_array_size(list);
    if (n > PARTS_MAX)
        return as_fail_at(err, AS_E_TOO_LARGE, "/parts", "/parts: found %zu, expected at most %d",
                          n, PARTS_MAX);
    const char **sha256 = arena_alloc(a, n ? n : 1, sizeof *sha256);
    if (!sha256)
        return as_fail_nomem(err);
    json_array_foreach(list, i, part)
    {
        char at[AS_ERR_POINTER_MAX];
        json_pointer_index("/parts", i, at);
        if (!(sha256[i] = json_string_value(part)))
            return as_fail_at(err, AS_E_INVAL, at, "%s: found %s, expected a string", at,
                              json_type_name(part));
    }
    *ret = (struct parts_request){.size = size, .sha256 = sha256, .n = n};
    return AS_OK;
}

json_t *parts_missing_encode(const int64_t *missing, size_t n)
{
    struct out o = out_begin();
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        list = list_add(list, json_integer(missing[i]));
    out_child(&o, "missing", list);
    return out_end(&o);
}

as_status final_metrics_read(struct json_fields *f, struct arena *a, struct completion *c,
                             struct as_err *err)
{
    json_t *values = NULL;
    int64_t step = -1; /* -1: the step after the latest one */
    struct measurement_list list = {0};
    as_status st = json_fields_object(f, "metrics", JSON_OPTIONAL, &values, err);
    if (st < 0 || (st = json_fields_i64(f, "step", JSON_OPTIONAL, 0, INT64_MAX, &step, err)) < 0)
        return st;
    if (!values)
        return AS_OK;
    list.rows = arena_alloc(a, json_object_size(values) + 1, sizeof *list.rows);
    if (!list.rows)
        return as_fail(err, AS_E_NOMEM, "out of memory for the metrics");
    st = metric_values_read(values, "/metrics", step, &list, err);
    if (st < 0)
        return st;
    c->metrics = list.rows;
    c->n_metrics = list.n;
    return AS_OK;
}

/* How far the rank of a gang came that ends the attempt for all. */
static as_status rank_read(struct json_fields *parent, struct completion *c, struct as_err *err)
{
    struct json_fields f;
    json_t *rank = NULL;
    as_status st = json_fields_object(parent, "rank", JSON_OPTIONAL, &rank, err);
    if (st < 0 || !rank)
        return st;
    if ((st = json_fields_init(&f, rank, "/rank", err)) < 0 ||
        (st = json_fields_i64(&f, "step", JSON_REQUIRED, 0, INT64_MAX, &c->rank_step, err)) < 0 ||
        (st = json_fields_i64(&f, "sent_bytes", JSON_REQUIRED, 0, INT64_MAX, &c->rank_sent_bytes,
                              err)) < 0 ||
        (st = json_fields_double(&f, "step_seconds", JSON_OPTIONAL, 0, 1e9, &c->rank_step_seconds,
                                 err)) < 0)
        return st;
    c->has_rank = true;
    return json_fields_end(&f, err);
}

as_status completion_read(struct json_fields *f, struct arena *a, struct completion *ret,
                          struct as_err *err)
{
    struct completion r = {.has_exit_code = json_is_integer(json_object_get(f->obj, "exit_code"))};
    int outcome = 0;
    r.ran_ms = -1;
    as_status st =
        json_fields_word(f, "outcome", JSON_REQUIRED, attempt_outcome_words, &outcome, err);
    if (st < 0 ||
        (st = json_fields_i64(f, "exit_code", JSON_OPTIONAL, INT32_MIN, INT32_MAX, &r.exit_code,
                              err)) < 0 ||
        (st = json_fields_i64(f, "ran_ms", JSON_OPTIONAL, 0, RUN_MAX_MS, &r.ran_ms, err)) < 0 ||
        (st = json_fields_i64(f, "waited_ms", JSON_OPTIONAL, 0, RUN_MAX_MS, &r.waited_ms, err)) <
            0 ||
        (st = final_metrics_read(f, a, &r, err)) < 0 || (st = rank_read(f, &r, err)) < 0 ||
        (st = json_fields_str(f, "reason", JSON_OPTIONAL, &r.reason, err)) < 0)
        return st;
    if (r.reason && strlen(r.reason) > 8000) /* 2000 characters of up to 4 bytes */
        return as_fail_at(err, AS_E_INVAL, "/reason", "is longer than 2000 characters");
    r.outcome = (attempt_outcome)outcome;
    r.has_ran = r.ran_ms >= 0;
    *ret = r;
    return AS_OK;
}

as_status completion_decode(const json_t *doc, struct arena *a, struct completion *ret,
                            struct as_err *err)
{
    struct json_fields f;
    struct completion r = {0};
    as_status st = json_fields_init(&f, doc, "", err);
    if (st < 0 || (st = completion_read(&f, a, &r, err)) < 0 || (st = json_fields_end(&f, err)) < 0)
        return st;
    *ret = r;
    return AS_OK;
}
