/* Boosters of XGBoost (UBJSON) as nodes of a graph: whatever the bytes are, the graph fails with a
 * reason, or it can be written. */
#include <stdlib.h>

#include "model/onnx/tree_nodes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct onnx_port port = {
        .name = "x", .type = ONNX_FLOAT, .dims = (int64_t[]){ONNX_ROWS, 2}, .n_dims = 2};
    const struct tree_outputs outputs = {.classes = true, .raw = 2, .values = 2};
    struct onnx_graph *g = NULL;
    struct as_err err;
    if (onnx_graph_create(&g, &err) != AS_OK)
        abort();
    const char *x = onnx_graph_input(g, &port);
    const char *p = onnx_booster_add(g, data, size, &outputs, x, 2);
    if ((p != NULL) != (onnx_graph_status(g, &err) == AS_OK))
        abort();
    if (p) {
        onnx_graph_output(g, &port, p);
        if (onnx_graph_write(g, "/dev/null", &err) != AS_OK)
            abort();
    }
    onnx_graph_free(g);
    return 0;
}
