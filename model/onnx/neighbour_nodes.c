/* Squared distances are |x|² - 2 x·t + |t|² in double, which a product of matrices gives for all
 * rows at once; rounded to float32 they are those of model/neighbours, but for a difference that no
 * float32 shows. TopK takes the smaller index of two equal ones, as the trainer does. */
#include "model/onnx/neighbour_nodes.h"

#include <float.h>
#include <string.h>

#include "model/neighbours/neighbours.h"
#include "model/trees/tree_inputs.h"
#include "model/trees/tree_model.h"

static const char *scalar(struct onnx_graph *g, const char *name, double v)
{
    return onnx_graph_doubles(g, name, &v, 1);
}

/* The rows as a matrix [inputs, n] of doubles. */
static const char *columns_of(struct onnx_graph *g, const struct neighbours *m)
{
    size_t inputs = m->shape.inputs;
    double *t = onnx_graph_memory(g, inputs * m->n, sizeof *t);
    for (size_t i = 0; t && i < m->n; i++)
        for (size_t k = 0; k < inputs; k++)
            t[k * m->n + i] = (double)m->x[i * inputs + k];
    const int64_t dims[] = {(int64_t)inputs, (int64_t)m->n};
    return t ? onnx_graph_constant(g, "neighbours", ONNX_DOUBLE, dims, 2, t) : NULL;
}

/* The targets of each row [n, outputs], of classes 1 at its class. */
static const char *values_of(struct onnx_graph *g, const struct neighbours *m)
{
    size_t outputs = m->shape.outputs;
    double *v = onnx_graph_memory(g, m->n * outputs, sizeof *v);
    for (size_t i = 0; v && i < m->n; i++) {
        if (m->labels)
            v[i * outputs + m->labels[i]] = 1;
        for (size_t k = 0; m->targets && k < outputs; k++)
            v[i * outputs + k] = (double)m->targets[i * outputs + k];
    }
    const int64_t dims[] = {(int64_t)m->n, (int64_t)outputs};
    return v ? onnx_graph_constant(g, "values", ONNX_DOUBLE, dims, 2, v) : NULL;
}

static const char *counts_of(struct onnx_graph *g, const struct neighbours *m)
{
    double *v = onnx_graph_memory(g, m->n, sizeof *v);
    for (size_t i = 0; v && i < m->n; i++)
        v[i] = (double)m->weights[i];
    const int64_t dims[] = {(int64_t)m->n};
    return v ? onnx_graph_constant(g, "weights", ONNX_DOUBLE, dims, 1, v) : NULL;
}

/* Sums over the axis. */
static const char *sum_over(struct onnx_graph *g, const char *x, int64_t axis, bool keeps)
{
    const char *axes = onnx_graph_ints(g, "axes", &axis, 1);
    return onnx_graph_add(g, &(struct onnx_node){.op = "ReduceSum",
                                                 ONNX_IN(x, axes),
                                                 ONNX_ATTRS(onnx_int("keepdims", keeps))});
}

/* Squared distances [rows, n], float32. */
static const char *distances(struct onnx_graph *g, const struct neighbours *m, const char *x)
{
    x = onnx_graph_cast(g, x, ONNX_DOUBLE);
    const char *square = sum_over(g, onnx_graph_binary(g, "Mul", x, x), 1, true);
    const char *both =
        onnx_graph_binary(g, "Add", square, onnx_graph_doubles(g, "squares", m->squares, m->n));
    const char *product = onnx_graph_binary(g, "MatMul", x, columns_of(g, m));
    product = onnx_graph_binary(g, "Mul", product, scalar(g, "two", 2));
    const char *d = onnx_graph_binary(g, "Sub", both, product);
    const char *zero = onnx_graph_binary(g, "Mul", both, scalar(g, "zero", NEIGHBOURS_ZERO));
    const char *differs = onnx_graph_unary(g, "Not", onnx_graph_binary(g, "Less", d, zero));
    d = onnx_graph_binary(g, "Mul", d, onnx_graph_cast(g, differs, ONNX_DOUBLE));
    d = onnx_graph_binary(g, "Min", d, scalar(g, "most", (double)FLT_MAX));
    return onnx_graph_cast(g, d, ONNX_FLOAT);
}

