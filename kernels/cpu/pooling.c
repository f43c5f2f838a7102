/* Pooling with vectors along the channels. Both passes write every output once. A maximum updates
 * value and place together, without branches. The gradient of a pixel is gathered from the windows
 * that contain it, so that nothing is scattered. A tile is some images. */
#include "kernels/cpu/cpu.h"

#include "base/cpu_clones.h"
#include "kernels/cpu/window.h"

struct shape {
    size_t oh, ow;
};

struct pool_loops {
    void (*max)(const struct pool_args *a, const struct shape *s, const float *x, float *y,
                int32_t *index);
    void (*avg)(const struct pool_args *a, const struct shape *s, const float *x, float *y);
    void (*back)(const struct pool_args *a, const struct shape *s, const float *dy,
                 const int32_t *index, float *dx); /* index NULL: average */
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

#define VEC_BODY "kernels/cpu/pooling_body.inc"
#define VEC_LOOPS struct pool_loops
#include "kernels/cpu/vec_widths.inc"

static struct shape shape_of(const struct pool_args *a)
{
    return (struct shape){conv_out_len(a->height, a->kernel_h, a->stride, a->pad),
                          conv_out_len(a->width, a->kernel_w, a->stride, a->pad)};
}

struct job {
    const struct pool_args *a;
    struct shape s;
    const struct pool_loops *loops;
    size_t images, tiles; /* of a tile; of a member */
    struct tensor from, to;
};

static struct job job_of(const struct pool_args *a, struct tensor from, struct tensor to)
{
    size_t image = a->height * a->width * a->channels;
    struct job j = {.a = a,
                    .s = shape_of(a),
                    .loops = loops_for(a->channels),
                    .images = image == 0 || image >= CPU_CHUNK ? 1 : CPU_CHUNK / image,
                    .from = from,
                    .to = to};
    j.tiles = image == 0 ? 0 : (a->batch + j.images - 1) / j.images;
    return j;
}

/* Image n of member k. */
static void forward_image(const struct job *j, size_t k, size_t n)
{
    const struct pool_args *a = j->a;
    size_t in = a->height * a->width * a->channels, out = j->s.oh * j->s.ow * a->channels;
    const float *from = tensor_f32(j->from, k) + n * in;
    float *to = tensor_f32(j->to, k) + n * out;
    if (a->kind == POOL_MAX)
        j->loops->max(a, &j->s, from, to, tensor_i32(a->index, k) + n * out);
    else
        j->loops->avg(a, &j->s, from, to);
}

static void backward_image(const struct job *j, size_t k, size_t n)
{
    const struct pool_args *a = j->a;
    size_t in = a->height * a->width * a->channels, out = j->s.oh * j->s.ow * a->channels;
    j->loops->back(a, &j->s, tensor_f32(j->from, k) + n * out,
                   a->kind == POOL_MAX ? tensor_i32(a->index, k) + n * out : NULL,
                   tensor_f32(j->to, k) + n * in);
}

static size_t last_image(const struct job *j, size_t i)
{
    size_t last = (i % j->tiles + 1) * j->images;
    return last < j->a->batch ? last : j->a->batch;
}

static void forward_tile(void *arg, size_t i)
{
    const struct job *j = arg;
    for (size_t n = i % j->tiles * j->images; n < last_image(j, i); n++)
        forward_image(j, i / j->tiles, n);
}

static void backward_tile(void *arg, size_t i)
{
    const struct job *j = arg;
    for (size_t n = i % j->tiles * j->images; n < last_image(j, i); n++)
        backward_image(j, i / j->tiles, n);
}

as_status cpu_pool_forward(struct backend *be, const struct pool_args *a, struct tensor x,
                           struct tensor y, struct as_err *err)
{
    (void)err;
    struct job j = job_of(a, x, y);
    cpu_split(be, a->members * j.tiles, forward_tile, &j);
    return AS_OK;
}

as_status cpu_pool_backward(struct backend *be, const struct pool_args *a, struct tensor dy,
                            struct tensor dx, struct as_err *err)
{
    (void)err;
    struct job j = job_of(a, dy, dx);
    cpu_split(be, a->members * j.tiles, backward_tile, &j);
    return AS_OK;
}
