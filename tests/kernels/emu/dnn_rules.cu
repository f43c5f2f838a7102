/* The rules of cuDNN's documentation: which attributes each type of descriptor accepts, and what
 * must agree before a descriptor is ready.
 *
 * A table has a row for each attribute of each type: its element type, how many values it takes,
 * and whether it is required. An error is returned as cuDNN does, so that a wrong call in
 * kernels/cuda fails in the emulated tests too. */
#include "tests/kernels/emu/dnn.cuh"

#define MOST 64 /* values of one attribute */

struct rule {
    cudnnBackendDescriptorType_t in;
    int name;
    cudnnBackendAttributeType_t type;
    int64_t least, most;
    bool required;
};

#define OPERATION(DESCRIPTOR, PREFIX, X, W, Y)                                                     \
    {DESCRIPTOR, PREFIX##_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true},                   \
        {DESCRIPTOR, PREFIX##X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true},                        \
        {DESCRIPTOR, PREFIX##W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true},                        \
        {DESCRIPTOR, PREFIX##Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true},                        \
        {DESCRIPTOR, PREFIX##_ALPHA, CUDNN_TYPE_FLOAT, 1, 1, true},                                \
    {                                                                                              \
        DESCRIPTOR, PREFIX##_BETA, CUDNN_TYPE_FLOAT, 1, 1, true                                    \
    }

static const struct rule rules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1,
     true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 4, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 4, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1,
     1, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
     1, 1, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     CUDNN_TYPE_CONVOLUTION_MODE, 1, 1, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2,
     2, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
     2, 2, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
     2, 2, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, 2,
     true},
    OPERATION(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD, _X, _W, _Y),
    OPERATION(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA, _DX, _W, _DY),
    OPERATION(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER, _X, _DW, _DY),
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
     1, 1, true},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1,
     true},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
     1, 1, true},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1,
     MOST, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR, 1, MOST, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
     1, 1, false},
};

size_t dnn_size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_INT64:
        return sizeof(int64_t);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return sizeof(void *);
    default:
        return sizeof(int);
    }
}

cudnnStatus_t dnn_may_set(const struct dnn_descriptor *d, int name,
                          cudnnBackendAttributeType_t type, int64_t n)
{
    for (const struct rule &r : rules) {
        if (r.in != d->type || r.name != name)
            continue;
        if (r.type != type)
            return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
        return n < r.least || n > r.most ? CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND
                                         : CUDNN_STATUS_SUCCESS;
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
}

/* ---- tensors ---- */

static int64_t stride(const struct dnn_descriptor *t, int64_t i)
{
    return t->of(CUDNN_ATTR_TENSOR_STRIDES).at<int64_t>(i);
}

static int64_t alignment(const struct dnn_descriptor *t)
{
    return t->of(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT).at<int64_t>(0);
}

bool dnn_channels_last(const struct dnn_descriptor *t)
{
    int64_t c = dnn_work::size(t, 1), h = dnn_work::size(t, 2), w = dnn_work::size(t, 3);
    return stride(t, 0) == h * w * c && stride(t, 1) == 1 && stride(t, 2) == w * c &&
           stride(t, 3) == c;
}

/* Nothing between the elements: the farthest is the last. */
static cudnnStatus_t check_tensor(const struct dnn_descriptor *t)
{
    int64_t all = 1, farthest = 0, align = alignment(t);
    for (int64_t i = 0; i < 4; i++) {
        if (dnn_work::size(t, i) < 1 || stride(t, i) < 1)
            return CUDNN_STATUS_BAD_PARAM;
        all *= dnn_work::size(t, i);
        farthest += (dnn_work::size(t, i) - 1) * stride(t, i);
    }
    bool right = all == farthest + 1 && align >= 4 && (align & (align - 1)) == 0;
    return right ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

/* ---- operations ---- */

static int64_t number(const struct dnn_descriptor *d, int name, int64_t i)
{
    return d->of(name).at<int64_t>(i);
}

static cudnnStatus_t check_window(const struct dnn_descriptor *d)
{
    if (number(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0) != 2 ||
        d->of(CUDNN_ATTR_CONVOLUTION_COMP_TYPE).at<int>(0) != CUDNN_DATA_FLOAT)
        return CUDNN_STATUS_BAD_PARAM;
    for (int64_t i = 0; i < 2; i++)
        if (number(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i) < 0 ||
            number(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i) < 0 ||
            number(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i) < 1 ||
            number(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, i) < 1)
            return CUDNN_STATUS_BAD_PARAM;
    return CUDNN_STATUS_SUCCESS;
}

struct dnn_work dnn_work_of(const struct dnn_descriptor *graph)
{
    const struct dnn_descriptor *op = graph->child(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    struct dnn_work c = {op->type, NULL, NULL, NULL, NULL, {0, 0}, {0, 0}, {0, 0}};
    switch (op->type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        c.x = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
        c.w = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
        c.y = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
        c.window = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        c.x = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
        c.w = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
        c.y = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
        c.window = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
        break;
    default:
        c.x = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
        c.w = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
        c.y = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
        c.window = op->child(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
    }
    for (int64_t i = 0; i < 2; i++) {
        c.pad[i] = number(c.window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
        c.stride[i] = number(c.window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
        c.dilation[i] = number(c.window, CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
    }
    return c;
}

static bool distinct(const struct dnn_work &c)
{
    int64_t x = number(c.x, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    int64_t w = number(c.w, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    int64_t y = number(c.y, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    return x != w && x != y && w != y;
}

/* Whether the shapes of a graph's convolution agree. */
static cudnnStatus_t check_graph(const struct dnn_descriptor *graph)
{
    struct dnn_work c = dnn_work_of(graph);
    for (const struct dnn_descriptor *t : {c.x, c.w, c.y})
        if (t->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
            return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
    if (c.window->type != CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
        return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
    if (!distinct(c))
        return CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES;
    bool agree = dnn_work::size(c.x, 0) == dnn_work::size(c.y, 0) &&
                 dnn_work::size(c.x, 1) == dnn_work::size(c.w, 1) &&
                 dnn_work::size(c.y, 1) == dnn_work::size(c.w, 0);
    for (int64_t i = 0; i < 2; i++) {
        int64_t kernel = (dnn_work::size(c.w, 2 + i) - 1) * c.dilation[i] + 1;
        int64_t padded = dnn_work::size(c.x, 2 + i) + c.pad[i] +
                         number(c.window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i);
        agree = agree && padded >= kernel &&
                dnn_work::size(c.y, 2 + i) == (padded - kernel) / c.stride[i] + 1;
    }
    return agree ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
}

static cudnnStatus_t check_pack(const struct dnn_descriptor *d)
{
    return d->of(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).n ==
                   d->of(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).n
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
}

cudnnStatus_t dnn_check(const struct dnn_descriptor *d)
{
    for (const struct rule &r : rules)
        if (r.in == d->type && r.required && d->values.count(r.name) == 0)
            return CUDNN_STATUS_BAD_PARAM;
    switch (d->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return check_tensor(d);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        return check_window(d);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return check_graph(d);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return check_pack(d);
    default:
        return CUDNN_STATUS_SUCCESS;
    }
}
