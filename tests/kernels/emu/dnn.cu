/* The library that replaces cuDNN in emulated tests: its version, handles, engines and their
 * computations. It links a copy of runtime.cu and uses only emu_enqueue from it. */
#include "tests/kernels/emu/dnn.cuh"

#include <stdlib.h>

#include <bit>

#define VISIBLE __attribute__((visibility("default")))
#define HUGE_WORKSPACE ((int64_t)1 << 40)
#define NOT_THERE 17   /* outputs: no good engine in mode A */
#define NOT_AT_ALL 7   /* channels: none in any mode */
#define PLAIN_BYTES 96 /* of workspace, which is filled with NaN */

/* To TF32 (10 bits of fraction): round to nearest, ties away from zero, as the device does. */
static void to_tf32(float *value)
{
    if (*value == *value)
        *value = std::bit_cast<float>((std::bit_cast<uint32_t>(*value) + 0x1000u) & 0xffffe000u);
}

static const cudnnBackendNumericalNote_t later = CUDNN_NUMERICAL_NOTE_TYPE_COUNT;

static const std::vector<struct dnn_engine> bad = {
    {20, 0, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, {}, false, 4, NULL, true},
    {5, 0, {CUDNN_NUMERICAL_NOTE_WINOGRAD}, {}, false, 4, NULL, true},
    {30,
     0,
     {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
     {},
     false,
     4,
     NULL,
     true},
    {90, 0, {later}, {}, false, 4, NULL, true},
    {60, 0, {}, {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}, false, 4, NULL, true},
    {70, HUGE_WORKSPACE, {}, {}, false, 4, NULL, true},
    {71, 0, {}, {}, true, 4, NULL, true},
};
static const struct dnn_engine tensor_cores = {
    67, 64, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, {}, false, 16, to_tf32, false};
static const struct dnn_engine plain = {
    28,    PLAIN_BYTES, {},   {CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API},
    false, 4,           NULL, false};
static const struct dnn_engine naive = {
    0, 0, {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, {}, false, 4, NULL, false};

static std::vector<const struct dnn_engine *> list(const struct dnn_work &c, int mode)
{
    std::vector<const struct dnn_engine *> all;
    if (!dnn_channels_last(c.x) || !dnn_channels_last(c.w) || !dnn_channels_last(c.y))
        return all;
    for (const struct dnn_engine &e : bad)
        all.push_back(&e);
    if (dnn_work::size(c.x, 1) == NOT_AT_ALL)
        return all;
    if (mode == CUDNN_HEUR_MODE_FALLBACK)
        all.push_back(&naive);
    else if (dnn_work::size(c.w, 0) != NOT_THERE) {
        all.push_back(&tensor_cores);
        all.push_back(&plain);
    }
    return all;
}

/* ---- engines ---- */

struct places {
    float *x, *w, *y, *workspace;
};

static float factor(const struct dnn_engine *e, float v)
{
    if (e->round != NULL)
        e->round(&v);
    return v;
}

/* One product of the convolution: an element of each tensor, or SIZE_MAX for x in the padding. */
struct term {
    size_t x, w, y;
};

/* Call f(term) for all terms, with the images outermost. */
template <typename F> static void for_terms(const struct dnn_work &c, F f)
{
    int64_t n = dnn_work::size(c.x, 0), ch = dnn_work::size(c.x, 1), h = dnn_work::size(c.x, 2);
    int64_t w = dnn_work::size(c.x, 3), o = dnn_work::size(c.w, 0), kh = dnn_work::size(c.w, 2);
    int64_t kw = dnn_work::size(c.w, 3), oh = dnn_work::size(c.y, 2), ow = dnn_work::size(c.y, 3);
    for (int64_t p = 0; p < n * oh * ow; p++)
        for (int64_t tap = 0; tap < kh * kw; tap++) {
            int64_t row = p / ow % oh * c.stride[0] + tap / kw * c.dilation[0] - c.pad[0];
            int64_t col = p % ow * c.stride[1] + tap % kw * c.dilation[1] - c.pad[1];
            if (row < 0 || row >= h || col < 0 || col >= w)
                continue;
            int64_t pixel = (p / (oh * ow) * h + row) * w + col;
            for (int64_t out = 0; out < o; out++)
                for (int64_t in = 0; in < ch; in++)
                    f({(size_t)(pixel * ch + in), (size_t)((out * kh * kw + tap) * ch + in),
                       (size_t)(p * o + out)});
        }
}

static void clear(float *t, const struct dnn_descriptor *d, bool spoils)
{
    size_t all = 1;
    for (int64_t i = 0; i < 4; i++)
        all *= (size_t)dnn_work::size(d, i);
    for (size_t i = 0; i < all; i++)
        t[i] = spoils ? 1e30f : 0.0f;
}

static void convolve(const struct dnn_work &c, const struct dnn_engine *e, const struct places &at)
{
    if (at.workspace != NULL)
        memset(at.workspace, 0xff, (size_t)e->workspace);
    switch (c.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        clear(at.y, c.y, e->spoils);
        for_terms(c, [&](term t) { at.y[t.y] += factor(e, at.x[t.x]) * factor(e, at.w[t.w]); });
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        clear(at.x, c.x, e->spoils);
        for_terms(c, [&](term t) { at.x[t.x] += factor(e, at.y[t.y]) * factor(e, at.w[t.w]); });
        break;
    default:
        clear(at.w, c.w, e->spoils);
        for_terms(c, [&](term t) { at.w[t.w] += factor(e, at.y[t.y]) * factor(e, at.x[t.x]); });
    }
}

/* ---- the interface ---- */

static struct dnn_descriptor *own(cudnnBackendDescriptor_t d)
{
    return (struct dnn_descriptor *)d;
}

VISIBLE size_t cudnnGetVersion(void)
{
    const char *version = getenv("EMU_CUDNN_VERSION");
    return version != NULL ? (size_t)strtoul(version, NULL, 10) : 91900;
}

VISIBLE const char *cudnnGetErrorString(cudnnStatus_t s)
{
    switch (s) {
    case CUDNN_STATUS_SUCCESS:
        return "success";
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "not initialized";
    default:
        return CUDNN_STATUS_CATEGORY(s) == CUDNN_STATUS_BAD_PARAM ? "bad parameter"
                                                                  : "not supported";
    }
}

VISIBLE cudnnStatus_t cudnnCreate(cudnnHandle_t *ret)
{
    if (getenv("EMU_CUDNN_NO_HANDLE") != NULL)
        return CUDNN_STATUS_NOT_INITIALIZED;
    *ret = new cudnnContext();
    return CUDNN_STATUS_SUCCESS;
}

VISIBLE cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

VISIBLE cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

VISIBLE cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                   cudnnBackendDescriptor_t *ret)
{
    *ret = new dnn_descriptor{type, false, {}, NULL, NULL};
    return CUDNN_STATUS_SUCCESS;
}

VISIBLE cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    delete own(d);
    return CUDNN_STATUS_SUCCESS;
}

