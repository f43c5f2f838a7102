/* Stored extra trees: whatever the bytes are, they are refused, or they predict and can be
 * exported. */
#include <stdlib.h>

#include "model/onnx/tree_nodes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t codes[] = {0, 0, 0, 40};
    static const float rows[2][4] = {{1, -0.5F, 3, 39}, {__builtin_nanf(""), 2, 3, 0}};
    static const struct extra_shape shape = {4, 3, codes};
    const struct onnx_port port = {
        .name = "x", .type = ONNX_FLOAT, .dims = (int64_t[]){ONNX_ROWS, 4}, .n_dims = 2};
    const struct tree_outputs outputs = {.forest = true, .classes = true, .raw = 3, .values = 3};
    struct extra_forest f = {0};
    struct onnx_graph *g = NULL;
    struct as_err err;
    float ret[6];
    if (onnx_graph_create(&g, &err) != AS_OK)
        abort();
    as_status st = extra_forest_read(data, size, &shape, &f, &err);
    if (st == AS_OK && extra_forest_predict(&f, rows[0], 2, ret, &err) != AS_OK)
        abort();
    const char *x = onnx_graph_input(g, &port);
    if ((onnx_extra_add(g, data, size, &shape, &outputs, x) != NULL) != (st == AS_OK))
        abort();
    extra_forest_done(&f);
    onnx_graph_free(g);
    return 0;
}
