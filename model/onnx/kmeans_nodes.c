#include "model/onnx/kmeans_nodes.h"

#include <string.h>

#include "model/kmeans/kmeans_model.h"

/* The centroids of a member, as a constant; NULL after a failure. */
static const float *find_centroids(struct onnx_graph *g, const struct model_file *f, size_t member,
                                   size_t clusters, size_t dims)
{
    struct as_err err = {0};
    float *values = onnx_graph_memory(g, clusters * dims, sizeof *values);
    if (!values)
        return NULL;
    as_status st =
        model_file_tensor(f, member, "centroids", SAFETENSORS_F32, clusters * dims, values, &err);
    if (st == AS_OK)
        st = kmeans_model_check(values, clusters, dims, &err);
    if (st != AS_OK)
        onnx_graph_fail(g, st, "member %zu: %s", member, err.msg);
    return st == AS_OK ? values : NULL;
}

/* The largest x c - |c|^2 / 2: int64 [rows]. */
static const char *nearest(struct onnx_graph *g, const float *values, size_t clusters, size_t dims,
                           const char *x, const char *centroids)
{
    float *bias = onnx_graph_memory(g, clusters, sizeof *bias);
    if (!bias)
        return NULL;
    for (size_t k = 0; k < clusters; k++) {
        double sum = 0;
        for (size_t d = 0; d < dims; d++)
            sum += (double)values[k * dims + d] * (double)values[k * dims + d];
        bias[k] = (float)(-sum / 2);
    }
    const char *b = onnx_graph_floats(g, "bias", bias, clusters);
    const char *near = onnx_graph_add(g, &(struct onnx_node){.op = "Gemm",
                                                             ONNX_IN(x, centroids, b),
                                                             ONNX_ATTRS(onnx_int("transB", 1))});
    return onnx_graph_add(
        g, &(struct onnx_node){.op = "ArgMax",
                               ONNX_IN(near),
                               ONNX_ATTRS(onnx_int("axis", 1), onnx_int("keepdims", 0))});
}

const char *onnx_kmeans_add(struct onnx_graph *g, const struct model_file *f, size_t member,
                            const struct onnx_encoded *in)
{
    const struct model_member *m = model_file_member(f, member);
    size_t clusters = (size_t)m->spec->model.kmeans.clusters;
    size_t dims = preprocess_inputs(m->fit, model_file_data(f));
    const float *values = find_centroids(g, f, member, clusters, dims);
    if (!values)
        return NULL;
    const int64_t shape[] = {(int64_t)clusters, (int64_t)dims}, flat[] = {0, (int64_t)dims};
    const char *centroids = onnx_graph_constant(g, "centroids", ONNX_FLOAT, shape, 2, values);
    const char *x = in->x;
    if (model_file_data(f)->input == DATASET_IMAGE)
        x = onnx_graph_binary(g, "Reshape", x, onnx_graph_ints(g, "flat", flat, 2));
    const char *axes = onnx_graph_ints(g, "axes", (int64_t[]){1}, 1);
    const char *at = nearest(g, values, clusters, dims, x, centroids);
    const char *away =
        onnx_graph_binary(g, "Sub", x, onnx_graph_binary(g, "Gather", centroids, at));
    away = onnx_graph_cast(g, away, ONNX_DOUBLE);
    away = onnx_graph_binary(g, "ReduceSum", onnx_graph_binary(g, "Mul", away, away), axes);
    away = onnx_graph_cast(g, onnx_graph_unary(g, "Sqrt", away), ONNX_FLOAT);
    at = onnx_graph_binary(g, "Unsqueeze", onnx_graph_cast(g, at, ONNX_FLOAT), axes);
    return onnx_graph_concat(g, (const char *[]){at, away}, 2, 1);
}
