/* Plans of single convolutions: which of cuDNN's engines one uses.
 *
 * cuDNN lists engines in its own order, first those of heuristic mode A, then the fallbacks. Each
 * engine has notes about what it does to the numbers. The first engine that keeps the promises of
 * the back end is used: the same bits each time, no rounding beyond the precision that was asked
 * for, NaN stays NaN. Nothing is timed, because the choice would then differ between two runs.
 *
 * cuDNN's descriptors are built with a `maker`: after a failed call the calls that follow do
 * nothing, so the code checks once at the end. */
#include "kernels/cuda/cudnn.cuh"

typedef cudnnBackendDescriptor_t desc;

#define ENGINES_MAX 64 /* of one list; cuDNN 9.19 lists up to about 40 */
#define NOTES_MAX 32   /* more than any version has */

enum { UID_X = 1, UID_W, UID_Y };

/* The descriptors that are being built. After a failed call, those that follow do nothing. */
struct maker {
    const struct dnn_where *where;
    cudnnStatus_t st;
    struct dnn_plan plan;
};

static desc make(struct maker *m, cudnnBackendDescriptorType_t type)
{
    desc d = NULL;
    if (m->st == CUDNN_STATUS_SUCCESS && m->plan.n_parts == DNN_PLAN_PARTS)
        m->st = CUDNN_STATUS_INTERNAL_ERROR;
    if (m->st == CUDNN_STATUS_SUCCESS)
        m->st = m->where->api->create_descriptor(type, &d);
    if (m->st == CUDNN_STATUS_SUCCESS)
        m->plan.parts[m->plan.n_parts++] = d;
    return d;
}

static void set(struct maker *m, desc d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *values)
{
    if (m->st == CUDNN_STATUS_SUCCESS)
        m->st = m->where->api->set_attribute(d, name, type, n, values);
}

static void set_int(struct maker *m, desc d, cudnnBackendAttributeName_t name, int64_t value)
{
    set(m, d, name, CUDNN_TYPE_INT64, 1, &value);
}

