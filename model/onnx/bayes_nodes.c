/* All of it is computed in double. The terms of numbers are [rows, classes, numbers] at once:
 * squares of differences lose nothing, which a product of matrices would. Terms of categories are
 * rows of a table that has a row of zeros for a missing cell of each column. */
#include "model/onnx/bayes_nodes.h"

#include <math.h>

#include "base/mem.h"
#include "model/onnx/tree_nodes.h"
#include "model/trees/bayes_shape.h"
#include "model/trees/tree_inputs.h"

static bool is_number(const struct bayes *m, size_t input)
{
    return m->shape.kinds[input] == BAYES_NUMBER;
}

static size_t count_numbers(const struct bayes *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->shape.inputs; i++)
        n += is_number(m, i);
    return n;
}

/* The columns of x that are numbers, or that are categories. */
static const char *columns_of(struct onnx_graph *g, const struct bayes *m, const char *x,
                              bool numbers)
{
    int64_t *v = onnx_graph_memory(g, m->shape.inputs, sizeof *v);
    size_t n = 0;
    for (size_t i = 0; v && i < m->shape.inputs; i++)
        if (is_number(m, i) == numbers)
            v[n++] = (int64_t)i;
    if (!v)
        return NULL;
    return onnx_graph_add(g, &(struct onnx_node){.op = "Gather",
                                                 ONNX_IN(x, onnx_graph_ints(g, "columns", v, n)),
                                                 ONNX_ATTRS(onnx_int("axis", 1))});
}

static const char *sum_over(struct onnx_graph *g, const char *x, int64_t axis)
{
    const char *axes = onnx_graph_ints(g, "axes", &axis, 1);
    return onnx_graph_add(g, &(struct onnx_node){.op = "ReduceSum",
                                                 ONNX_IN(x, axes),
                                                 ONNX_ATTRS(onnx_int("keepdims", 0))});
}

static const char *where(struct onnx_graph *g, const char *which, const char *yes, const char *no)
{
    return onnx_graph_add(g, &(struct onnx_node){.op = "Where", ONNX_IN(which, yes, no)});
}

/* ---- numbers ---- */

/* Constants [classes, numbers]: means, 1 / variance, log(2 pi variance). */
static void constants_of(struct onnx_graph *g, const struct bayes *m, const char *ret[3])
{
    size_t classes = m->shape.classes, n = count_numbers(m), k = 0;
    double *v = onnx_graph_memory(g, 3 * classes * n, sizeof *v);
    for (size_t i = 0; v && i < m->shape.inputs; i++) {
        const double *of = m->values + m->at[i];
        for (size_t c = 0; is_number(m, i) && c < classes; c++) {
            v[c * n + k] = of[c];
            v[(classes + c) * n + k] = 1 / of[classes + c];
            v[(2 * classes + c) * n + k] = log(2 * M_PI * of[classes + c]);
        }
        k += is_number(m, i);
    }
    static const char *const names[] = {"means", "precisions", "spreads"};
    const int64_t dims[] = {(int64_t)classes, (int64_t)n};
    for (size_t i = 0; i < 3; i++)
        ret[i] =
            v ? onnx_graph_constant(g, names[i], ONNX_DOUBLE, dims, 2, v + i * classes * n) : NULL;
}

/* Terms [rows, classes] of the numbers x [rows, numbers]: those of missing ones are 0. */
static const char *terms_of_numbers(struct onnx_graph *g, const struct bayes *m, const char *x)
{
    const int64_t axis = 1;
    const char *constants[3];
    constants_of(g, m, constants);
    x = onnx_graph_binary(g, "Unsqueeze", x, onnx_graph_ints(g, "axis", &axis, 1));
    const char *missing = onnx_graph_unary(g, "IsNaN", x);
    x = onnx_graph_cast(g, x, ONNX_DOUBLE);
    const char *d = onnx_graph_binary(g, "Sub", x, constants[0]);
    const char *far = onnx_graph_binary(g, "Mul", onnx_graph_binary(g, "Mul", d, d), constants[1]);
    const char *terms = onnx_graph_binary(g, "Add", far, constants[2]);
    const double none = 0, half = -0.5;
    terms = where(g, missing, onnx_graph_doubles(g, "none", &none, 1), terms);
    return onnx_graph_binary(g, "Mul", sum_over(g, terms, 2),
                             onnx_graph_doubles(g, "half", &half, 1));
}

