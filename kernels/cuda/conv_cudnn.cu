/* Convolution through cuDNN (cudnn.cuh), one call for each member and operation. So a member's bits
 * depend neither on the group nor on its place in it.
 *
 * Each operation of each shape has a plan, made when it is first called and kept. The weight, ours
 * [KH, KW, C, O], is reordered to cuDNN's [O, KH, KW, C], and dw back. cuDNN 9.19 also accepts our
 * order by strides, but then asks for the workspace of [O, KH, KW, C], so it may confuse the two.
 *
 * Workspace: one piece of DNN_WORKSPACE_BYTES, which a plan cuts into the reordered weight, x and y
 * (used where a member's own are not aligned), and the engine's own workspace. Members run one
 * after another on the stream, so that they can share it. */
#include "kernels/cuda/conv.cuh"
#include "kernels/cuda/cudnn.cuh"

#include <cstdio>
#include <cstdlib>

#define STATUS_MAX 240
#define PLACE_ALIGNMENT ((size_t)256) /* bytes, of the pieces of the workspace */
#define TURN_ROWS 8

/* The path of a shape. A table of the shapes where cuDNN is faster would go into plan_path(). */
typedef enum conv_path { PATH_OWN, PATH_CUDNN } conv_path;

struct conv_plan {
    struct dnn_conv conv;
    conv_path path;
    struct dnn_plan plan;
    size_t w_at, x_at, y_at, work_at; /* bytes into the workspace */
};

struct conv_cudnn {
    struct dnn_api api;
    struct dnn_where where;
    char *workspace;
    struct conv_plan *plans;
    size_t n, room, n_own; /* plans; room for plans; plans that use our own path */
    bool tried, works;
    char status[STATUS_MAX];
};

/* ---- opening ---- */

as_status conv_cudnn_create(struct conv_cudnn **ret, struct as_err *err)
{
    struct conv_cudnn *d = (struct conv_cudnn *)calloc(1, sizeof(*d));
    if (d == NULL)
        return as_fail(err, AS_E_NOMEM, "back end cuda: out of memory");
    (void)snprintf(d->status, sizeof(d->status), "cuDNN, not opened yet");
    *ret = d;
    return AS_OK;
}

void conv_cudnn_free(struct conv_cudnn *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->n; i++)
        dnn_plan_done(&d->api, &d->plans[i].plan);
    if (d->where.handle != NULL)
        (void)d->api.destroy(d->where.handle);
    (void)cudaFree(d->workspace);
    free(d->plans);
    free(d);
}

const char *conv_cudnn_text(const struct conv_cudnn *d)
{
    return d->status;
}

static as_status open_handle(struct conv_cudnn *d, cudaStream_t stream, struct as_err *err)
{
    as_status st = dnn_load(&d->api, err);
    if (st < 0)
        return st;
    d->where.api = &d->api;
    st = dnn_status(&d->api, d->api.create(&d->where.handle), "a handle", err);
    if (st < 0) {
        d->where.handle = NULL;
        return st;
    }
    return dnn_status(&d->api, d->api.set_stream(d->where.handle, stream), "the stream", err);
}

/* Open cuDNN, once. If it is absent, that is no failure: our own path runs, and the text says why.
 * Out of memory is a failure: otherwise the bits would depend on what else runs on the device. */
static as_status open_once(struct cuda_backend *c, struct as_err *err)
{
    struct conv_cudnn *d = c->conv_cudnn;
    struct as_err why = {};
    if (d->tried)
        return AS_OK;
    if (c->recording)
        return as_fail(err, AS_E_CONFLICT,
                       "back end cuda: the first convolution while a graph is recorded");
    if (open_handle(d, c->stream, &why) < 0) {
        d->tried = true;
        (void)snprintf(d->status, sizeof(d->status), "own, for %.*s", STATUS_MAX - 16, why.msg);
        return AS_OK;
    }
    cudaError_t e = cudaMalloc(&d->workspace, DNN_WORKSPACE_BYTES);
    if (e != cudaSuccess) {
        (void)cudaGetLastError(); /* this error does not persist: clear it */
        (void)d->api.destroy(d->where.handle);
        d->where.handle = NULL;
        return cuda_status(e, "workspace of cuDNN", err);
    }
    d->tried = d->works = true;
    return AS_OK;
}

/* ---- plans ---- */

