/* Depthwise convolution: every output channel looks at one input channel, so a vector holds
 * neighbouring channels of one pixel. No padding is written anywhere: taps outside are left out.
 *
 * Pieces that may run side by side: an image of forward and dx, a few channels (LANES) of dw and
 * db.
 */
#include "kernels/cpu/conv.h"

#include <string.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/clones.h"

#define LANES 16

struct taps {
    size_t first, last; /* of the kernel, those inside the image */
    size_t at;          /* the input's row or column that `first` reads */
};

/* Of output row (or column) y, where the image has n. */
CPU_INLINE struct taps taps_of(size_t y, size_t stride, size_t pad, size_t kernel, size_t n)
{
    size_t top = y * stride;
    struct taps t = {.first = top < pad ? pad - top : 0};
    t.at = top + t.first - pad;
    size_t room = n + pad - top; /* top < n + pad: the kernel fits the padded image */
    t.last = kernel < room ? kernel : room;
    return t;
}

struct shape {
    size_t oh, ow, each; /* outputs of a channel */
};

static struct shape shape_of(const struct conv_args *a)
{
    struct shape s = {.oh = conv_out_len(a->height, a->kernel_h, a->stride, a->pad),
                      .ow = conv_out_len(a->width, a->kernel_w, a->stride, a->pad),
                      .each = a->out / a->channels};
    if (s.ow == 0)
        s.oh = 0;
    return s;
}

/* sum[o] += x[o / each] w[o] */
CPU_INLINE void add_product(float *restrict sum, const float *restrict x, const float *restrict w,
                            size_t channels, size_t each)
{
    if (each == 1) {
        for (size_t c = 0; c < channels; c++)
            sum[c] += x[c] * w[c];
        return;
    }
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < each; i++)
            sum[c * each + i] += x[c] * w[c * each + i];
}

CPU_CLONES static void forward_image(const struct conv_args *a, const struct shape *s,
                                     const float *x, const float *w, const float *b, float *y)
{
    for (size_t p = 0; p < s->oh * s->ow; p++, y += a->out) {
        struct taps v = taps_of(p / s->ow, a->stride, a->pad, a->kernel_h, a->height);
        struct taps h = taps_of(p % s->ow, a->stride, a->pad, a->kernel_w, a->width);
        if (b != NULL)
            memcpy(y, b, a->out * sizeof(*y));
        else
            memset(y, 0, a->out * sizeof(*y));
        for (size_t i = v.first; i < v.last; i++)
            for (size_t j = h.first; j < h.last; j++)
                add_product(
                    y, x + ((v.at + i - v.first) * a->width + h.at + j - h.first) * a->channels,
                    w + (i * a->kernel_w + j) * a->out, a->channels, s->each);
    }
}

as_status cpu_depthwise_forward(const struct conv_args *a, act_kind act, struct tensor y,
                                struct tensor z)
{
    struct shape s = shape_of(a);
    size_t in = a->height * a->width * a->channels, out = s.oh * s.ow * a->out;
    for (size_t k = 0; k < a->members; k++) {
        for (size_t n = 0; n < a->batch; n++) {
            float *to = tensor_f32(y, k) + n * out, *kept = tensor_f32(z, k);
            forward_image(a, &s, tensor_f32(a->x, k) + n * in, tensor_f32(a->w, k),
                          tensor_f32(a->b, k), to);
            cpu_bias_act(act, to, NULL, kept != NULL ? kept + n * out : NULL, s.oh * s.ow, a->out,
                         a->out);
        }
    }
    return AS_OK;
}

/* dx[c] += sum over i of dy[c each + i] w[c each + i] */
CPU_INLINE void send_back(float *restrict dx, const float *restrict dy, const float *restrict w,
                          size_t channels, size_t each)
{
    if (each == 1) {
        for (size_t c = 0; c < channels; c++)
            dx[c] += dy[c] * w[c];
        return;
    }
    for (size_t c = 0; c < channels; c++)
        for (size_t i = 0; i < each; i++)
            dx[c] += dy[c * each + i] * w[c * each + i];
}

CPU_CLONES static void input_image(const struct conv_args *a, const struct shape *s,
                                   const float *dy, const float *w, float *dx)
{
    memset(dx, 0, a->height * a->width * a->channels * sizeof(*dx));
    for (size_t p = 0; p < s->oh * s->ow; p++, dy += a->out) {
        struct taps v = taps_of(p / s->ow, a->stride, a->pad, a->kernel_h, a->height);
        struct taps h = taps_of(p % s->ow, a->stride, a->pad, a->kernel_w, a->width);
        for (size_t i = v.first; i < v.last; i++)
            for (size_t j = h.first; j < h.last; j++)
                send_back(dx + ((v.at + i - v.first) * a->width + h.at + j - h.first) * a->channels,
                          dy, w + (i * a->kernel_w + j) * a->out, a->channels, s->each);
    }
}

/* What a piece of dw reads and writes: n outputs from `first` on. */
struct piece {
    const float *x, *dy;
    float *dw, *db; /* NULL: not wanted */
    size_t first, n;
};

