/* Encoders of data sets and their files. What is stored as JSON text (target, classes, options,
 * image, columns) goes out unchanged: the server does not interpret a record again, so an older one
 * is shown as it was made. Lists leave the columns out, because a table may have thousands. */
#include "api/codec/wire.h"

#include "api/codec/wire_priv.h"

static json_t *file_encode(const struct dataset_file_row *r)
{
    struct out o = out_begin();
    out_str(&o, "role", r->role);
    out_str(&o, "sha256", r->sha256);
    out_i64(&o, "size", r->size);
    return out_end(&o);
}

static json_t *expected_encode(const struct dataset_row *r)
{
    struct out o = out_begin();
    out_str(&o, "sha256", r->expected_sha256);
    out_i64(&o, "rows", r->expected_rows);
    out_i64(&o, "features", r->expected_features);
    return out_end(&o);
}

static json_t *test_encode(const struct dataset_row *r)
{
    struct out o = out_begin();
    out_i64(&o, "rows", r->test_rows);
    out_str(&o, "train_sha256", r->train_sha256);
    return out_end(&o);
}

/* with_columns: false in lists, because a data set may have thousands of columns. */
static json_t *encode_dataset(const struct dataset_row *r, bool with_columns)
{
    struct out o = out_begin();
    json_t *files = json_array();
    for (size_t i = 0; i < r->n_files; i++)
        files = list_add(files, file_encode(&r->files[i]));
    out_str(&o, "name", r->name);
    out_str(&o, "format", r->format);
    out_str(&o, "task", r->task);
    out_str(&o, "input", r->input);
    out_json(&o, "target", r->target);
    out_i64(&o, "rows", r->n_rows);
    out_i64(&o, "features", r->n_features);
    out_i64(&o, "outputs", r->n_outputs);
    if (r->classes)
        out_json(&o, "classes", r->classes);
    if (r->options)
        out_json(&o, "options", r->options);
    if (r->image)
        out_json(&o, "image", r->image);
    if (r->columns && with_columns)
        out_json(&o, "columns", r->columns);
    if (r->expected_sha256)
        out_child(&o, "expected", expected_encode(r));
    if (r->test_rows > 0)
        out_child(&o, "test", test_encode(r));
    out_str(&o, "sha256", r->sha256);
    out_child(&o, "files", files);
    out_str(&o, "description", r->description);
    out_time(&o, "created_at", r->created_ms);
    return out_end(&o);
}

json_t *dataset_encode(const struct dataset_row *r)
{
    return encode_dataset(r, true);
}

json_t *dataset_preview_encode(const char *preview)
{
    return json_loads(preview, 0, NULL);
}

json_t *dataset_page_encode(const struct dataset_page *p)
{
    json_t *items = json_array();
    for (size_t i = 0; i < p->n; i++)
        items = list_add(items, encode_dataset(&p->rows[i], false));
    return page_end(items, p->next_cursor);
}
