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
static const char *sum_of(struct onnx_graph *g, const struct model_file *f,
                          const char *const *predictions)
{
    bool of_logs = model_file_combine(f)->of_logs;
    const char *sum = weighted(g, predictions[0], 1, of_logs);
    for (size_t i = 1; i < model_file_n_members(f); i++)
        sum = onnx_graph_binary(
            g, "Add", sum, weighted(g, predictions[i], model_file_member(f, i)->weight, false));
    if (of_logs)
        sum = onnx_graph_unary(g, "Softmax", sum);
    return onnx_graph_cast(g, sum, ONNX_FLOAT);
}

const char *onnx_combine(struct onnx_graph *g, const struct model_file *f,
                         const char *const *predictions)
{
    const struct model_combine *c = model_file_combine(f);
    size_t n = model_file_n_members(f), end = 0;
    const char *sum = NULL;
    if (c->kind == MODEL_MEAN)
        return mean_of(g, f, 0, n, predictions);
    if (c->kind == MODEL_SUM)
        return sum_of(g, f, predictions);
    for (size_t k = 0; k < c->n_inputs; k++) {
        size_t first = end;
        while (end < n && model_file_member(f, end)->input == k)
            end++;
        const char *p = mean_of(g, f, first, end - first, predictions);
        p = weighted(g, p, c->weights[k], c->of_logs);
        sum = sum ? onnx_graph_binary(g, "Add", sum, p) : p;
    }
    sum = onnx_graph_binary(
        g, "Add", sum, onnx_graph_doubles(g, "biases", c->biases, model_file_data(f)->n_outputs));
    if (c->of_logs)
        sum = onnx_graph_unary(g, "Softmax", sum); /* over the last axis, its default */
    return onnx_graph_cast(g, sum, ONNX_FLOAT);
}