/* One tap over one row of outputs, sum[o] += x dy: x and dy at the row's first pixel inside. */
CPU_INLINE void row_product(float *restrict sum, const float *x, size_t x_jump, const float *dy,
                            size_t dy_jump, size_t pixels, size_t n)
{
    if (n == LANES) {
        float lane[LANES];
        memcpy(lane, sum, sizeof(lane));
        for (size_t p = 0; p < pixels; p++)
            for (size_t o = 0; o < LANES; o++)
                lane[o] += x[p * x_jump + o] * dy[p * dy_jump + o];
        memcpy(sum, lane, sizeof(lane));
        return;
    }
    for (size_t p = 0; p < pixels; p++)
        for (size_t o = 0; o < n; o++)
            sum[o] += x[p * x_jump + o] * dy[p * dy_jump + o];
}

/* The outputs of a row whose tap j is inside the image: [first, last). */
static struct taps outputs_of(const struct conv_args *a, size_t ow, size_t j)
{
    size_t first = j < a->pad ? (a->pad - j + a->stride - 1) / a->stride : 0;
    size_t last = a->width + a->pad <= j ? 0 : (a->width + a->pad - j - 1) / a->stride + 1;
    last = last < ow ? last : ow;
    return (struct taps){first, last, first < last ? first * a->stride + j - a->pad : 0};
}

/* With one output per channel. */
CPU_CLONES static void weight_row(const struct conv_args *a, const struct shape *s,
                                  const struct piece *t, size_t n, size_t y)
{
    struct taps v = taps_of(y, a->stride, a->pad, a->kernel_h, a->height);
    const float *dy = t->dy + (n * s->oh + y) * s->ow * a->out + t->first;
    for (size_t i = v.first; i < v.last; i++) {
        const float *x = t->x + (n * a->height + v.at + i - v.first) * a->width * a->channels;
        for (size_t j = 0; j < a->kernel_w; j++) {
            struct taps h = outputs_of(a, s->ow, j);
            if (h.first < h.last)
                row_product(t->dw + (i * a->kernel_w + j) * a->out + t->first,
                            x + h.at * a->channels + t->first, a->stride * a->channels,
                            dy + h.first * a->out, a->out, h.last - h.first, t->n);
        }
    }
}

/* With several: the channel of output o is o / each. */
static void weight_row_each(const struct conv_args *a, const struct shape *s, const struct piece *t,
                            size_t n, size_t y)
{
    struct taps v = taps_of(y, a->stride, a->pad, a->kernel_h, a->height);
    const float *dy = t->dy + (n * s->oh + y) * s->ow * a->out;
    for (size_t i = v.first; i < v.last; i++) {
        const float *x = t->x + (n * a->height + v.at + i - v.first) * a->width * a->channels;
        for (size_t j = 0; j < a->kernel_w; j++) {
            struct taps h = outputs_of(a, s->ow, j);
            float *dw = t->dw + (i * a->kernel_w + j) * a->out;
            for (size_t p = h.first; p < h.last; p++)
                for (size_t o = t->first; o < t->first + t->n; o++)
                    dw[o] += x[(h.at + (p - h.first) * a->stride) * a->channels + o / s->each] *
                             dy[p * a->out + o];
        }
    }
}

CPU_CLONES static void bias_row(const float *dy, size_t pixels, size_t jump, float *db, size_t n)
{
    for (size_t p = 0; p < pixels; p++)
        for (size_t o = 0; o < n; o++)
            db[o] += dy[p * jump + o];
}

/* Sums in the order of images and rows; taps of distinct pieces never meet. */
static void weight_piece(const struct conv_args *a, const struct shape *s, const struct piece *t)
{
    for (size_t tap = 0; t->dw != NULL && tap < a->kernel_h * a->kernel_w; tap++)
        memset(t->dw + tap * a->out + t->first, 0, t->n * sizeof(*t->dw));
    if (t->db != NULL) {
        memset(t->db + t->first, 0, t->n * sizeof(*t->db));
        bias_row(t->dy + t->first, a->batch * s->oh * s->ow, a->out, t->db + t->first, t->n);
    }
    if (t->dw == NULL)
        return;
    for (size_t n = 0; n < a->batch; n++) {
        for (size_t y = 0; y < s->oh; y++) {
            if (s->each == 1)
                weight_row(a, s, t, n, y);
            else
                weight_row_each(a, s, t, n, y);
        }
    }
}

as_status cpu_depthwise_backward(const struct conv_args *a, const struct conv_grads *g)
{
    struct shape s = shape_of(a);
    size_t in = a->height * a->width * a->channels, out = s.oh * s.ow * a->out;
    for (size_t k = 0; k < a->members; k++) {
        struct piece t = {.x = tensor_f32(a->x, k),
                          .dy = tensor_f32(g->dy, k),
                          .dw = tensor_f32(g->dw, k),
                          .db = tensor_f32(g->db, k)};
        if (t.dw != NULL || t.db != NULL) {
            for (t.first = 0; t.first < a->out; t.first += LANES) {
                t.n = a->out - t.first < LANES ? a->out - t.first : LANES;
                weight_piece(a, &s, &t);
            }
        }
        if (g->dx.buf == NULL)
            continue;
        for (size_t n = 0; n < a->batch; n++)
            input_image(a, &s, t.dy + n * out, tensor_f32(a->w, k), tensor_f32(g->dx, k) + n * in);
    }
    return AS_OK;
}
