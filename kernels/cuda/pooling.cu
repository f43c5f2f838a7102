/* A thread computes one element: of the output in forward, of the input in backward. In backward it
 * reads the windows that contain its element, so there are no atomics. */
#include "kernels/cuda/cuda.cuh"

#include <cmath>

struct pooling {
    size_t members, batch, height, width, channels, out_h, out_w, kernel_h, kernel_w, stride, pad;
    bool max;
    struct dev_i32 index;
};

static struct pooling pooling_of(const struct pool_args *a)
{
    return {a->members,
            a->batch,
            a->height,
            a->width,
            a->channels,
            conv_out_len(a->height, a->kernel_h, a->stride, a->pad),
            conv_out_len(a->width, a->kernel_w, a->stride, a->pad),
            a->kernel_h,
            a->kernel_w,
            a->stride,
            a->pad,
            a->kind == POOL_MAX,
            i32_of(a->index)};
}

/* The part of a window that lies inside the image. */
struct span {
    size_t from, to;
};

__device__ static struct span span_of(size_t at, size_t stride, size_t pad, size_t kernel,
                                      size_t len)
{
    size_t begin = at * stride, end = begin + kernel;
    struct span s = {begin > pad ? begin - pad : 0, end > pad ? end - pad : 0};
    s.to = s.to < len ? s.to : len;
    return s;
}

/* The windows that contain position `at`: [from, to). */
__device__ static struct span windows_of(size_t at, size_t stride, size_t pad, size_t kernel,
                                         size_t windows)
{
    size_t p = at + pad; /* window y contains y * stride to y * stride + kernel - 1 */
    struct span s = {p >= kernel ? (p - kernel) / stride + 1 : 0, p / stride + 1};
    s.to = s.to < windows ? s.to : windows;
    return s;
}

__device__ static void pool_one(const struct pooling &a, size_t k, size_t e, const float *x,
                                float *y)
{
    size_t c = e % a.channels, p = e / a.channels; /* e of [B, OH, OW, C] */
    size_t image = p / (a.out_h * a.out_w) * a.height * a.width;
    struct span rows = span_of(p / a.out_w % a.out_h, a.stride, a.pad, a.kernel_h, a.height);
    struct span cols = span_of(p % a.out_w, a.stride, a.pad, a.kernel_w, a.width);
    float best = 0.0f, sum = 0.0f;
    int32_t from = -1;
    for (size_t h = rows.from; h < rows.to; h++) {
        for (size_t w = cols.from; w < cols.to; w++) {
            float v = x[(image + h * a.width + w) * a.channels + c];
            sum += v;
            if (from < 0 || v > best || (isnan(v) && !isnan(best))) {
                best = v;
                from = (int32_t)(h * a.width + w);
            }
        }
    }
    y[e] = a.max ? best : sum / (float)(a.kernel_h * a.kernel_w);
    if (a.max)
        a.index.at(k)[e] = from;
}

__global__ static void forward(struct pooling a, struct dev_f32 x, struct dev_f32 y)
{
    FOR_MEMBERS(k, a.members)
    {
        FOR_ELEMENTS(e, a.batch * a.out_h * a.out_w * a.channels)
        pool_one(a, k, e, x.at(k), y.at(k));
    }
}

as_status cuda_pool_forward(struct backend *be, const struct pool_args *a, struct tensor x,
                            struct tensor y, struct as_err *err)
{
    struct pooling p = pooling_of(a);
    size_t n = p.batch * p.out_h * p.out_w * p.channels;
    if (p.members == 0 || n == 0)
        return AS_OK;
    cuda_use(be);
    LAUNCH(forward, grid_over(n, p.members), THREADS, 0, cuda_of(be)->stream, p, f32_of(x),
           f32_of(y));
    return cuda_launched("pool", err);
}

__device__ static float gradient(const struct pooling &a, size_t k, size_t e, const float *dy)
{
    size_t c = e % a.channels, p = e / a.channels; /* e of [B, H, W, C] */
    size_t h = p / a.width % a.height, w = p % a.width;
    size_t image = p / (a.height * a.width) * a.out_h * a.out_w;
    struct span rows = windows_of(h, a.stride, a.pad, a.kernel_h, a.out_h);
    struct span cols = windows_of(w, a.stride, a.pad, a.kernel_w, a.out_w);
    const int32_t *index = a.index.at(k);
    float sum = 0.0f;
    for (size_t i = rows.from; i < rows.to; i++) {
        for (size_t j = cols.from; j < cols.to; j++) {
            size_t at = (image + i * a.out_w + j) * a.channels + c;
            if (!a.max || index[at] == (int32_t)(h * a.width + w))
                sum += dy[at];
        }
    }
    return a.max ? sum : sum / (float)(a.kernel_h * a.kernel_w);
}

__global__ static void backward(struct pooling a, struct dev_f32 dy, struct dev_f32 dx)
{
    FOR_MEMBERS(k, a.members)
    {
        FOR_ELEMENTS(e, a.batch * a.height * a.width * a.channels)
        dx.at(k)[e] = gradient(a, k, e, dy.at(k));
    }
}

as_status cuda_pool_backward(struct backend *be, const struct pool_args *a, struct tensor dy,
                             struct tensor dx, struct as_err *err)
{
    struct pooling p = pooling_of(a);
    size_t n = p.batch * p.height * p.width * p.channels;
    if (p.members == 0 || n == 0)
        return AS_OK;
    cuda_use(be);
    LAUNCH(backward, grid_over(n, p.members), THREADS, 0, cuda_of(be)->stream, p, f32_of(dy),
           f32_of(dx));
    return cuda_launched("pool backward", err);
}
