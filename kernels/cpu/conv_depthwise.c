/* Depthwise convolution: every output channel reads one input channel, so a vector holds
 * neighbouring channels of one pixel. There is no padded copy: the loops leave out the taps outside
 * the image. Several outputs for each channel use plain loops, because no model that we know needs
 * them fast.
 *
 * Pieces that may run side by side: an image of forward and dx, a vector of channels of dw and
 * db. */
#include <string.h>

#include "kernels/cpu/activation.h"
#include "base/cpu_clones.h"
#include "kernels/cpu/conv.h"
#include "kernels/cpu/conv_pack.h"
#include "kernels/cpu/window.h"

struct shape {
    size_t oh, ow, each; /* outputs of a channel */
};

struct depthwise_loops {
    size_t lanes;
    void (*forward)(const struct conv_args *a, const struct shape *s, const float *x,
                    const float *w, const float *b, float *y);
    void (*input)(const struct conv_args *a, const struct shape *s, const float *dy, const float *w,
                  float *dx);
    void (*weights)(const struct conv_args *a, const struct shape *s, const float *x,
                    const float *dy, size_t c, float *dw);
};

struct taps {
    size_t first, last;
    size_t at; /* the input's row (or column) at `first` */
};

/* The taps of output row (or column) y that lie inside the image's n. */
CPU_INLINE struct taps taps_of(size_t y, size_t stride, size_t pad, size_t kernel, size_t n)
{
    size_t top = y * stride, room = n + pad - top; /* top < n + pad: the kernel fits */
    struct taps t = {.first = top < pad ? pad - top : 0, .last = kernel < room ? kernel : room};
    t.at = top + t.first - pad;
    return t;
}

/* The outputs, of `out`, whose tap i lies inside the image's n. */
CPU_INLINE struct taps outputs_of(size_t i, size_t stride, size_t pad, size_t n, size_t out)
{
    struct taps t = {.first = i < pad ? (pad - i + stride - 1) / stride : 0};
    t.last = n + pad <= i ? 0 : (n + pad - i - 1) / stride + 1;
    t.last = t.last < out ? t.last : out;
    t.at = t.first < t.last ? t.first * stride + i - pad : 0;
    return t;
}

#define VEC_BODY "kernels/cpu/conv_depthwise_body.inc"
#define VEC_LOOPS struct depthwise_loops
#include "kernels/cpu/vec_widths.inc"

static struct shape shape_of(const struct conv_args *a)
{
    struct shape s = {.oh = conv_out_len(a->height, a->kernel_h, a->stride, a->pad),
                      .ow = conv_out_len(a->width, a->kernel_w, a->stride, a->pad),
                      .each = a->out / a->channels};
    if (s.ow == 0)
        s.oh = 0;
    return s;
}

/* ---- several outputs per channel ---- */

/* One tap of one output pixel, for the three passes: `pixel` belongs to the input, `tap` to the
 * kernel. In each pass exactly one of the outputs is not NULL. */
struct meeting {
    const float *x, *w, *dy;
    float *y, *dx, *dw;
};

static void meet(const struct conv_args *a, size_t each, const struct meeting *m, size_t pixel,
                 size_t tap, size_t out)
{
    for (size_t o = 0; o < a->out; o++) {
        size_t in_at = pixel * a->channels + o / each, w_at = tap * a->out + o;
        size_t out_at = out * a->out + o;
        if (m->y != NULL)
            m->y[out_at] += m->x[in_at] * m->w[w_at];
        if (m->dx != NULL)
            m->dx[in_at] += m->dy[out_at] * m->w[w_at];
        if (m->dw != NULL)
            m->dw[w_at] += m->x[in_at] * m->dy[out_at];
    }
}

static void meet_image(const struct conv_args *a, const struct shape *s, const struct meeting *m)
{
    for (size_t p = 0; p < s->oh * s->ow; p++) {
        struct taps v = taps_of(p / s->ow, a->stride, a->pad, a->kernel_h, a->height);
        struct taps h = taps_of(p % s->ow, a->stride, a->pad, a->kernel_w, a->width);
        for (size_t i = v.first; i < v.last; i++)
            for (size_t j = h.first; j < h.last; j++)
                meet(a, s->each, m, (v.at + i - v.first) * a->width + h.at + j - h.first,
                     i * a->kernel_w + j, p);
    }
}

/* ---- the passes ---- */

static void forward_image(const struct conv_args *a, const struct shape *s, size_t k, size_t n,
                          float *y)
{
    const float *x = tensor_f32(a->x, k) + n * a->height * a->width * a->channels;
    const float *w = tensor_f32(a->w, k), *b = tensor_f32(a->b, k);
    if (s->each == 1) {
        loops_for(a->channels)->forward(a, s, x, w, b, y);
        return;
    }
    for (size_t p = 0; p < s->oh * s->ow; p++)
        for (size_t o = 0; o < a->out; o++)
            y[p * a->out + o] = b != NULL ? b[o] : 0;
    meet_image(a, s, &(struct meeting){.x = x, .w = w, .y = y});
}

struct job {
    const struct conv_args *a;
    struct shape s;
    size_t images; /* of a tile */
    act_kind act;
    struct tensor y, z;
    const struct conv_grads *g;
};

