#include "model/onnx/stacked.h"

#include "model/onnx/combination.h"

/* model_stacked_values(): of two classes the probability of the second. */
static const char *values_of(struct onnx_graph *g, const struct model_file *f, size_t input,
                             const char *const *predictions)
{
    const char *p = onnx_input_predictions(g, f, input, predictions);
    if (model_stacked_width(model_file_data(f)) == model_file_data(f)->n_outputs)
        return p;
    const char *second = onnx_graph_ints(g, "second", (int64_t[]){1}, 1);
    return onnx_graph_add(
        g,
        &(struct onnx_node){.op = "Gather", ONNX_IN(p, second), ONNX_ATTRS(onnx_int("axis", 1))});
}

/* Columns of texts and names are those of the data set; the further ones have none. */
static const char **longer(struct onnx_graph *g, const char **columns, size_t n, size_t to)
{
    const char **ret = columns ? onnx_graph_memory(g, to, sizeof *ret) : NULL;
    for (size_t i = 0; ret && i < n; i++)
        ret[i] = columns[i];
    return ret;
}

void onnx_stack_rows(struct onnx_graph *g, const struct model_file *f,
                     const struct model_stack *stack, const struct onnx_inputs *in,
                     const char *const *predictions, struct onnx_inputs *ret)
{
    const char **parts = onnx_graph_memory(g, stack->n_of + 1, sizeof *parts);
    size_t n = 0, features = in->info->n_features;
    *ret = *in;
    ret->info = stack->info;
    ret->texts = longer(g, in->texts, features, stack->info->n_features);
    ret->columns = longer(g, in->columns, features, stack->info->n_features);
    if (!parts)
        return;
    if (in->numbers)
        parts[n++] = in->numbers;
    for (size_t i = 0; i < stack->n_of; i++)
        parts[n++] = values_of(g, f, stack->of[i], predictions);
    ret->numbers = onnx_graph_concat(g, parts, n, 1);
}
