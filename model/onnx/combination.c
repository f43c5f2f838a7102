/* The formulas of model/combine as nodes, in double and in the order of the members (decision
 * 2009). A graph cannot skip rows, so with a choice by a column all inputs are computed and each
 * row takes one of them; a value that no key has takes the input of the others. */
#include "model/onnx/combination.h"

#include "model/combine/combine.h"

/* float predictions * weight, in double; of logarithms where `of_logs`. */
static const char *weighted(struct onnx_graph *g, const char *p, double weight, bool of_logs)
{
    static const double least = COMBINE_MIN_PROBABILITY, most = 1;
    p = onnx_graph_cast(g, p, ONNX_DOUBLE);
    if (of_logs) {
        p = onnx_graph_binary(g, "Max", p, onnx_graph_doubles(g, "least", &least, 1));
        p = onnx_graph_binary(g, "Min", p, onnx_graph_doubles(g, "most", &most, 1));
        p = onnx_graph_unary(g, "Log", p);
    }
    return onnx_graph_binary(g, "Mul", p, onnx_graph_doubles(g, "weight", &weight, 1));
}

/* The weighted mean of n members that follow each other, as float. */
static const char *mean_of(struct onnx_graph *g, const struct model_file *f, size_t first, size_t n,
                           const char *const *predictions)
{
    const char *sum = NULL;
    if (n == 1)
        return predictions[first];
    for (size_t i = first; i < first + n; i++) {
        const char *p = weighted(g, predictions[i], model_file_member(f, i)->weight, false);
        sum = sum ? onnx_graph_binary(g, "Add", sum, p) : p;
    }
    return onnx_graph_cast(g, sum, ONNX_FLOAT);
}

/* Boosting: the first member's predictions, and numbers that are added to them. */
static const char *sum_of(struct onnx_graph *g, const struct model_file *f, size_t first, size_t n,
                          const char *const *predictions)
{
    bool of_logs = model_file_data(f)->task == DATASET_CLASSIFICATION;
    const char *sum = weighted(g, predictions[first], 1, of_logs);
    for (size_t i = first + 1; i < first + n; i++)
        sum = onnx_graph_binary(
            g, "Add", sum, weighted(g, predictions[i], model_file_member(f, i)->weight, false));
    if (of_logs)
        sum = onnx_graph_unary(g, "Softmax", sum);
    return onnx_graph_cast(g, sum, ONNX_FLOAT);
}

const char *onnx_input_predictions(struct onnx_graph *g, const struct model_file *f, size_t input,
                                   const char *const *predictions)
{
    size_t first = 0, n = model_file_input(f, input, &first);
    return model_file_combine(f)->sums[input] ? sum_of(g, f, first, n, predictions)
                                              : mean_of(g, f, first, n, predictions);
}

/* ---- by a column ---- */

/* Which input each row takes: int64 [rows, 1]. A LabelEncoder takes texts and numbers alike; a
 * number that is missing is NaN, which equals no key. */
static const char *chosen_inputs(struct onnx_graph *g, const struct model_combine *c,
                                 const struct onnx_inputs *in)
{
    const struct dataset_column *column = &in->info->columns[c->column];
    const char **texts = onnx_graph_memory(g, c->n_buckets, sizeof *texts);
    float *numbers = onnx_graph_memory(g, c->n_buckets, sizeof *numbers);
    int64_t *values = onnx_graph_memory(g, c->n_buckets, sizeof *values);
    if (!texts || !numbers || !values)
        return NULL;
    for (size_t i = 0; i < c->n_buckets; i++) {
        numbers[i] = c->buckets[i].features[0];
        texts[i] = column->categorical ? column->values[(size_t)numbers[i]] : NULL;
        values[i] = (int64_t)c->buckets[i].input;
    }
    struct onnx_attr keys = {
        .name = "keys_floats", .kind = ONNX_ATTR_FLOATS, .floats = numbers, .n = c->n_buckets};
    if (column->categorical)
        keys = (struct onnx_attr){
            .name = "keys_strings", .kind = ONNX_ATTR_STRINGS, .strings = texts, .n = c->n_buckets};
    return onnx_graph_add(
        g, &(struct onnx_node){.op = "LabelEncoder",
                               .ml = true,
                               ONNX_IN(in->columns[c->column]),
                               ONNX_ATTRS(keys, onnx_ints("values_int64s", values, c->n_buckets),
                                          onnx_int("default_int64", (int64_t)c->other))});
}

/* Each row by the input of its value. Only what is chosen is looked at, so a NaN of another input
 * stays there. */
static const char *by_column(struct onnx_graph *g, const struct model_file *f,
                             const struct onnx_inputs *in, const char *const *predictions)
{
    const struct model_combine *c = model_file_combine(f);
    const char *ret = onnx_input_predictions(g, f, c->other, predictions);
    if (c->n_buckets == 0)
        return ret;
    const char *chosen = chosen_inputs(g, c, in);
    for (size_t k = 0; k < c->n_inputs; k++) {
        if (k == c->other)
            continue;
        const char *number = onnx_graph_ints(g, "input", (int64_t[]){(int64_t)k}, 1);
        const char *is_its = onnx_graph_binary(g, "Equal", chosen, number);
        const char *p = onnx_input_predictions(g, f, k, predictions);
        ret = onnx_graph_add(g, &(struct onnx_node){.op = "Where", ONNX_IN(is_its, p, ret)});
    }
    return ret;
}

/* combine_calibrate() */
static const char *calibrated(struct onnx_graph *g, const struct model_file *f, const char *p)
{
    const struct combine_calibration *c = &model_file_combine(f)->calibration;
    const double biases[] = {0, c->bias};
    if (c->slope == 0)
        return p;
    p = weighted(g, p, c->slope, true);
    if (model_file_data(f)->n_outputs == 2)
        p = onnx_graph_binary(g, "Add", p, onnx_graph_doubles(g, "bias", biases, 2));
    return onnx_graph_cast(g, onnx_graph_unary(g, "Softmax", p), ONNX_FLOAT);
}

static const char *combined(struct onnx_graph *g, const struct model_file *f,
                            const struct onnx_inputs *in, const char *const *predictions)
{
    const struct model_combine *c = model_file_combine(f);
    const char *sum = NULL;
    if (c->kind == MODEL_BY)
        return by_column(g, f, in, predictions);
    if (!c->weights)
        return onnx_input_predictions(g, f, 0, predictions);
    for (size_t k = 0; k < c->n_inputs; k++) {
        if (c->weights[k] == 0) /* it is there for inputs that see it */
            continue;
        const char *p =
            weighted(g, onnx_input_predictions(g, f, k, predictions), c->weights[k], c->of_logs);
        sum = sum ? onnx_graph_binary(g, "Add", sum, p) : p;
    }
    if (c->biases)
        sum = onnx_graph_binary(
            g, "Add", sum,
            onnx_graph_doubles(g, "biases", c->biases, model_file_data(f)->n_outputs));
    if (c->of_logs)
        sum = onnx_graph_unary(g, "Softmax", sum); /* over the last axis, its default */
    return onnx_graph_cast(g, sum, ONNX_FLOAT);
}

const char *onnx_combine(struct onnx_graph *g, const struct model_file *f,
                         const struct onnx_inputs *in, const char *const *predictions)
{
    return calibrated(g, f, combined(g, f, in, predictions));
}
