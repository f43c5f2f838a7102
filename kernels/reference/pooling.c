/* The oracle: each output looks at its whole window, each gradient of an input at all windows that
 * contain it, so nothing is added to one place from two sides. A window with a NaN has the NaN as
 * its maximum. Average pooling divides by the size of the whole kernel, padding included, as
 * PyTorch does by default. */
#include "kernels/reference/reference.h"

#include <assert.h>
#include <math.h>

/* One channel of the window of output pixel (y, x). */
struct window {
    double sum;
    float max;
    int32_t index; /* place of the maximum; -1: none yet */
};

static struct window look(const struct pool_args *a, const float *image, size_t c, size_t y,
                          size_t x)
{
    struct window seen = {0, 0, -1};
    for (size_t i = 0; i < a->kernel_h; i++) {
        for (size_t j = 0; j < a->kernel_w; j++) {
            size_t h = y * a->stride + i, w = x * a->stride + j;
            if (h < a->pad || h - a->pad >= a->height || w < a->pad || w - a->pad >= a->width)
                continue;
            size_t pixel = (h - a->pad) * a->width + w - a->pad;
            float v = image[pixel * a->channels + c];
            seen.sum += (double)v;
            if (seen.index < 0 || v > seen.max || (isnan(v) && !isnan(seen.max))) {
                seen.max = v;
                seen.index = (int32_t)pixel;
            }
        }
    }
    return seen;
}

static void forward_member(const struct pool_args *a, const float *x, float *y, int32_t *index)
{
    size_t oh = conv_out_len(a->height, a->kernel_h, a->stride, a->pad);
    size_t ow = conv_out_len(a->width, a->kernel_w, a->stride, a->pad), at = 0;
    for (size_t n = 0; n < a->batch; n++) {
        const float *image = x + n * a->height * a->width * a->channels;
        for (size_t p = 0; p < oh * ow; p++) {
            for (size_t c = 0; c < a->channels; c++, at++) {
                struct window seen = look(a, image, c, p / ow, p % ow);
                if (index == NULL) {
                    y[at] = (float)(seen.sum / (double)(a->kernel_h * a->kernel_w));
                    continue;
                }
                y[at] = seen.max;
                index[at] = seen.index;
            }
        }
    }
}

as_status ref_pool_forward(struct backend *be, const struct pool_args *a, struct tensor x,
                           struct tensor y, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        forward_member(a, tensor_f32(x, k), tensor_f32(y, k),
                       a->kind == POOL_MAX ? tensor_i32(a->index, k) : NULL);
    return AS_OK;
}

/* dx of one input element: the sum over the windows that contain it (avg: index is NULL) or whose
 * maximum it is (max). */
static double gradient(const struct pool_args *a, const float *dy, const int32_t *index, size_t h,
                       size_t w, size_t c)
{
    size_t oh = conv_out_len(a->height, a->kernel_h, a->stride, a->pad);
    size_t ow = conv_out_len(a->width, a->kernel_w, a->stride, a->pad);
    double sum = 0;
    for (size_t y = 0; y < oh; y++) {
        for (size_t x = 0; x < ow; x++) {
            size_t at = (y * ow + x) * a->channels + c;
            size_t top = y * a->stride, left = x * a->stride;
            if (h + a->pad < top || h + a->pad >= top + a->kernel_h || w + a->pad < left ||
                w + a->pad >= left + a->kernel_w)
                continue;
            if (index == NULL)
                sum += (double)dy[at] / (double)(a->kernel_h * a->kernel_w);
            else if (index[at] == (int32_t)(h * a->width + w))
                sum += (double)dy[at];
        }
    }
    return sum;
}

static void backward_member(const struct pool_args *a, const float *dy, const int32_t *index,
                            float *dx)
{
    assert(dx != NULL);
    size_t outputs = conv_out_len(a->height, a->kernel_h, a->stride, a->pad) *
                     conv_out_len(a->width, a->kernel_w, a->stride, a->pad) * a->channels;
    for (size_t n = 0; n < a->batch; n++)
        for (size_t p = 0; p < a->height * a->width; p++)
            for (size_t c = 0; c < a->channels; c++)
                *dx++ =
                    (float)gradient(a, dy + n * outputs, index != NULL ? index + n * outputs : NULL,
                                    p / a->width, p % a->width, c);
}

as_status ref_pool_backward(struct backend *be, const struct pool_args *a, struct tensor dy,
                            struct tensor dx, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        backward_member(a, tensor_f32(dy, k), a->kind == POOL_MAX ? tensor_i32(a->index, k) : NULL,
                        tensor_f32(dx, k));
    return AS_OK;
}
