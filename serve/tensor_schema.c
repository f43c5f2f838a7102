/* The tensors of a model. Columns are found by name through a sorted list, so that a request with
 * thousands of columns in any order costs a few comparisons for each. */
#include "serve/tensor_schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

#define NAME_SHOWN 80
#define MOST_NUMBERS ((size_t)1 << 25) /* of a request to a model with texts or dates: 128 MiB */

static int compare_text(struct json_text a, const char *b)
{
    size_t n = strlen(b);
    int c = memcmp(a.s, b, a.len < n ? a.len : n);
    return c ? c : (a.len > n) - (a.len < n);
}

static int compare_columns(const void *a, const void *b, void *arg)
{
    const struct dataset_column *columns = arg;
    return strcmp(columns[*(const size_t *)a].name, columns[*(const size_t *)b].name);
}

static bool takes_text(const struct dataset_column *c)
{
    return c->categorical || c->part != DATASET_CELL;
}

/* Columns can be named if the record has names, and all differ. */
static as_status sort_columns(struct model_schema *s, struct as_err *err)
{
    struct dataset_column *columns = s->info->columns;
    s->by_name = as_calloc(s->features, sizeof *s->by_name);
    if (!s->by_name)
        return as_fail_nomem(err);
    for (size_t i = 0; i < s->features; i = dataset_next_column(s->info, i)) {
        s->by_name[s->columns++] = i;
        s->any_text |= takes_text(&columns[i]);
    }
    qsort_r(s->by_name, s->columns, sizeof *s->by_name, compare_columns, columns);
    s->by_column = true;
    for (size_t i = 1; i < s->columns; i++)
        if (as_streq(columns[s->by_name[i - 1]].name, columns[s->by_name[i]].name))
            s->by_column = false;
    if (!s->by_column && s->any_text)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "two columns have the same name, and some hold text: tensors cannot "
                       "name them");
    return AS_OK;
}

as_status model_schema_init(struct model_schema *s, const struct model_file *model, size_t outputs,
                            struct as_err *err)
{
    const struct dataset_info *info = model_file_data(model);
    *s = (struct model_schema){.info = info,
                               .combine = model_file_combine(model),
                               .features = info->n_features,
                               .outputs = outputs};
    if (info->input == DATASET_TOKEN_TEXT)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "the model predicts the next token of a text, which is not served: expected "
                       "a model of tables or images");
    return info->input == DATASET_TABLE && info->columns ? sort_columns(s, err) : AS_OK;
}

void model_schema_done(struct model_schema *s)
{
    free(s->by_name);
    *s = (struct model_schema){0};
}

static bool is_classes(const struct model_schema *s)
{
    return s->info->task == DATASET_CLASSIFICATION;
}

bool model_schema_output(const struct model_schema *s, struct json_text name, schema_output *ret)
{
    if (compare_text(name, SCHEMA_PREDICTIONS) == 0) {
        *ret = SCHEMA_OUT_PREDICTIONS;
        return true;
    }
    *ret = SCHEMA_OUT_PROBABILITIES;
    return is_classes(s) && compare_text(name, SCHEMA_PROBABILITIES) == 0;
}

as_status model_schema_wishes(const struct model_schema *s, const struct infer_request *q,
                              struct as_err *err)
{
    schema_output kind;
    for (size_t i = 0; i < q->n_wishes; i++) {
        struct json_text name = q->wishes[i].name;
        if (!model_schema_output(s, name, &kind))
            return as_fail(err, AS_E_INVAL,
                           "the model has no output '%.*s', expected '" SCHEMA_PREDICTIONS "'%s",
                           name.len < NAME_SHOWN ? (int)name.len : NAME_SHOWN, name.s,
                           is_classes(s) ? " or '" SCHEMA_PROBABILITIES "'" : "");
    }
    return AS_OK;
}

/* ---- metadata ---- */

static json_t *tensor_json(const char *name, tensor_type type, const int64_t *dims, size_t n)
{
    json_t *shape = json_array();
    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(shape, json_integer(dims[i]));
    return json_pack("{s:s, s:s, s:o}", "name", name, "datatype", tensor_type_name(type), "shape",
                     shape);
}

