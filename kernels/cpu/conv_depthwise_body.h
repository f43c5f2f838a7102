/* The loops of conv_depthwise.c for one instruction set (vec_begin.h), where each channel has one
 * output. */
#include "kernels/cpu/vec_begin.h"

static void NAME(forward)(const struct conv_args *a, const struct shape *s, const float *x,
                          const float *w, const float *b, float *y)
{
    size_t n = a->channels;
    for (size_t oy = 0; oy < s->oh; oy++) {
        struct taps v = taps_of(oy, a->stride, a->pad, a->kernel_h, a->height);
        for (size_t ox = 0; ox < s->ow; ox++, y += n) {
            struct taps h = taps_of(ox, a->stride, a->pad, a->kernel_w, a->width);
            FOR_CHANNELS(c, n)
            {
                NAME(vec) sum = {0};
                if (b != NULL)
                    sum = VEC(b + c);
                for (size_t i = v.first; i < v.last; i++) {
                    const float *from = x + ((v.at + i - v.first) * a->width + h.at) * n + c;
                    const float *by = w + (i * a->kernel_w + h.first) * n + c;
                    for (size_t j = h.first; j < h.last; j++, from += n, by += n)
                        sum += VEC(from) * VEC(by);
                }
                VEC_OUT(y + c) = sum;
            }
        }
    }
}

/* Gathered: output (oy, ox) read the pixel with tap (h + pad - oy stride, w + pad - ox stride). */
static void NAME(input)(const struct conv_args *a, const struct shape *s, const float *dy,
                        const float *w, float *dx)
{
    size_t n = a->channels;
    struct range rows = {0, 0};
    for (size_t h = a->pad; h < a->height + a->pad; h++) {
        range_move(&rows, h, a->stride, a->kernel_h, s->oh);
        struct range cols = {0, 0};
        for (size_t x = a->pad; x < a->width + a->pad; x++, dx += n) {
            range_move(&cols, x, a->stride, a->kernel_w, s->ow);
            FOR_CHANNELS(c, n)
            {
                NAME(vec) sum = {0};
                for (size_t oy = rows.first; oy < rows.last; oy++) {
                    const float *by = w + (h - oy * a->stride) * a->kernel_w * n + c;
                    for (size_t ox = cols.first; ox < cols.last; ox++)
                        sum += VEC(dy + (oy * s->ow + ox) * n + c) *
                               VEC(by + (x - ox * a->stride) * n);
                }
                VEC_OUT(dx + c) = sum;
            }
        }
    }
}

/* One tap's sum over an image, LANES channels; x and dy at the first of its outputs inside. Four
 * sums, since each waits for its last addition. */
CPU_INLINE NAME(vec) NAME(tap)(const float *x, size_t x_row, size_t x_col, const float *dy,
                               size_t dy_row, size_t dy_col, size_t rows, size_t cols)
{
    NAME(vec) sum[4] = {{0}, {0}, {0}, {0}};
    for (size_t r = 0; r < rows; r++) {
        const float *from = x + r * x_row, *by = dy + r * dy_row;
        size_t i = 0;
        for (; i + 4 <= cols; i += 4)
            for (size_t j = 0; j < 4; j++)
                sum[j] += VEC(from + (i + j) * x_col) * VEC(by + (i + j) * dy_col);
        for (; i < cols; i++)
            sum[0] += VEC(from + i * x_col) * VEC(by + i * dy_col);
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* dw of channels [c, c + LANES) += one image's. */
static void NAME(weights)(const struct conv_args *a, const struct shape *s, const float *x,
                          const float *dy, size_t c, float *dw)
{
    size_t n = a->channels;
    for (size_t i = 0; i < a->kernel_h; i++) {
        struct taps v = outputs_of(i, a->stride, a->pad, a->height, s->oh);
        for (size_t j = 0; j < a->kernel_w; j++) {
            struct taps h = outputs_of(j, a->stride, a->pad, a->width, s->ow);
            if (v.first >= v.last || h.first >= h.last)
                continue;
            VEC_OUT(dw + (i * a->kernel_w + j) * n + c) +=
                NAME(tap)(x + (v.at * a->width + h.at) * n + c, a->stride * a->width * n,
                          a->stride * n, dy + (v.first * s->ow + h.first) * n + c, s->ow * n, n,
                          v.last - v.first, h.last - h.first);
        }
    }
}

static const struct depthwise_loops NAME(loops) = {LANES, NAME(forward), NAME(input),
                                                   NAME(weights)};

#include "kernels/cpu/vec_end.h"