static void set_desc(struct maker *m, desc d, cudnnBackendAttributeName_t name, desc value)
{
    set(m, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finalize(struct maker *m, desc d)
{
    if (m->st == CUDNN_STATUS_SUCCESS)
        m->st = m->where->api->finalize(d);
}

/* Free all parts except the first `kept`. */
static void drop(struct maker *m, size_t kept)
{
    while (m->plan.n_parts > kept)
        (void)m->where->api->destroy_descriptor(m->plan.parts[--m->plan.n_parts]);
}

/* Set the handle, or the described device in its place. */
static void set_where(struct maker *m, desc d, cudnnBackendAttributeName_t handle,
                      cudnnBackendAttributeName_t device)
{
    if (m->where->handle != NULL)
        set(m, d, handle, CUDNN_TYPE_HANDLE, 1, &m->where->handle);
    else
        set_desc(m, d, device, m->where->device);
}

/* ---- the graph: one operation ---- */

/* Dimensions are in cuDNN's order [n, c, h, w] for any layout; in memory c is innermost. */
static desc make_tensor(struct maker *m, int64_t uid, int64_t n, int64_t channels, int64_t h,
                        int64_t w)
{
    desc d = make(m, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const int64_t dims[] = {n, channels, h, w};
    const int64_t strides[] = {h * w * channels, 1, w * channels, channels};
    set(m, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(m, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(m, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set_int(m, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
    set_int(m, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, (int64_t)DNN_ALIGNMENT);
    finalize(m, d);
    return d;
}

static desc make_window(struct maker *m, const struct dnn_conv *c)
{
    desc d = make(m, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t pads[] = {c->pad, c->pad}, strides[] = {c->stride, c->stride};
    const int64_t dilations[] = {1, 1};
    set_int(m, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
    set(m, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(m, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(m, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
    set(m, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pads);
    set(m, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
    set(m, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilations);
    finalize(m, d);
    return d;
}

/* The names of the three operations and their attributes, indexed by conv_op. */
static const struct names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
} names[CONV_OPS] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static desc make_graph(struct maker *m, const struct dnn_conv *c)
{
    const struct names *n = &names[c->op];
    const float one = 1.0f, none = 0.0f;
    desc x = make_tensor(m, UID_X, c->batch, c->channels, c->height, c->width);
    desc w = make_tensor(m, UID_W, c->out, c->channels, c->kernel_h, c->kernel_w);
    desc y = make_tensor(m, UID_Y, c->batch, c->out, c->out_h, c->out_w);
    desc window = make_window(m, c), op = make(m, n->type);
    set_desc(m, op, n->window, window);
    set_desc(m, op, n->x, x);
    set_desc(m, op, n->w, w);
    set_desc(m, op, n->y, y);
    set(m, op, n->alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(m, op, n->beta, CUDNN_TYPE_FLOAT, 1, &none);
    finalize(m, op);
    desc graph = make(m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set_desc(m, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, op);
    if (m->where->handle != NULL)
        set(m, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &m->where->handle);
    finalize(m, graph);
    return graph;
}

/* ---- the engine ---- */

/* Whether an engine with this note rounds nothing (or to TF32 if `tensor_cores`), gives the same
 * bits each time and keeps NaN (no Fourier transform, no Winograd). An unknown note is refused. */
static bool numbers_fit(cudnnBackendNumericalNote_t note, bool tensor_cores)
{
    return note == CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP ||
           (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && tensor_cores);
}

/* Refuses engines that are compiled at run time: that takes seconds, and the bits would depend on
 * the compiler of that machine. */
static bool behaviour_fits(cudnnBackendBehaviorNote_t note)
{
    return note == CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API ||
           note == CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY;
}

static bool engine_fits(const struct dnn_where *w, desc engine, bool tensor_cores)
{
    cudnnBackendNumericalNote_t numbers[NOTES_MAX];
    cudnnBackendBehaviorNote_t behaviours[NOTES_MAX];
    int64_t n = 0, b = 0;
    if (w->api->get_attribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                              NOTES_MAX, &n, numbers) != CUDNN_STATUS_SUCCESS ||
        w->api->get_attribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                              NOTES_MAX, &b, behaviours) != CUDNN_STATUS_SUCCESS)
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!numbers_fit(numbers[i], tensor_cores))
            return false;
    for (int64_t i = 0; i < b; i++)
        if (!behaviour_fits(behaviours[i]))
            return false;
    return true;
}

/* Whether we can use the engine of this configuration; *ret_number is its number. */
static bool config_fits(struct maker *m, desc config, bool tensor_cores, int64_t *ret_number)
{
    const struct dnn_api *api = m->where->api;
    size_t kept = m->plan.n_parts;
    int64_t n = 0;
    desc engine = make(m, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    bool fits =
        m->st == CUDNN_STATUS_SUCCESS &&
        api->get_attribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                           &n, &engine) == CUDNN_STATUS_SUCCESS &&
        n == 1 && engine_fits(m->where, engine, tensor_cores) &&
        api->get_attribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n,
                           ret_number) == CUDNN_STATUS_SUCCESS;
    drop(m, kept);
    return fits;
}

/* Make a plan for this configuration if it is possible and needs at most `most` bytes. If not, that
 * is no failure: the caller tries the next. */
static bool try_config(struct maker *m, desc config, size_t most)
{
    size_t kept = m->plan.n_parts;
    int64_t bytes = 0, n = 0;
    desc plan = make(m, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set_desc(m, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    set_where(m, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
    finalize(m, plan);
    if (m->st == CUDNN_STATUS_SUCCESS)
        m->st = m->where->api->get_attribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                             CUDNN_TYPE_INT64, 1, &n, &bytes);
    bool good = m->st == CUDNN_STATUS_SUCCESS && bytes >= 0 && (uint64_t)bytes <= most;
    m->st = CUDNN_STATUS_SUCCESS;
    if (!good) {
        drop(m, kept);
        return false;
    }
    m->plan.plan = plan;
    m->plan.workspace = (size_t)bytes;
    return true;
}

/* The configurations that cuDNN lists for a graph; *ret_n of them, to be destroyed. */
static void list(struct maker *m, desc graph, cudnnBackendHeurMode_t mode, desc *configs,
                 int64_t *ret_n)
{
    const struct dnn_api *api = m->where->api;
    size_t kept = m->plan.n_parts;
    int64_t made = 0, n = 0;
    desc heuristics = make(m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_desc(m, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(m, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (m->where->handle == NULL)
        set_desc(m, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, m->where->device);
    finalize(m, heuristics);
    while (m->st == CUDNN_STATUS_SUCCESS && made < ENGINES_MAX) {
        m->st = api->create_descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[made]);
        made += m->st == CUDNN_STATUS_SUCCESS;
    }
    if (m->st == CUDNN_STATUS_SUCCESS)
        m->st = api->get_attribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, ENGINES_MAX, &n, configs);
    n = m->st != CUDNN_STATUS_SUCCESS || n < 0 ? 0 : n > made ? made : n;
    while (made > n)
        (void)api->destroy_descriptor(configs[--made]);
    m->st = CUDNN_STATUS_SUCCESS; /* a list that fails counts as empty */
    drop(m, kept);
    *ret_n = n;
}

/* Choose the first configuration of the list that fits. It becomes a part of the plan. */
static bool choose(struct maker *m, desc graph, const struct dnn_conv *c,
                   cudnnBackendHeurMode_t mode, size_t most)
{
    desc configs[ENGINES_MAX] = {};
    int64_t n = 0, taken = -1;
    list(m, graph, mode, configs, &n);
    for (int64_t i = 0; i < n && taken < 0; i++)
        if (config_fits(m, configs[i], c->tensor_cores, &m->plan.engine) &&
            try_config(m, configs[i], most))
            taken = i;
    for (int64_t i = 0; i < n; i++)
        if (i != taken)
            (void)m->where->api->destroy_descriptor(configs[i]);
    if (taken < 0)
        return false;
    m->plan.parts[m->plan.n_parts - 1] = configs[taken]; /* before the plan, which refers to it */
    m->plan.parts[m->plan.n_parts++] = m->plan.plan;
    return true;
}

static as_status refused(const struct dnn_api *api, cudnnStatus_t s, struct as_err *err)
{
    if (CUDNN_STATUS_CATEGORY(s) == CUDNN_STATUS_NOT_SUPPORTED)
        return as_fail(err, AS_E_UNSUPPORTED, "back end cuda: cuDNN: convolution: %s",
                       api->error_string(s));
    return dnn_status(api, s, "convolution", err);
}

as_status dnn_plan_make(const struct dnn_where *w, const struct dnn_conv *c, size_t most,
                        struct dnn_plan *ret, struct as_err *err)
{
    struct maker m = {w, CUDNN_STATUS_SUCCESS, {}};
    desc graph = make_graph(&m, c);
    as_status st = refused(w->api, m.st, err);
    if (st == AS_OK && !choose(&m, graph, c, CUDNN_HEUR_MODE_A, most) &&
        !choose(&m, graph, c, CUDNN_HEUR_MODE_FALLBACK, most))
        st = as_fail(err, AS_E_UNSUPPORTED, "back end cuda: cuDNN: no engine for this convolution");
    if (st < 0) {
        drop(&m, 0);
        return st;
    }
    *ret = m.plan;
    return AS_OK;
}

void dnn_plan_done(const struct dnn_api *api, struct dnn_plan *p)
{
    while (p->n_parts > 0) /* the last one first: it refers to the others */
        (void)api->destroy_descriptor(p->parts[--p->n_parts]);
}

/* ---- running ---- */

as_status dnn_run(const struct dnn_where *w, const struct dnn_plan *p, void *x, void *weight,
                  void *y, void *workspace, struct as_err *err)
{
    struct maker m = {w, CUDNN_STATUS_SUCCESS, {}};
    const int64_t uids[] = {UID_X, UID_W, UID_Y};
    void *const places[] = {x, weight, y};
    desc pack = make(&m, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, uids);
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, places);
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finalize(&m, pack);
    if (m.st == CUDNN_STATUS_SUCCESS)
        m.st = w->api->execute(w->handle, p->plan, pack);
    drop(&m, 0);
    return dnn_status(w->api, m.st, "convolution", err);
}
