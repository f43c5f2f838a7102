/* Pooling, vectors along the channels. A maximum keeps value and place together, without branches;
 * the backward pass asks of every tap whether it was the one, so that nothing is scattered.
 *
 * An image is a piece that may run beside others. */
#include "kernels/cpu/cpu.h"

#include <string.h>

#include "kernels/cpu/clones.h"

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

struct shape {
    size_t oh, ow;
};

CPU_INLINE void max_take(float *restrict y, int32_t *restrict index, const float *restrict x,
                         int32_t pixel, size_t channels)
{
    for (size_t c = 0; c < channels; c++) {
        bool keep = x[c] <= y[c] || y[c] != y[c]; /* a NaN stays, and is not <= anything */
        index[c] = keep ? index[c] : pixel;
        y[c] = keep ? y[c] : x[c];
    }
}

CPU_CLONES static void max_image(const struct pool_args *a, const struct shape *s, const float *x,
                                 float *y, int32_t *index)
{
    size_t n = a->channels;
    for (size_t p = 0; p < s->oh * s->ow; p++, y += n, index += n) {
        struct window w = window_of(a, p / s->ow, p % s->ow);
        size_t first = w.h0 * a->width + w.w0;
        memcpy(y, x + first * n, n * sizeof(*y));
        for (size_t c = 0; c < n; c++)
            index[c] = (int32_t)first;
        for (size_t h = w.h0; h < w.h1; h++)
            for (size_t i = h * a->width + w.w0; i < h * a->width + w.w1; i++)
                if (i != first)
                    max_take(y, index, x + i * n, (int32_t)i, n);
    }
}

CPU_CLONES static void avg_image(const struct pool_args *a, const struct shape *s, const float *x,
                                 float *y)
{
    size_t n = a->channels;
    float share = 1.0f / (float)(a->kernel_h * a->kernel_w);
    for (size_t p = 0; p < s->oh * s->ow; p++, y += n) {
        struct window w = window_of(a, p / s->ow, p % s->ow);
        memset(y, 0, n * sizeof(*y));
        for (size_t h = w.h0; h < w.h1; h++)
            for (size_t i = h * a->width + w.w0; i < h * a->width + w.w1; i++)
                for (size_t c = 0; c < n; c++)
                    y[c] += x[i * n + c];
        for (size_t c = 0; c < n; c++)
            y[c] *= share;
    }
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
    struct shape s = shape_of(a);
    size_t in = a->height * a->width * a->channels, out = s.oh * s.ow * a->channels;
    for (size_t k = 0; k < a->members; k++) {
        for (size_t n = 0; n < a->batch; n++) {
            const float *from = tensor_f32(x, k) + n * in;
            float *to = tensor_f32(y, k) + n * out;
            if (a->kind == POOL_MAX)
                max_image(a, &s, from, to, tensor_i32(a->index, k) + n * out);
            else
                avg_image(a, &s, from, to);
        }
    }
    return AS_OK;
}

CPU_CLONES static void max_image_back(const struct pool_args *a, const struct shape *s,
                                      const float *restrict dy, const int32_t *restrict index,
                                      float *restrict dx)
{
    size_t n = a->channels;
    memset(dx, 0, a->height * a->width * n * sizeof(*dx));
    for (size_t p = 0; p < s->oh * s->ow; p++, dy += n, index += n) {
        struct window w = window_of(a, p / s->ow, p % s->ow);
        for (size_t h = w.h0; h < w.h1; h++)
            for (size_t i = h * a->width + w.w0; i < h * a->width + w.w1; i++)
                for (size_t c = 0; c < n; c++)
                    dx[i * n + c] += index[c] == (int32_t)i ? dy[c] : 0.0f;
    }
}

CPU_CLONES static void avg_image_back(const struct pool_args *a, const struct shape *s,
                                      const float *restrict dy, float *restrict dx)
{
    size_t n = a->channels;
    float share = 1.0f / (float)(a->kernel_h * a->kernel_w);
    memset(dx, 0, a->height * a->width * n * sizeof(*dx));
    for (size_t p = 0; p < s->oh * s->ow; p++, dy += n) {
        struct window w = window_of(a, p / s->ow, p % s->ow);
        for (size_t h = w.h0; h < w.h1; h++)
            for (size_t i = h * a->width + w.w0; i < h * a->width + w.w1; i++)
                for (size_t c = 0; c < n; c++)
                    dx[i * n + c] += dy[c] * share;
    }
}

as_status cpu_pool_backward(struct backend *be, const struct pool_args *a, struct tensor dy,
                            struct tensor dx, struct as_err *err)
{
    (void)be;
    (void)err;
    struct shape s = shape_of(a);
    size_t in = a->height * a->width * a->channels, out = s.oh * s.ow * a->channels;
    for (size_t k = 0; k < a->members; k++) {
        for (size_t n = 0; n < a->batch; n++) {
            const float *from = tensor_f32(dy, k) + n * out;
            float *to = tensor_f32(dx, k) + n * in;
            if (a->kind == POOL_MAX)
                max_image_back(a, &s, from, tensor_i32(a->index, k) + n * out, to);
            else
                avg_image_back(a, &s, from, to);
        }
    }
    return AS_OK;
}