VISIBLE cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                               cudnnBackendAttributeName_t name,
                                               cudnnBackendAttributeType_t type, int64_t n,
                                               const void *values)
{
    struct dnn_descriptor *d = own(descriptor);
    if (d == NULL || values == NULL)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (d->ready)
        return CUDNN_STATUS_BAD_PARAM;
    cudnnStatus_t s = dnn_may_set(d, name, type, n);
    if (s != CUDNN_STATUS_SUCCESS)
        return s;
    struct dnn_values v = {type, n, {}};
    const char *bytes = (const char *)values;
    v.bytes.assign(bytes, bytes + (size_t)n * dnn_size_of(type));
    for (int64_t i = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && i < n; i++) {
        const struct dnn_descriptor *child = own(v.at<void *>(i));
        if (child == NULL || !child->ready)
            return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    }
    d->values[name] = v;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_plan(struct dnn_descriptor *d)
{
    const struct dnn_descriptor *config = d->child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
        return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
    d->engine = config->engine;
    d->graph = config->graph;
    struct dnn_work c = dnn_work_of(d->graph);
    bool aligned = true;
    for (const struct dnn_descriptor *t : {c.x, c.w, c.y})
        aligned =
            aligned &&
            t->of(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT).at<int64_t>(0) % d->engine->alignment == 0;
    return d->engine->refuses || !aligned ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
}

VISIBLE cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    struct dnn_descriptor *d = own(descriptor);
    if (d == NULL || d->ready)
        return CUDNN_STATUS_BAD_PARAM;
    cudnnStatus_t s = dnn_check(d);
    if (s == CUDNN_STATUS_SUCCESS && d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        s = finish_plan(d);
    d->ready = s == CUDNN_STATUS_SUCCESS;
    return s;
}

/* Write the list of engines into configurations that the caller has made. */
static cudnnStatus_t get_results(const struct dnn_descriptor *d, int64_t room, int64_t *ret_n,
                                 void *values)
{
    struct dnn_descriptor *graph = d->child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    std::vector<const struct dnn_engine *> all =
        list(dnn_work_of(graph), d->of(CUDNN_ATTR_ENGINEHEUR_MODE).at<int>(0));
    int64_t n = 0;
    for (; n < room && n < (int64_t)all.size(); n++) {
        struct dnn_descriptor *config = ((struct dnn_descriptor **)values)[n];
        if (config == NULL || config->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
            return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
        config->engine = all[(size_t)n];
        config->graph = graph;
        config->ready = true;
    }
    *ret_n = n;
    return CUDNN_STATUS_SUCCESS;
}

template <typename T>
static cudnnStatus_t copy_out(const std::vector<T> &from, int64_t room, int64_t *ret_n,
                              void *values)
{
    *ret_n = (int64_t)from.size();
    for (int64_t i = 0; i < room && i < *ret_n; i++)
        ((T *)values)[i] = from[(size_t)i];
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_engine(const struct dnn_descriptor *d, int name, int type, int64_t room,
                                int64_t *ret_n, void *values)
{
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE)
        return copy_out(d->engine->numbers, room, ret_n, values);
    if (name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE && type == CUDNN_TYPE_BEHAVIOR_NOTE)
        return copy_out(d->engine->behaviours, room, ret_n, values);
    if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX && type == CUDNN_TYPE_INT64)
        return copy_out(std::vector<int64_t>{d->engine->number}, room, ret_n, values);
    return CUDNN_STATUS_NOT_SUPPORTED;
}

VISIBLE cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                               cudnnBackendAttributeName_t name,
                                               cudnnBackendAttributeType_t type, int64_t requested,
                                               int64_t *ret_n, void *values)
{
    const struct dnn_descriptor *d = own(descriptor);
    if (d == NULL || ret_n == NULL || values == NULL)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!d->ready)
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (d->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && name == CUDNN_ATTR_ENGINEHEUR_RESULTS &&
        type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return get_results(d, requested, ret_n, values);
    if (d->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && name == CUDNN_ATTR_ENGINECFG_ENGINE &&
        type == CUDNN_TYPE_BACKEND_DESCRIPTOR && requested == 1) {
        struct dnn_descriptor *engine = *(struct dnn_descriptor **)values;
        if (engine == NULL || engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
            return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
        engine->engine = d->engine;
        engine->ready = true;
        *ret_n = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    if (d->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR)
        return get_engine(d, name, type, requested, ret_n, values);
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
        name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64)
        return copy_out(std::vector<int64_t>{d->engine->workspace}, requested, ret_n, values);
    return CUDNN_STATUS_NOT_SUPPORTED;
}

/* The place of a tensor in the pack; NULL if it is absent or less aligned than stated. */
static float *place_of(const struct dnn_descriptor *tensor, const struct dnn_descriptor *pack)
{
    const struct dnn_values &uids = pack->of(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    int64_t uid = tensor->of(CUDNN_ATTR_TENSOR_UNIQUE_ID).at<int64_t>(0);
    int64_t align = tensor->of(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT).at<int64_t>(0);
    for (int64_t i = 0; i < uids.n; i++)
        if (uids.at<int64_t>(i) == uid) {
            void *p = pack->of(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).at<void *>(i);
            return (uintptr_t)p % (uintptr_t)align == 0 ? (float *)p : NULL;
        }
    return NULL;
}

VISIBLE cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                          cudnnBackendDescriptor_t pack)
{
    const struct dnn_descriptor *p = own(plan), *v = own(pack);
    if (handle == NULL || p == NULL || v == NULL)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (!p->ready || !v->ready)
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (p->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
        v->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
        return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
    const struct dnn_engine *e = p->engine;
    struct dnn_work c = dnn_work_of(p->graph);
    struct places at = {place_of(c.x, v), place_of(c.w, v), place_of(c.y, v), NULL};
    if (e->workspace > 0 && v->values.count(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) > 0)
        at.workspace = (float *)v->of(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).at<void *>(0);
    if (at.x == NULL || at.w == NULL || at.y == NULL)
        return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    if (e->workspace > 0 && at.workspace == NULL)
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    emu_enqueue(handle->stream, [=] { convolve(c, e, at); });
    return CUDNN_STATUS_SUCCESS;
}
