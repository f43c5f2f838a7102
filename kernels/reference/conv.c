/* Convolution straight from its definition. Every output element sums over its taps. Every element
 * of a gradient sums over the outputs that it contributed to, so that each element is written once
 * and the order of its sum is plain. A depthwise convolution is the case of one channel for each
 * group; `ci` and `each` carry the difference. */
#include "kernels/reference/reference.h"

struct geometry {
    const struct conv_args *a;
    size_t oh, ow;   /* output's height and width */
    size_t ci, each; /* of one group: inputs and outputs */
};

static struct geometry geometry(const struct conv_args *a)
{
    return (struct geometry){
        .a = a,
        .oh = conv_out_len(a->height, a->kernel_h, a->stride, a->pad),
        .ow = conv_out_len(a->width, a->kernel_w, a->stride, a->pad),
        .ci = a->channels / a->groups,
        .each = a->out / a->groups,
    };
}

/* Which input pixel the tap (i, j) of the output pixel (y, x) reads; false: the padding. */
static bool tap(const struct conv_args *a, size_t y, size_t x, size_t i, size_t j, size_t *ret)
{
    size_t h = y * a->stride + i, w = x * a->stride + j;
    if (h < a->pad || h - a->pad >= a->height || w < a->pad || w - a->pad >= a->width)
        return false;
    *ret = (h - a->pad) * a->width + w - a->pad;
    return true;
}

static size_t weight_at(const struct geometry *g, size_t i, size_t j, size_t c, size_t o)
{
    return ((i * g->a->kernel_w + j) * g->ci + c) * g->a->out + o;
}

static double output(const struct geometry *g, const float *x, const float *w, size_t y_at,
                     size_t x_at, size_t o)
{
    const struct conv_args *a = g->a;
    size_t first = o / g->each * g->ci; /* the group's first channel */
    double sum = 0;
    for (size_t i = 0; i < a->kernel_h; i++) {
        for (size_t j = 0; j < a->kernel_w; j++) {
            size_t pixel = 0;
            if (!tap(a, y_at, x_at, i, j, &pixel))
                continue;
            for (size_t c = 0; c < g->ci; c++)
                sum += (double)x[pixel * a->channels + first + c] *
                       (double)w[weight_at(g, i, j, c, o)];
        }
    }
    return sum;
}

static void forward_member(const struct conv_args *a, size_t k, act_kind act, float *y, float *z)
{
    struct geometry g = geometry(a);
    const float *x = tensor_f32(a->x, k), *w = tensor_f32(a->w, k), *b = tensor_f32(a->b, k);
    size_t at = 0;
    for (size_t n = 0; n < a->batch; n++) {
        const float *image = x + n * a->height * a->width * a->channels;
        for (size_t p = 0; p < g.oh * g.ow; p++) {
            for (size_t o = 0; o < a->out; o++, at++) {
                double sum = output(&g, image, w, p / g.ow, p % g.ow, o);
                sum += b != NULL ? (double)b[o] : 0;
                if (z != NULL)
                    z[at] = (float)sum;
                y[at] = (float)ref_activate(act, sum);
            }
        }
    }
}

size_t ref_conv_work(const struct backend *be, const struct conv_args *a)
{
    (void)be;
    (void)a;
    return 0;
}

as_status ref_conv_forward(struct backend *be, const struct conv_args *a, act_kind act,
                           struct tensor y, struct tensor z, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        forward_member(a, k, act, tensor_f32(y, k), tensor_f32(z, k));
    return AS_OK;
}

/* The gradient of one weight: over all output pixels of all images. */
static double weight_gradient(const struct geometry *g, const float *x, const float *dy, size_t i,
                              size_t j, size_t c, size_t o)
{
    const struct conv_args *a = g->a;
    size_t channel = o / g->each * g->ci + c, pixels = g->oh * g->ow;
    double sum = 0;
    for (size_t n = 0; n < a->batch; n++) {
        const float *image = x + n * a->height * a->width * a->channels;
        for (size_t p = 0; p < pixels; p++) {
            size_t pixel = 0;
            if (tap(a, p / g->ow, p % g->ow, i, j, &pixel))
                sum += (double)image[pixel * a->channels + channel] *
                       (double)dy[(n * pixels + p) * a->out + o];
        }
    }
    return sum;
}

static void backward_w(const struct conv_args *a, const float *x, const float *dy, float *dw)
{
    struct geometry g = geometry(a);
    for (size_t i = 0; i < a->kernel_h; i++)
        for (size_t j = 0; j < a->kernel_w; j++)
            for (size_t c = 0; c < g.ci; c++)
                for (size_t o = 0; o < a->out; o++)
                    dw[weight_at(&g, i, j, c, o)] = (float)weight_gradient(&g, x, dy, i, j, c, o);
}

static void backward_b(const struct conv_args *a, const float *dy, float *db)
{
    struct geometry g = geometry(a);
    for (size_t o = 0; o < a->out; o++) {
        double sum = 0;
        for (size_t p = 0; p < a->batch * g.oh * g.ow; p++)
            sum += (double)dy[p * a->out + o];
        db[o] = (float)sum;
    }
}

/* The gradient of channel c of one input pixel (h, w): over the outputs whose window it is in.
 * Output row y is, with tap i, when y * stride + i = h + pad. */
static double input_gradient(const struct geometry *g, const float *w_k, const float *dy, size_t h,
                             size_t w, size_t c)
{
    const struct conv_args *a = g->a;
    size_t group = c / g->ci;
    double sum = 0;
    for (size_t i = 0; i < a->kernel_h; i++) {
        for (size_t j = 0; j < a->kernel_w; j++) {
            size_t down = h + a->pad - i, across = w + a->pad - j;
            if (h + a->pad < i || w + a->pad < j || down % a->stride != 0 ||
                across % a->stride != 0 || down / a->stride >= g->oh || across / a->stride >= g->ow)
                continue;
            size_t p = down / a->stride * g->ow + across / a->stride;
            for (size_t o = group * g->each; o < (group + 1) * g->each; o++)
                sum += (double)dy[p * a->out + o] *
                       (double)w_k[weight_at(g, i, j, c - group * g->ci, o)];
        }
    }
    return sum;
}

static void backward_x(const struct conv_args *a, const float *w, const float *dy, float *dx)
{
    struct geometry g = geometry(a);
    for (size_t n = 0; n < a->batch; n++)
        for (size_t p = 0; p < a->height * a->width; p++)
            for (size_t c = 0; c < a->channels; c++)
                *dx++ = (float)input_gradient(&g, w, dy + n * g.oh * g.ow * a->out, p / a->width,
                                              p % a->width, c);
}

as_status ref_conv_backward(struct backend *be, const struct conv_args *a,
                            const struct conv_grads *g, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *dy = tensor_f32(g->dy, k);
        if (g->dw.buf != NULL)
            backward_w(a, tensor_f32(a->x, k), dy, tensor_f32(g->dw, k));
        if (g->db.buf != NULL)
            backward_b(a, dy, tensor_f32(g->db, k));
        if (g->dx.buf != NULL)
            backward_x(a, tensor_f32(a->w, k), dy, tensor_f32(g->dx, k));
    }
    return AS_OK;
}