static json_t *inputs_json(const struct model_schema *s)
{
    const struct dataset_info *info = s->info;
    json_t *list = json_array();
    const int64_t image[] = {-1, (int64_t)info->height, (int64_t)info->width,
                             (int64_t)info->channels};
    const int64_t rows[] = {-1, (int64_t)s->features};
    if (info->input == DATASET_IMAGE)
        (void)json_array_append_new(list, tensor_json(SCHEMA_INPUT, TENSOR_FP32, image, 4));
    else if (!s->by_column)
        (void)json_array_append_new(list, tensor_json(SCHEMA_INPUT, TENSOR_FP32, rows, 2));
    else
        for (size_t i = 0; i < s->features; i = dataset_next_column(info, i)) {
            const struct dataset_column *c = &info->columns[i];
            (void)json_array_append_new(
                list, tensor_json(c->name, takes_text(c) ? TENSOR_BYTES : TENSOR_FP32, rows, 1));
        }
    return list;
}

static json_t *outputs_json(const struct model_schema *s)
{
    json_t *list = json_array();
    const int64_t dims[] = {-1, (int64_t)s->outputs};
    if (is_classes(s)) {
        (void)json_array_append_new(list, tensor_json(SCHEMA_PREDICTIONS, TENSOR_BYTES, dims, 1));
        (void)json_array_append_new(list, tensor_json(SCHEMA_PROBABILITIES, TENSOR_FP32, dims, 2));
    } else {
        (void)json_array_append_new(
            list, tensor_json(SCHEMA_PREDICTIONS, TENSOR_FP32, dims, s->outputs > 1 ? 2 : 1));
    }
    return list;
}

as_status model_schema_metadata(const struct model_schema *s, const char *name, const char *version,
                                struct str *ret, struct as_err *err)
{
    JSON_AUTO j =
        json_pack("{s:s, s:[s], s:s, s:o, s:o}", "name", name, "versions", version, "platform",
                  "assay_safetensors", "inputs", inputs_json(s), "outputs", outputs_json(s));
    AS_AUTO(as_freep) char *text = j ? json_format_ordered(j) : NULL;
    if (!text)
        return as_fail_nomem(err);
    str_puts(ret, text);
    return str_check(ret, err);
}

/* ---- rows ---- */

struct row_fill {
    const struct model_schema *s;
    const struct predictor *cells;
    struct arena *arena;
    float *raw; /* [rows, features]; in the arena */
    size_t rows;
};

static as_status check_rows(size_t rows, size_t max_rows, struct as_err *err)
{
    if (rows <= max_rows)
        return AS_OK;
    return as_fail(err, AS_E_TOO_LARGE, "the request has %zu rows, at most %zu are allowed", rows,
                   max_rows);
}

static as_status fill_numbers(const struct row_fill *f, size_t column, const float *from,
                              size_t stride, struct as_err *err)
{
    float *to = f->raw + column;
    for (size_t row = 0; row < f->rows; row++, to += f->s->features) {
        *to = from[row * stride];
        if (!isnan(*to))
            continue;
        as_status st = predictor_check(f->cells, column, *to, err); /* may it be missing? */
        if (st < 0)
            return as_err_prefix(err, st, "row %zu", row);
    }
    return AS_OK;
}

static as_status fill_texts(const struct row_fill *f, size_t column, const struct json_text *from,
                            struct as_err *err)
{
    float *to = f->raw + column;
    for (size_t row = 0; row < f->rows; row++, to += f->s->features) {
        as_status st = predictor_cell(f->cells, column, from[row].s, from[row].len, to, err);
        if (st < 0)
            return as_err_prefix(err, st, "row %zu", row);
    }
    return AS_OK;
}

