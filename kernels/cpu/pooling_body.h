/* The loops of pool.c for one instruction set (vec_begin.h). Each output is written once. */
#include "kernels/cpu/vec_begin.h"

static void NAME(max_image)(const struct pool_args *a, const struct shape *s, const float *x,
                            float *y, int32_t *index)
{
    size_t n = a->channels;
    for (size_t oy = 0; oy < s->oh; oy++) {
        for (size_t ox = 0; ox < s->ow; ox++, y += n, index += n) {
            struct window w = window_of(a, oy, ox);
            size_t first = w.h0 * a->width + w.w0;
            FOR_CHANNELS(c, n)
            {
                NAME(vec) best = VEC(x + first * n + c);
                NAME(mask) from = (NAME(mask)){0} + (int)first;
                for (size_t h = w.h0; h < w.h1; h++) {
                    for (size_t i = h * a->width + w.w0; i < h * a->width + w.w1; i++) {
                        /* A NaN stays, and is not <= anything. `first` itself changes nothing. */
                        NAME(vec) v = VEC(x + i * n + c);
                        NAME(mask) keep = (v <= best) | (best != best);
                        best = PICK(keep, best, v);
                        from = (keep & from) | (~keep & (int)i);
                    }
                }
                VEC_OUT(y + c) = best;
                MASK_OUT(index + c) = from;
            }
        }
    }
}

static void NAME(avg_image)(const struct pool_args *a, const struct shape *s, const float *x,
                            float *y)
{
    size_t n = a->channels;
    float share = 1.0f / (float)(a->kernel_h * a->kernel_w);
    for (size_t oy = 0; oy < s->oh; oy++) {
        for (size_t ox = 0; ox < s->ow; ox++, y += n) {
            struct window w = window_of(a, oy, ox);
            FOR_CHANNELS(c, n)
            {
                NAME(vec) sum = {0};
                for (size_t h = w.h0; h < w.h1; h++)
                    for (size_t i = h * a->width + w.w0; i < h * a->width + w.w1; i++)
                        sum += VEC(x + i * n + c);
                VEC_OUT(y + c) = sum * share;
            }
        }
    }
}

/* dx of a pixel: the sum over the windows it is in, in their order; of a maximum (index not NULL),
 * where it was chosen. */
static void NAME(image_back)(const struct pool_args *a, const struct shape *s, const float *dy,
                             const int32_t *index, float *dx)
{
    size_t n = a->channels;
    float share = 1.0f / (float)(a->kernel_h * a->kernel_w);
    struct range rows = {0, 0};
    for (size_t h = 0; h < a->height; h++) {
        range_move(&rows, h + a->pad, a->stride, a->kernel_h, s->oh);
        struct range cols = {0, 0};
        for (size_t w = 0; w < a->width; w++, dx += n) {
            int here = (int)(h * a->width + w);
            range_move(&cols, w + a->pad, a->stride, a->kernel_w, s->ow);
            FOR_CHANNELS(c, n)
            {
                NAME(vec) sum = {0};
                for (size_t oy = rows.first; oy < rows.last; oy++) {
                    for (size_t ox = cols.first; ox < cols.last; ox++) {
                        size_t at = (oy * s->ow + ox) * n + c;
                        NAME(vec) g = VEC(dy + at);
                        if (index != NULL)
                            sum += (NAME(vec))((NAME(mask))g & (MASK(index + at) == here));
                        else
                            sum += g * share;
                    }
                }
                VEC_OUT(dx + c) = sum;
            }
        }
    }
}

static const struct pool_loops NAME(loops) = {NAME(max_image), NAME(avg_image), NAME(image_back)};

#include "kernels/cpu/vec_end.h"