/* How much each neighbour counts [rows, k], from squared distances [rows, k]: 1 / distance; where
 * the nearest one is at 0, 1 for those at 0 and else 0. */
static const char *by_distance(struct onnx_graph *g, const char *d)
{
    const char *zero = onnx_graph_binary(g, "LessOrEqual", d, scalar(g, "none", 0));
    zero = onnx_graph_cast(g, zero, ONNX_DOUBLE);
    const int64_t axis = 1;
    const char *any = onnx_graph_add(
        g, &(struct onnx_node){
               .op = "ReduceMax", ONNX_IN(zero), ONNX_ATTRS(onnx_ints("axes", &axis, 1))});
    const char *far = onnx_graph_binary(g, "Sub", scalar(g, "one", 1), any);
    const char *root = onnx_graph_unary(g, "Sqrt", onnx_graph_binary(g, "Add", d, zero));
    const char *shares = onnx_graph_binary(g, "Div", scalar(g, "one", 1), root);
    shares = onnx_graph_binary(g, "Mul", shares, far);
    return onnx_graph_binary(g, "Add", shares, onnx_graph_binary(g, "Mul", zero, any));
}

/* A distance that is NaN makes the mean NaN, also where distances do not weigh. */
static const char *mean_of_nearest(struct onnx_graph *g, const struct neighbours *m,
                                   const struct train_model_spec *spec, const char *x)
{
    int64_t k = spec->neighbours < (int64_t)m->n ? spec->neighbours : (int64_t)m->n;
    const char *index = NULL;
    const char *nearest = onnx_graph_add_two(
        g,
        &(struct onnx_node){.op = "TopK",
                            ONNX_IN(distances(g, m, x), onnx_graph_ints(g, "k", &k, 1)),
                            ONNX_ATTRS(onnx_int("largest", 0))},
        &index);
    const char *shares = onnx_graph_binary(g, "Gather", counts_of(g, m), index);
    nearest = onnx_graph_cast(g, nearest, ONNX_DOUBLE);
    shares = spec->by_distance
                 ? onnx_graph_binary(g, "Mul", shares, by_distance(g, nearest))
                 : onnx_graph_binary(g, "Add", shares,
                                     onnx_graph_binary(g, "Mul", nearest, scalar(g, "nothing", 0)));
    const char *values = onnx_graph_binary(g, "Gather", values_of(g, m), index);
    const int64_t axis = 2;
    const char *wide =
        onnx_graph_binary(g, "Unsqueeze", shares, onnx_graph_ints(g, "axis", &axis, 1));
    const char *sums = sum_over(g, onnx_graph_binary(g, "Mul", values, wide), 1, false);
    const char *all = sum_over(g, shares, 1, true);
    return onnx_graph_cast(g, onnx_graph_binary(g, "Div", sums, all), ONNX_FLOAT);
}

const char *onnx_neighbours_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                                const char *x)
{
    const struct model_member *m = model_file_member(f, member);
    const struct safetensors_tensor *t = model_file_find(f, member, "neighbours");
    const struct tree_outputs o = tree_outputs_of(m->spec, m->info);
    const struct neighbours_shape shape = {model_inputs_count(m->spec, m->info), o.values,
                                           o.classes};
    AS_AUTO(neighbours_done) struct neighbours near = {0};
    struct as_err err = {0};
    as_status st = t && t->type == SAFETENSORS_U8
                       ? neighbours_read(t->data, t->size_bytes, &shape, &near, &err)
                       : as_fail(&err, AS_E_INVAL, "found no tensor neighbours of bytes");
    if (st != AS_OK) {
        onnx_graph_fail(g, st, "member %zu: %s", member, err.msg);
        return NULL;
    }
    if (m->info->input == DATASET_IMAGE)
        x = onnx_graph_unary(g, "Flatten", x);
    return mean_of_nearest(g, &near, &m->spec->model, x);
}