/* ---- categories ---- */

/* The terms of all categories as rows [values + 1 of each, classes]; in `first` where those of each
 * column begin, and in `values` how many it has: the row of zeros. */
static const char *table_of(struct onnx_graph *g, const struct bayes *m, float *first,
                            float *values)
{
    size_t classes = m->shape.classes, rows = 0, k = 0, row = 0;
    for (size_t i = 0; i < m->shape.inputs; i++)
        rows += is_number(m, i) ? 0 : m->shape.kinds[i] + 1;
    double *v = onnx_graph_memory(g, rows * classes, sizeof *v), *at = v;
    for (size_t i = 0; v && i < m->shape.inputs; i++) {
        size_t n = m->shape.kinds[i];
        if (is_number(m, i))
            continue;
        first[k] = (float)row;
        values[k++] = (float)n;
        for (size_t j = 0; j < n * classes; j++)
            at[j] = m->values[m->at[i] + j];
        at += (n + 1) * classes;
        row += n + 1;
    }
    const int64_t dims[] = {(int64_t)rows, (int64_t)classes};
    return v ? onnx_graph_constant(g, "categories", ONNX_DOUBLE, dims, 2, v) : NULL;
}

/* Terms [rows, classes] of the indices x [rows, categories]. */
static const char *terms_of_categories(struct onnx_graph *g, const struct bayes *m, const char *x)
{
    size_t n = m->shape.inputs - count_numbers(m);
    float *first = onnx_graph_memory(g, n, sizeof *first);
    float *values = onnx_graph_memory(g, n, sizeof *values);
    if (!first || !values)
        return NULL;
    const char *table = table_of(g, m, first, values);
    const char *missing = onnx_graph_unary(g, "IsNaN", x);
    x = where(g, missing, onnx_graph_floats(g, "zeros", values, n), x);
    x = onnx_graph_binary(g, "Add", x, onnx_graph_floats(g, "first", first, n));
    x = onnx_graph_cast(g, x, ONNX_INT64);
    return sum_over(g, onnx_graph_binary(g, "Gather", table, x), 1);
}

/* ---- the whole ---- */

static const char *predictions_of(struct onnx_graph *g, const struct bayes *m, const char *x)
{
    size_t numbers = count_numbers(m);
    const char *scores = onnx_graph_doubles(g, "shares", m->shares, m->shape.classes);
    if (numbers > 0)
        scores =
            onnx_graph_binary(g, "Add", terms_of_numbers(g, m, columns_of(g, m, x, true)), scores);
    if (numbers < m->shape.inputs)
        scores = onnx_graph_binary(g, "Add", terms_of_categories(g, m, columns_of(g, m, x, false)),
                                   scores);
    return onnx_graph_cast(g, onnx_graph_unary(g, "Softmax", scores), ONNX_FLOAT);
}

const char *onnx_bayes_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                           const struct onnx_inputs *in)
{
    const struct model_member *m = model_file_member(f, member);
    const struct safetensors_tensor *t = model_file_find(f, member, "naive_bayes");
    AS_AUTO(bayes_done) struct bayes bayes = {0};
    AS_AUTO(as_freep) uint32_t *kinds = NULL;
    struct bayes_shape shape;
    struct as_err err = {0};
    as_status st = bayes_shape_of(m->info, &shape, &kinds, &err);
    if (st == AS_OK)
        st = t && t->type == SAFETENSORS_U8
                 ? bayes_read(t->data, t->size_bytes, &shape, &bayes, &err)
                 : as_fail(&err, AS_E_INVAL, "found no tensor naive_bayes of bytes");
    if (st == AS_OK && bayes.words > 0)
        st = as_fail(&err, AS_E_UNSUPPORTED, "its inputs are words, which have no operators");
    if (st != AS_OK) {
        onnx_graph_fail(g, st, "member %zu: %s", member, err.msg);
        return NULL;
    }
    return predictions_of(g, &bayes, onnx_tree_inputs(g, in, m->fit));
}
