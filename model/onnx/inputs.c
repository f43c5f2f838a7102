/* The inputs of a graph, and the check of their numbers.
 *
 * A graph cannot refuse a row. So that a bad number never gives a prediction that looks good (a
 * relu may turn NaN into 0), x - x is summed over the numbers of a row: it is 0, or NaN if one of
 * them is NaN or infinite. The sum is added to the row's predictions at the end. */
#include "model/onnx/inputs.h"

#include <math.h>

/* ---- checking numbers ---- */

/* Columns that may be missing: 1. NULL: none. */
static const char *may_be_missing(struct onnx_graph *g, const struct dataset_info *info)
{
    size_t n = 0, any = 0;
    unsigned char *may = onnx_graph_memory(g, info->n_features, 1);
    for (size_t c = 0; may && c < info->n_features; c++) {
        if (info->columns[c].categorical)
            continue;
        any += info->columns[c].n_missing > 0;
        may[n++] = info->columns[c].n_missing > 0;
    }
    return any ? onnx_graph_constant(g, "may_be_missing", ONNX_BOOL, (int64_t[]){(int64_t)n}, 1,
                                     may)
               : NULL;
}

/* The numbers with NaN for the codes of missing values; one code after another. Of a table that has
 * an ONNX form each number is a column of its own. */
static const char *without_codes(struct onnx_graph *g, const struct dataset_info *info,
                                 const char *x)
{
    const struct dataset_codes *codes = &info->options.missing;
    for (size_t i = 0; x && i < codes->n; i++) {
        const char *code = onnx_graph_scalar(g, "code", (float)codes->value[i]);
        const char *is_code = onnx_graph_binary(g, "Equal", x, code);
        x = onnx_graph_add(
            g, &(struct onnx_node){.op = "Where",
                                   ONNX_IN(is_code, onnx_graph_scalar(g, "no_number", NAN), x)});
    }
    return x;
}

static const char *add_check(struct onnx_graph *g, const char *x, const int64_t *axes, size_t n)
{
    x = onnx_graph_binary(g, "Sub", x, x);
    x = onnx_graph_binary(g, "ReduceSum", x, onnx_graph_ints(g, "axes", axes, n));
    return n == 1 ? x : onnx_graph_unary(g, "Flatten", x); /* [rows, 1, 1, 1] */
}

static const char *check_columns(struct onnx_graph *g, const struct onnx_inputs *in)
{
    const char *x = in->numbers;
    const char *may = in->info->columns ? may_be_missing(g, in->info) : NULL;
    if (may) {
        may = onnx_graph_binary(g, "And", onnx_graph_unary(g, "IsNaN", x), may);
        x = onnx_graph_add(g, &(struct onnx_node){
                                  .op = "Where", ONNX_IN(may, onnx_graph_scalar(g, "zero", 0), x)});
    }
    return add_check(g, x, (int64_t[]){1}, 1);
}

/* ---- inputs ---- */

static const char *name_of(struct onnx_graph *g, const struct dataset_info *info, size_t column)
{
    const char *name = info->columns[column].name;
    if (*name && !onnx_graph_has_input(g, name))
        return name;
    do
        name = onnx_graph_text(g, "%s_%zu", name, column);
    while (name && onnx_graph_has_input(g, name));
    return name;
}

static const char *add_column(struct onnx_graph *g, const struct dataset_info *info, size_t column)
{
    const struct dataset_column *c = &info->columns[column];
    struct onnx_port port = {.name = name_of(g, info, column),
                             .type = c->categorical ? ONNX_STRING : ONNX_FLOAT,
                             .dims = (int64_t[]){ONNX_ROWS, 1},
                             .n_dims = 2};
    if (c->categorical)
        port.note = c->n_missing ? "a category; empty where it is missing" : "a category";
    else
        port.note = c->n_missing ? "a number; NaN where it is missing" : "a number";
    return port.name ? onnx_graph_input(g, &port) : NULL;
}

static void add_columns(struct onnx_graph *g, const struct dataset_info *info,
                        struct onnx_inputs *ret)
{
    size_t n = 0;
    const char **numbers = onnx_graph_memory(g, info->n_features, sizeof *numbers);
    const char **texts = onnx_graph_memory(g, info->n_features, sizeof *texts);
    ret->columns = onnx_graph_memory(g, info->n_features, sizeof *ret->columns);
    for (size_t c = 0; numbers && texts && ret->columns && c < info->n_features; c++) {
        const char *value = add_column(g, info, c);
        ret->columns[c] = value;
        if (info->columns[c].categorical)
            texts[c] = value;
        else
            numbers[n++] = value;
    }
    ret->numbers = n > 0 ? without_codes(g, info, onnx_graph_concat(g, numbers, n, 1)) : NULL;
    ret->texts = n < info->n_features ? texts : NULL;
    ret->check = n > 0 ? check_columns(g, ret) : NULL;
}

static void add_array(struct onnx_graph *g, const struct dataset_info *info,
                      struct onnx_inputs *ret)
{
    const struct onnx_port port = {.name = "x",
                                   .type = ONNX_FLOAT,
                                   .dims = (int64_t[]){ONNX_ROWS, (int64_t)info->n_features},
                                   .n_dims = 2};
    ret->numbers = onnx_graph_input(g, &port);
    ret->check = check_columns(g, ret);
}

static void add_images(struct onnx_graph *g, const struct dataset_info *info,
                       struct onnx_inputs *ret)
{
    int64_t h = (int64_t)info->height, w = (int64_t)info->width, c = (int64_t)info->channels;
    bool bytes = info->format == DATASET_IDX || info->format == DATASET_CIFAR;
    bool first = info->options.channels_first;
    const int64_t last_dims[] = {ONNX_ROWS, h, w, c}, first_dims[] = {ONNX_ROWS, c, h, w};
    const struct onnx_port port = {.name = "image",
                                   .type = bytes ? ONNX_UINT8 : ONNX_FLOAT,
                                   .dims = first ? first_dims : last_dims,
                                   .n_dims = 4,
                                   .note = "values as in the data set, not scaled"};
    const char *value = onnx_graph_input(g, &port);
    if (bytes)
        value = onnx_graph_cast(g, value, ONNX_FLOAT);
    else
        ret->check = add_check(g, value, (int64_t[]){1, 2, 3}, 3);
    ret->pixels = first ? onnx_graph_transpose(g, value, (int64_t[]){0, 2, 3, 1}, 4) : value;
}

void onnx_inputs_add(struct onnx_graph *g, const struct dataset_info *info, size_t context,
                     struct onnx_inputs *ret)
{
    *ret = (struct onnx_inputs){.info = info};
    if (info->input == DATASET_IMAGE) {
        add_images(g, info, ret);
    } else if (info->input == DATASET_TOKEN_TEXT) {
        const struct onnx_port port = {.name = "tokens",
                                       .type = ONNX_INT64,
                                       .dims = (int64_t[]){ONNX_ROWS, (int64_t)context},
                                       .n_dims = 2};
        ret->tokens = onnx_graph_input(g, &port);
    } else if (info->columns) {
        add_columns(g, info, ret);
    } else {
        add_array(g, info, ret);
    }
}