static size_t x_floats(const struct dnn_conv *c)
{
    return (size_t)(c->batch * c->height * c->width * c->channels);
}

static size_t y_floats(const struct dnn_conv *c)
{
    return (size_t)(c->batch * c->out_h * c->out_w * c->out);
}

static size_t taps(const struct dnn_conv *c) /* rows of our weight */
{
    return (size_t)(c->kernel_h * c->kernel_w * c->channels);
}

static size_t take(size_t *used, size_t floats)
{
    size_t at = *used;
    *used += (floats * sizeof(float) + PLACE_ALIGNMENT - 1) / PLACE_ALIGNMENT * PLACE_ALIGNMENT;
    return at;
}

/* Choose the path of a shape. The shape (and the option bf16) alone decide. x and y have room in
 * the workspace whether or not they are aligned. */
static as_status plan_path(const struct conv_cudnn *d, struct conv_plan *p, struct as_err *err)
{
    size_t used = 0;
    const struct dnn_conv *c = &p->conv;
    p->path = PATH_OWN;
    p->w_at = take(&used, taps(c) * (size_t)c->out);
    p->x_at = take(&used, x_floats(c));
    p->y_at = take(&used, y_floats(c));
    p->work_at = used;
    if (used > DNN_WORKSPACE_BYTES)
        return AS_OK;
    struct as_err why = {};
    as_status st = dnn_plan_make(&d->where, c, DNN_WORKSPACE_BYTES - used, &p->plan, &why);
    if (st == AS_E_UNSUPPORTED)
        return AS_OK;
    if (st < 0)
        return as_fail(err, st, "%s", why.msg);
    p->path = PATH_CUDNN;
    return AS_OK;
}

static as_status room_for_one(struct conv_cudnn *d, struct as_err *err)
{
    if (d->n < d->room)
        return AS_OK;
    size_t room = d->room == 0 ? 32 : 2 * d->room;
    void *plans = realloc(d->plans, room * sizeof(*d->plans));
    if (plans == NULL)
        return as_fail(err, AS_E_NOMEM, "back end cuda: out of memory");
    d->plans = (struct conv_plan *)plans;
    d->room = room;
    return AS_OK;
}

static struct dnn_conv describe(const struct cuda_backend *c, const struct conv_args *a, conv_op op)
{
    struct conv_sizes s = conv_sizes_of(a);
    struct dnn_conv ret = {};
    ret.op = op;
    ret.batch = (int64_t)s.batch;
    ret.height = (int64_t)s.height;
    ret.width = (int64_t)s.width;
    ret.channels = (int64_t)s.channels;
    ret.out = (int64_t)s.out;
    ret.out_h = (int64_t)s.out_h;
    ret.out_w = (int64_t)s.out_w;
    ret.kernel_h = (int64_t)s.kernel_h;
    ret.kernel_w = (int64_t)s.kernel_w;
    ret.stride = (int64_t)s.stride;
    ret.pad = (int64_t)s.pad;
    ret.tensor_cores = c->compute != CUBLAS_COMPUTE_32F;
    return ret;
}

static as_status plan_of(struct cuda_backend *c, const struct conv_args *a, conv_op op,
                         struct conv_plan **ret, struct as_err *err)
{
    struct conv_cudnn *d = c->conv_cudnn;
    struct conv_plan p = {};
    p.conv = describe(c, a, op);
    for (size_t i = 0; i < d->n; i++)
        if (d->plans[i].conv == p.conv) {
            *ret = &d->plans[i];
            return AS_OK;
        }
    if (c->recording)
        return as_fail(err, AS_E_CONFLICT,
                       "back end cuda: a convolution of a new shape while a graph is recorded");
    as_status st = room_for_one(d, err);
    if (st < 0 || (st = plan_path(d, &p, err)) < 0)
        return st;
    d->plans[d->n] = p;
    *ret = &d->plans[d->n++];
    d->n_own += p.path == PATH_OWN;
    size_t v = d->api.version;
    (void)snprintf(d->status, sizeof(d->status), "cuDNN %zu.%zu.%zu: %zu operations, own: %zu",
                   v / 10000, v / 100 % 100, v % 100, d->n - d->n_own, d->n_own);
    return AS_OK;
}

/* ---- running ---- */