/* One tensor with all columns, [rows, …], is already what the predictor takes. */
static as_status take_matrix(struct row_fill *f, const struct infer_input *in, struct as_err *err)
{
    bool is_table = f->s->info->input == DATASET_TABLE;
    for (size_t i = 0; i < in->n; i++) {
        if (!isnan(in->numbers[i]))
            continue;
        as_status st = is_table ? predictor_check(f->cells, i % f->s->features, NAN, err)
                                : as_fail(err, AS_E_INVAL,
                                          "element %zu of tensor '" SCHEMA_INPUT
                                          "' is missing, expected a number",
                                          i % f->s->features);
        if (st < 0)
            return as_err_prefix(err, st, "row %zu", i / f->s->features);
    }
    f->raw = in->numbers;
    return AS_OK;
}

static as_status check_matrix(const struct model_schema *s, const struct infer_input *in,
                              struct as_err *err)
{
    char shape[200];
    if (in->type == TENSOR_BYTES)
        return as_fail(err, AS_E_INVAL,
                       "tensor '" SCHEMA_INPUT "' has the datatype BYTES, expected numbers");
    if (in->n_dims < 2 || in->n / in->shape[0] != s->features)
        return as_fail(err, AS_E_INVAL,
                       "tensor '" SCHEMA_INPUT "' has the shape %s, expected [n, %zu]",
                       infer_shape_format(in, shape), s->features);
    return AS_OK;
}

static bool find_column(const struct model_schema *s, struct json_text name, size_t *ret)
{
    size_t low = 0, high = s->columns;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = compare_text(name, s->info->columns[s->by_name[middle]].name);
        if (c == 0) {
            *ret = s->by_name[middle];
            return true;
        }
        *(c < 0 ? &high : &low) = c < 0 ? middle : middle + 1;
    }
    return false;
}

static as_status fail_unknown(const struct model_schema *s, const struct infer_input *in,
                              struct as_err *err)
{
    char name[64];
    const char *nearest = s->info->columns[0].name;
    size_t least = 65;
    (void)snprintf(name, sizeof name, "%.*s", in->name.len < 63 ? (int)in->name.len : 63,
                   in->name.s);
    for (size_t i = 0; i < s->columns && i < 512; i++) {
        const char *known = s->info->columns[s->by_name[i]].name;
        size_t d = as_edit_distance(name, known);
        if (d < least) {
            least = d;
            nearest = known;
        }
    }
    return as_fail(err, AS_E_INVAL,
                   "the model has no column '%s': expected one tensor for each of its %zu columns, "
                   "such as '%.80s'%s",
                   name, s->columns, nearest,
                   s->any_text ? "" : ", or one tensor '" SCHEMA_INPUT "' [n, columns]");
}

static as_status check_column(const struct model_schema *s, const struct infer_input *in,
                              size_t column, size_t rows, struct as_err *err)
{
    const struct dataset_column *c = &s->info->columns[column];
    char shape[200];
    bool is_list = in->n_dims == 1 || (in->n_dims == 2 && in->shape[1] == 1);
    if (!is_list)
        return as_fail(err, AS_E_INVAL, "tensor '%.80s' has the shape %s, expected [n] or [n, 1]",
                       c->name, infer_shape_format(in, shape));
    if (in->n != rows)
        return as_fail(err, AS_E_INVAL, "tensor '%.80s' has %zu rows, but the first tensor has %zu",
                       c->name, in->n, rows);
    if (takes_text(c) && in->type != TENSOR_BYTES)
        return as_fail(err, AS_E_INVAL,
                       "tensor '%.80s' has the datatype %s, expected BYTES: the column holds %s",
                       c->name, tensor_type_name(in->type),
                       c->categorical              ? "categories"
                       : c->part == DATASET_HASHED ? "texts"
                                                   : "dates");
    return AS_OK;
}

static as_status check_complete(const struct model_schema *s, const struct infer_request *q,
                                const unsigned char *seen, struct as_err *err)
{
    if (q->n_inputs == s->columns)
        return AS_OK;
    size_t first = 0;
    while (seen[first])
        first = dataset_next_column(s->info, first);
    return as_fail(
        err, AS_E_INVAL,
        "there is no tensor for column '%.80s': found %zu tensors, expected one for each "
        "of %zu columns",
        s->info->columns[first].name, q->n_inputs, s->columns);
}

