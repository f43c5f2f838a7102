/* The loops of batch_norm.c for one instruction set (vec_begin.h): one vector of channels down some
 * rows, `jump` floats from row to row. */
#include "kernels/cpu/vec_begin.h"

/* Mean and sum of squared differences from it. */
static void NAME(stats)(const float *x, size_t rows, size_t jump, float *ret_mean,
                        float *ret_spread)
{
    NAME(vec) sum = {0}, first = {0}, second = {0};
    for (size_t r = 0; r < rows; r++)
        sum += VEC(x + r * jump);
    NAME(vec) mean = sum / (float)rows;
    for (size_t r = 0; r < rows; r++) {
        NAME(vec) d = VEC(x + r * jump) - mean;
        first += d;
        second += d * d;
    }
    VEC_OUT(ret_mean) = mean;
    /* The mean was rounded: what its error added goes again. */
    VEC_OUT(ret_spread) = second - first * first / (float)rows;
}

/* Channels c on; x may be y. */
static void NAME(apply)(const struct affine *f, size_t c, const float *x, float *y, size_t rows,
                        size_t jump)
{
    NAME(vec) mean = VEC(f->mean + c), scale = VEC(f->scale + c), shift = VEC(f->shift + c);
    for (size_t at = c; at < c + rows * jump; at += jump) {
        NAME(vec) v = (VEC(x + at) - mean) * scale + shift;
        VEC_OUT(y + at) = f->relu ? PICK(v < 0, (NAME(vec)){0}, v) : v;
    }
}

/* The gradient that relu lets pass; y NULL: all of it. */
CPU_INLINE NAME(vec) NAME(passed)(const float *dy, const float *y, size_t at)
{
    NAME(vec) g = VEC(dy + at);
    return y == NULL ? g : PICK(VEC(y + at) <= 0, (NAME(vec)){0}, g);
}

/* Sums of g and of g (x - mean). */
static void NAME(sums)(const struct slopes *s, size_t c, const struct rows *in, size_t rows,
                       size_t jump, float *ret_sum, float *ret_product)
{
    NAME(vec) mean = VEC(s->mean + c), sum = {0}, product = {0};
    for (size_t at = c; at < c + rows * jump; at += jump) {
        NAME(vec) g = NAME(passed)(in->dy, in->y, at);
        sum += g;
        product += g * (VEC(in->x + at) - mean);
    }
    VEC_OUT(ret_sum) = sum;
    VEC_OUT(ret_product) = product;
}

/* dx may be dy. */
static void NAME(back)(const struct slopes *s, size_t c, const struct rows *in, size_t rows,
                       size_t jump, float *dx)
{
    NAME(vec) mean = VEC(s->mean + c), scale = VEC(s->scale + c);
    NAME(vec) base = VEC(s->base + c), tilt = VEC(s->tilt + c);
    for (size_t at = c; at < c + rows * jump; at += jump)
        VEC_OUT(dx + at) =
            scale * (NAME(passed)(in->dy, in->y, at) - base - (VEC(in->x + at) - mean) * tilt);
}

static const struct norm_loops NAME(loops) = {LANES, NAME(stats), NAME(apply), NAME(sums),
                                              NAME(back)};

#include "kernels/cpu/vec_end.h"