/* to [cols, rows] = the transpose of from [rows, cols], a tile of 32 x 32 at a time. */
__global__ static void turn(const float *from, float *to, size_t rows, size_t cols)
{
    __shared__ float tile[WARP][WARP + 1];
    for (size_t r0 = blockIdx.y * (size_t)WARP; r0 < rows; r0 += gridDim.y * (size_t)WARP) {
        for (size_t c0 = blockIdx.x * (size_t)WARP; c0 < cols; c0 += gridDim.x * (size_t)WARP) {
            for (size_t i = threadIdx.y; i < WARP; i += TURN_ROWS)
                if (r0 + i < rows && c0 + threadIdx.x < cols)
                    tile[i][threadIdx.x] = from[(r0 + i) * cols + c0 + threadIdx.x];
            __syncthreads();
            for (size_t i = threadIdx.y; i < WARP; i += TURN_ROWS)
                if (c0 + i < cols && r0 + threadIdx.x < rows)
                    to[(c0 + i) * rows + r0 + threadIdx.x] = tile[threadIdx.x][i];
            __syncthreads();
        }
    }
}

static as_status turn_matrix(struct cuda_backend *c, const float *from, float *to, size_t rows,
                             size_t cols, struct as_err *err)
{
    dim3 grid(blocks_for(cols, WARP, GRID_YZ_MAX), blocks_for(rows, WARP, GRID_YZ_MAX));
    LAUNCH(turn, grid, dim3(WARP, TURN_ROWS), 0, c->stream, from, to, rows, cols);
    return cuda_launched("convolution: the weight turned", err);
}

/* The address of a tensor that the plan can use: its own, or its place in the workspace. */
static float *placed(const struct conv_cudnn *d, float *t, size_t at)
{
    bool fits = (uintptr_t)t % DNN_ALIGNMENT == 0;
    return fits ? t : (float *)(d->workspace + at);
}

static as_status move(struct cuda_backend *c, float *to, const float *from, size_t n,
                      struct as_err *err)
{
    if (to == from)
        return AS_OK;
    return cuda_status(
        cudaMemcpyAsync(to, from, n * sizeof(float), cudaMemcpyDeviceToDevice, c->stream),
        "convolution", err);
}

static as_status run_member(struct cuda_backend *c, const struct conv_plan *p, float *x, float *w,
                            float *y, struct as_err *err)
{
    struct conv_cudnn *d = c->conv_cudnn;
    const struct dnn_conv *conv = &p->conv;
    size_t out = (size_t)conv->out;
    float *px = placed(d, x, p->x_at), *py = placed(d, y, p->y_at);
    float *turned = (float *)(d->workspace + p->w_at);
    as_status st = AS_OK;
    if (conv->op != CONV_DW)
        st = turn_matrix(c, w, turned, taps(conv), out, err);
    if (st == AS_OK && conv->op != CONV_DX)
        st = move(c, px, x, x_floats(conv), err);
    if (st == AS_OK && conv->op != CONV_FORWARD)
        st = move(c, py, y, y_floats(conv), err);
    if (st == AS_OK)
        st = dnn_run(&d->where, &p->plan, px, turned, py, d->workspace + p->work_at, err);
    if (st < 0)
        return st;
    switch (conv->op) {
    case CONV_FORWARD:
        return move(c, y, py, y_floats(conv), err);
    case CONV_DX:
        return move(c, x, px, x_floats(conv), err);
    default:
        return turn_matrix(c, turned, w, out, taps(conv), err);
    }
}

as_status conv_cudnn_run(struct backend *be, const struct conv_args *a, conv_op op, struct tensor x,
                         struct tensor w, struct tensor y, bool *ret_done, struct as_err *err)
{
    struct cuda_backend *c = cuda_of(be);
    struct conv_sizes s = conv_sizes_of(a);
    struct conv_plan *p = NULL;
    *ret_done = false;
    if (s.members == 0 || s.pixels() == 0 || s.channels == 0 || s.out == 0)
        return AS_OK;
    as_status st = open_once(c, err);
    if (st < 0 || !c->conv_cudnn->works)
        return st;
    st = plan_of(c, a, op, &p, err);
    if (st < 0 || p->path == PATH_OWN)
        return st;
    for (size_t k = 0; k < s.members && st == AS_OK; k++)
        st = run_member(c, p, tensor_f32(x, k), tensor_f32(w, k), tensor_f32(y, k), err);
    *ret_done = st == AS_OK;
    return st;
}
