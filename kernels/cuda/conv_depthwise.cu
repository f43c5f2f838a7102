/* Depthwise convolution: output o reads input channel o / (O / C) alone, so it contains no matrix
 * product. A thread computes one element. The weight's gradient is sums down columns (sums.cuh). */
#include "kernels/cuda/conv.cuh"
#include "kernels/cuda/sums.cuh"

struct depthwise {
    struct conv_sizes s;
    size_t each; /* outputs per channel */
    struct dev_f32 x, w;
};

static struct depthwise depthwise_of(const struct conv_args *a)
{
    return {conv_sizes_of(a), a->out / a->channels, f32_of(a->x), f32_of(a->w)};
}

__global__ static void forward(struct depthwise a, struct dev_f32 y)
{
    const struct conv_sizes &s = a.s;
    FOR_MEMBERS(k, s.members)
    {
        const float *x = a.x.at(k), *w = a.w.at(k);
        FOR_ELEMENTS(e, s.pixels() * s.out)
        {
            size_t o = e % s.out, p = e / s.out, c = o / a.each; /* [B, OH, OW, O] */
            float sum = 0.0f;
            for (size_t i = 0; i < s.kernel_h; i++) {
                for (size_t j = 0; j < s.kernel_w; j++) {
                    size_t pixel = s.tap(p, i, j);
                    if (pixel != SIZE_MAX)
                        sum += x[pixel * s.channels + c] * w[(i * s.kernel_w + j) * s.out + o];
                }
            }
            y.at(k)[e] = sum;
        }
    }
}

as_status cuda_depthwise_forward(struct backend *be, const struct conv_args *a, struct tensor y,
                                 struct as_err *err)
{
    struct depthwise d = depthwise_of(a);
    LAUNCH(forward, grid_over(d.s.pixels() * d.s.out, d.s.members), THREADS, 0, cuda_of(be)->stream,
           d, f32_of(y));
    return cuda_launched("depthwise convolution", err);
}

/* The sum over the taps and outputs that read input element e of [B, H, W, C]. */
__device__ static float gradient(const struct depthwise &a, size_t e, const float *w,
                                 const float *dy)
{
    const struct conv_sizes &s = a.s;
    size_t c = e % s.channels, p = e / s.channels, h = p / s.width % s.height, col = p % s.width;
    size_t image = p / (s.height * s.width);
    float sum = 0.0f;
    for (size_t i = 0; i < s.kernel_h; i++) {
        size_t y = 0, x = 0;
        if (!tap_reader(h, i, s.pad, s.stride, s.out_h, &y))
            continue;
        for (size_t j = 0; j < s.kernel_w; j++) {
            if (!tap_reader(col, j, s.pad, s.stride, s.out_w, &x))
                continue;
            const float *from = dy + ((image * s.out_h + y) * s.out_w + x) * s.out + c * a.each;
            const float *by = w + (i * s.kernel_w + j) * s.out + c * a.each;
            for (size_t o = 0; o < a.each; o++)
                sum += from[o] * by[o];
        }
    }
    return sum;
}

__global__ static void backward_x(struct depthwise a, struct dev_f32 dy, struct dev_f32 dx)
{
    FOR_MEMBERS(k, a.s.members)
    {
        FOR_ELEMENTS(e, a.s.batch * a.s.height * a.s.width * a.s.channels)
        dx.at(k)[e] = gradient(a, e, a.w.at(k), dy.at(k));
    }
}

/* dw [KH KW, O]: column (tap, o), summed over the output pixels. */
struct tap_sum {
    struct depthwise a;
    struct dev_f32 dy, dw;
    __device__ void add(size_t k, size_t r, size_t col, struct pair &sum) const
    {
        const struct conv_sizes &s = a.s;
        size_t o = col % s.out, t = col / s.out;
        size_t pixel = s.tap(r, t / s.kernel_w, t % s.kernel_w);
        if (pixel != SIZE_MAX)
            sum.a += (double)a.x.at(k)[pixel * s.channels + o / a.each] *
                     (double)dy.at(k)[r * s.out + o];
    }
    __device__ void put(size_t k, size_t col, struct pair sum) const
    {
        dw.at(k)[col] = (float)sum.a;
    }
};

as_status cuda_depthwise_backward(struct backend *be, const struct conv_args *a,
                                  const struct conv_grads *g, struct as_err *err)
{
    struct depthwise d = depthwise_of(a);
    const struct conv_sizes &s = d.s;
    size_t n = s.batch * s.height * s.width * s.channels;
    if (g->dx.buf != NULL && n > 0)
        LAUNCH(backward_x, grid_over(n, s.members), THREADS, 0, cuda_of(be)->stream, d,
               f32_of(g->dy), f32_of(g->dx));
    as_status st = cuda_launched("depthwise convolution backward", err);
    if (st < 0 || g->dw.buf == NULL)
        return st;
    struct tap_sum sum = {d, f32_of(g->dy), f32_of(g->dw)};
    return sum_columns(be, s.members, s.pixels(), s.kernel_h * s.kernel_w * s.out, sum,
                       "depthwise convolution backward", err);
}