/* Find and check the columns of all tensors. Memory for the rows is taken only afterwards, when it
 * is known that each of its numbers was sent. */
static as_status check_columns(const struct row_fill *f, const struct infer_request *q,
                               size_t *column, struct as_err *err)
{
    const struct model_schema *s = f->s;
    unsigned char *seen = arena_alloc(f->arena, s->features, 1);
    as_status st = seen && column ? AS_OK : as_fail_nomem(err);
    for (size_t i = 0; i < q->n_inputs && st == AS_OK; i++) {
        const struct infer_input *in = &q->inputs[i];
        if (!find_column(s, in->name, &column[i]))
            return fail_unknown(s, in, err);
        if (seen[column[i]]++)
            return as_fail(err, AS_E_INVAL, "tensor '%.80s' stands twice in the request",
                           s->info->columns[column[i]].name);
        st = check_column(s, in, column[i], f->rows, err);
    }
    return st == AS_OK ? check_complete(s, q, seen, err) : st;
}

/* A text of a few bytes becomes hundreds of numbers, so the bytes of a request do not bound
 * them. */
static as_status make_rows(struct row_fill *f, struct as_err *err)
{
    if (f->s->features > f->s->columns && f->rows > MOST_NUMBERS / f->s->features)
        return as_fail(err, AS_E_TOO_LARGE,
                       "the request has %zu rows, which become %zu numbers each: expected at most "
                       "%zu rows for this model",
                       f->rows, f->s->features, MOST_NUMBERS / f->s->features);
    f->raw = arena_alloc(f->arena, f->rows * f->s->features, sizeof *f->raw);
    return f->raw ? AS_OK : as_fail_nomem(err);
}

static as_status fill_columns(struct row_fill *f, const struct infer_request *q, struct as_err *err)
{
    size_t *column = arena_alloc(f->arena, q->n_inputs, sizeof *column);
    as_status st = check_columns(f, q, column, err);
    if (st == AS_OK)
        st = make_rows(f, err);
    for (size_t i = 0; i < q->n_inputs && st == AS_OK; i++)
        st = q->inputs[i].texts ? fill_texts(f, column[i], q->inputs[i].texts, err)
                                : fill_numbers(f, column[i], q->inputs[i].numbers, 1, err);
    return st;
}

/* Is the request one tensor with all columns? A table of one column named `input` is read by
 * name. */
static bool is_matrix(const struct model_schema *s, const struct infer_request *q)
{
    size_t column;
    if (!s->by_column)
        return true;
    return q->n_inputs == 1 && !s->any_text && compare_text(q->inputs[0].name, SCHEMA_INPUT) == 0 &&
           !find_column(s, q->inputs[0].name, &column);
}

as_status model_schema_rows(const struct model_schema *s, const struct predictor *cells,
                            const struct infer_request *q, size_t max_rows, struct arena *arena,
                            float **ret, size_t *ret_rows, struct as_err *err)
{
    const struct infer_input *first = &q->inputs[0];
    bool one = is_matrix(s, q);
    if (one && (q->n_inputs != 1 || compare_text(first->name, SCHEMA_INPUT) != 0))
        return as_fail(
            err, AS_E_INVAL,
            "the request has %zu tensors, the first is '%.*s': expected one tensor, '" SCHEMA_INPUT
            "'",
            q->n_inputs, first->name.len < NAME_SHOWN ? (int)first->name.len : NAME_SHOWN,
            first->name.s);
    as_status st = one ? check_matrix(s, first, err) : AS_OK;
    struct row_fill f = {s, cells, arena, NULL, 0};
    f.rows = one && st == AS_OK ? first->shape[0] : first->n;
    if (st == AS_OK)
        st = check_rows(f.rows, max_rows, err);
    if (st == AS_OK)
        st = one ? take_matrix(&f, first, err) : fill_columns(&f, q, err);
    if (st < 0)
        return st;
    *ret = f.raw;
    *ret_rows = f.rows;
    return AS_OK;
}