static struct job job_of(const struct conv_args *a)
{
    size_t image = a->height * a->width * a->channels;
    return (struct job){
        .a = a, .s = shape_of(a), .images = image < CPU_CHUNK ? CPU_CHUNK / image : 1};
}

static size_t tiles_of(const struct job *j)
{
    return (j->a->batch + j->images - 1) / j->images;
}

/* Some images of one member. */
struct some {
    size_t k, first, last;
};

static struct some some_of(const struct job *j, size_t i)
{
    size_t tiles = tiles_of(j), first = i % tiles * j->images, last = first + j->images;
    return (struct some){i / tiles, first, last < j->a->batch ? last : j->a->batch};
}

static void forward_tile(void *arg, size_t i)
{
    const struct job *j = arg;
    struct some some = some_of(j, i);
    size_t pixels = j->s.oh * j->s.ow, out = pixels * j->a->out;
    float *y = tensor_f32(j->y, some.k), *z = tensor_f32(j->z, some.k);
    for (size_t n = some.first; n < some.last; n++) {
        forward_image(j->a, &j->s, some.k, n, y + n * out);
        cpu_bias_act(j->act, y + n * out, NULL, z != NULL ? z + n * out : NULL, pixels, j->a->out,
                     j->a->out);
    }
}

as_status cpu_depthwise_forward(struct backend *be, const struct conv_args *a, act_kind act,
                                struct tensor y, struct tensor z)
{
    struct job j = job_of(a);
    j.act = act;
    j.y = y;
    j.z = z;
    cpu_split(be, a->members * tiles_of(&j), forward_tile, &j);
    return AS_OK;
}

static void input_tile(void *arg, size_t i)
{
    const struct job *j = arg;
    const struct conv_args *a = j->a;
    struct some some = some_of(j, i);
    size_t in = a->height * a->width * a->channels, out = j->s.oh * j->s.ow * a->out;
    const float *w = tensor_f32(a->w, some.k), *dy = tensor_f32(j->g->dy, some.k);
    for (size_t n = some.first; n < some.last; n++) {
        float *dx = tensor_f32(j->g->dx, some.k) + n * in;
        if (j->s.each == 1) {
            loops_for(a->channels)->input(a, &j->s, dy + n * out, w, dx);
            continue;
        }
        memset(dx, 0, in * sizeof(*dx));
        meet_image(a, &j->s, &(struct meeting){.w = w, .dy = dy + n * out, .dx = dx});
    }
}

#define WIDTH 16 /* channels of a tile of dw */

/* dw of some channels, or of all channels if each has several outputs. */
static void weight_some(const struct job *j, size_t k, size_t first, size_t last)
{
    const struct conv_args *a = j->a;
    size_t in = a->height * a->width * a->channels, out = j->s.oh * j->s.ow * a->out;
    const float *x = tensor_f32(a->x, k), *dy = tensor_f32(j->g->dy, k);
    float *dw = tensor_f32(j->g->dw, k);
    for (size_t tap = 0; tap < a->kernel_h * a->kernel_w; tap++)
        memset(dw + tap * a->out + first * j->s.each, 0, (last - first) * j->s.each * sizeof(*dw));
    for (size_t n = 0; n < a->batch; n++) {
        if (j->s.each > 1)
            meet_image(a, &j->s, &(struct meeting){.x = x + n * in, .dy = dy + n * out, .dw = dw});
        for (size_t c = first; j->s.each == 1 && c < last;) {
            const struct depthwise_loops *loops = loops_for(last - c);
            loops->weights(a, &j->s, x + n * in, dy + n * out, c, dw);
            c += loops->lanes;
        }
    }
}

static size_t weight_tiles(const struct job *j)
{
    return j->s.each > 1 ? 1 : (j->a->channels + WIDTH - 1) / WIDTH;
}

static void weight_tile(void *arg, size_t i)
{
    const struct job *j = arg;
    const struct conv_args *a = j->a;
    size_t tiles = weight_tiles(j), k = i / tiles;
    size_t first = i % tiles * WIDTH, last = first + WIDTH;
    if (tiles == 1 || last > a->channels)
        last = a->channels;
    if (j->g->dw.buf != NULL)
        weight_some(j, k, first, last);
    if (j->g->db.buf == NULL)
        return;
    float *db = tensor_f32(j->g->db, k) + first * j->s.each;
    size_t n = (last - first) * j->s.each;
    memset(db, 0, n * sizeof(*db));
    conv_sum_rows(tensor_f32(j->g->dy, k) + first * j->s.each, a->batch * j->s.oh * j->s.ow, n,
                  a->out, db);
}

as_status cpu_depthwise_backward(struct backend *be, const struct conv_args *a,
                                 const struct conv_grads *g)
{
    struct job j = job_of(a);
    j.g = g;
    if (g->dw.buf != NULL || g->db.buf != NULL)
        cpu_split(be, a->members * weight_tiles(&j), weight_tile, &j);
    if (g->dx.buf != NULL)
        cpu_split(be, a->members * tiles_of(&j), input_tile, &j);
    return AS_OK;
}
