/* Pooling, vectors along the channels. Both passes write every output once: a maximum keeps value
 * and place together, without branches, and the gradient of a pixel is gathered from the windows
 * that it is in, so that nothing is scattered.
 *
 * An image is a piece that may run beside others. */
#include "kernels/cpu/cpu.h"

#include "kernels/cpu/clones.h"
#include "kernels/cpu/window.h"

struct shape {
    size_t oh, ow;
};

struct pool_loops {
    void (*max)(const struct pool_args *a, const struct shape *s, const float *x, float *y,
                int32_t *index);
    void (*avg)(const struct pool_args *a, const struct shape *s, const float *x, float *y);
    void (*back)(const struct pool_args *a, const struct shape *s, const float *dy,
                 const int32_t *index, float *dx); /* index NULL: of an average */
};

struct window {
    size_t h0, h1, w0, w1; /* rows and columns of the image that it covers */
};

/* Under output pixel (y, x); not empty, since pad <= kernel / 2. */
CPU_INLINE struct window window_of(const struct pool_args *a, size_t y, size_t x)
{
    size_t top = y * a->stride, left = x * a->stride;
    struct window w = {top < a->pad ? 0 : top - a->pad, top + a->kernel_h - a->pad,
                       left < a->pad ? 0 : left - a->pad, left + a->kernel_w - a->pad};
    w.h1 = w.h1 < a->height ? w.h1 : a->height;
    w.w1 = w.w1 < a->width ? w.w1 : a->width;
    return w;
}

#define LANES 1
#define NAME(x) single_##x
#include "kernels/cpu/pool_body.h"

#define LANES 4
#define NAME(x) plain_##x
#include "kernels/cpu/pool_body.h"

#ifdef CPU_HAS_CLONES

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define LANES 8
#define NAME(x) v3_##x
#include "kernels/cpu/pool_body.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
#define LANES 16
#define NAME(x) v4_##x
#include "kernels/cpu/pool_body.h"
#pragma GCC pop_options

#endif

/* The widest vectors that so many channels fill and this machine has. */
static const struct pool_loops *loops_for(size_t channels)
{
#ifdef CPU_HAS_CLONES
    if (channels >= 16 && __builtin_cpu_supports("x86-64-v4"))
        return &v4_loops;
    if (channels >= 8 && __builtin_cpu_supports("x86-64-v3"))
        return &v3_loops;
#endif
    return channels >= 4 ? &plain_loops : &single_loops;
}

static struct shape shape_of(const struct pool_args *a)
{
    return (struct shape){conv_out_len(a->height, a->kernel_h, a->stride, a->pad),
                          conv_out_len(a->width, a->kernel_w, a->stride, a->pad)};
}

as_status cpu_pool_forward(struct backend *be, const struct pool_args *a, struct tensor x,
                           struct tensor y, struct as_err *err)
{
    (void)be;
    (void)err;
    const struct pool_loops *loops = loops_for(a->channels);
    struct shape s = shape_of(a);
    size_t in = a->height * a->width * a->channels, out = s.oh * s.ow * a->channels;
    for (size_t k = 0; k < a->members; k++) {
        for (size_t n = 0; n < a->batch; n++) {
            const float *from = tensor_f32(x, k) + n * in;
            float *to = tensor_f32(y, k) + n * out;
            if (a->kind == POOL_MAX)
                loops->max(a, &s, from, to, tensor_i32(a->index, k) + n * out);
            else
                loops->avg(a, &s, from, to);
        }
    }
    return AS_OK;
}

as_status cpu_pool_backward(struct backend *be, const struct pool_args *a, struct tensor dy,
                            struct tensor dx, struct as_err *err)
{
    (void)be;
    (void)err;
    const struct pool_loops *loops = loops_for(a->channels);
    struct shape s = shape_of(a);
    size_t in = a->height * a->width * a->channels, out = s.oh * s.ow * a->channels;
    for (size_t k = 0; k < a->members; k++) {
        const int32_t *index = a->kind == POOL_MAX ? tensor_i32(a->index, k) : NULL;
        for (size_t n = 0; n < a->batch; n++)
            loops->back(a, &s, tensor_f32(dy, k) + n * out, index != NULL ? index + n * out : NULL,
                        tensor_f32(dx, k) + n * in);
    }
    return AS_OK;
}
