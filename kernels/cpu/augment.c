/* Copies whole rows of pixels, then clears the square. */
#include "kernels/cpu/cpu.h"

#include <string.h>

#include "kernels/philox.h"

/* The changes of one image. */
struct change {
    int64_t down, right;
    bool flip;
    int64_t top, left, side; /* of the square set to 0; side 0: none */
};

static int64_t setting(struct tensor t, size_t k)
{
    return t.buf != NULL && *tensor_i32(t, k) > 0 ? *tensor_i32(t, k) : 0;
}

/* A whole number in [0, n). */
static int64_t below(uint32_t word, uint64_t n)
{
    return (int64_t)((word * n) >> 32);
}

static int64_t clip(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

static struct change change_of(const struct augment_args *a, size_t k, size_t r)
{
    const int32_t *seed = tensor_i32(a->seed, k);
    uint64_t key = (uint32_t)seed[0] | (uint64_t)(uint32_t)seed[1] << 32;
    uint64_t hi = (uint64_t)(uint32_t)*tensor_i32(a->step, k) << 32 | AUGMENT_PURPOSE;
    uint32_t one[4], two[4];
    philox_block(key, hi, 2 * (uint64_t)r, one);
    philox_block(key, hi, 2 * (uint64_t)r + 1, two);
    int64_t pad = setting(a->pad, k), side = setting(a->cutout, k);
    float share = a->flip.buf != NULL ? *tensor_f32(a->flip, k) : 0.0f;
    return (struct change){
        .down = below(one[0], 2 * (uint64_t)pad + 1) - pad,
        .right = below(one[1], 2 * (uint64_t)pad + 1) - pad,
        .flip = (double)one[2] < (double)share * 4294967296.0,
        .top = below(two[0], a->height) - side / 2,
        .left = below(two[1], a->width) - side / 2,
        .side = side,
    };
}

/* One row of pixels, shifted to the right and perhaps mirrored. */
static void change_row(const struct change *c, const float *x, float *y, int64_t width, size_t n)
{
    int64_t from = clip(c->right, 0, width), to = clip(width + c->right, 0, width);
    memset(y, 0, (size_t)from * n * sizeof(*y));
    if (from < to && !c->flip)
        memcpy(y + (size_t)from * n, x + (size_t)(from - c->right) * n,
               (size_t)(to - from) * n * sizeof(*y));
    if (c->flip)
        for (int64_t j = from; j < to; j++)
            memcpy(y + (size_t)j * n, x + (size_t)(width - 1 - (j - c->right)) * n, n * sizeof(*y));
    int64_t end = to > from ? to : from;
    memset(y + (size_t)end * n, 0, (size_t)(width - end) * n * sizeof(*y));
}

static void change_image(const struct augment_args *a, const struct change *c, const float *x,
                         float *y)
{
    int64_t height = (int64_t)a->height, width = (int64_t)a->width;
    size_t n = a->channels, row = a->width * n;
    for (int64_t i = 0; i < height; i++) {
        int64_t from = i - c->down;
        if (from >= 0 && from < height)
            change_row(c, x + (size_t)from * row, y + (size_t)i * row, width, n);
        else
            memset(y + (size_t)i * row, 0, row * sizeof(*y));
    }
    int64_t left = clip(c->left, 0, width), right = clip(c->left + c->side, left, width);
    int64_t bottom = clip(c->top + c->side, 0, height);
    for (int64_t i = clip(c->top, 0, height); i < bottom; i++)
        memset(y + (size_t)i * row + (size_t)left * n, 0, (size_t)(right - left) * n * sizeof(*y));
}

as_status cpu_augment(struct backend *be, const struct augment_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    size_t image = a->height * a->width * a->channels;
    for (size_t k = 0; k < a->members; k++) {
        for (size_t r = 0; r < a->batch && image > 0; r++) {
            struct change c = change_of(a, k, r);
            change_image(a, &c, tensor_f32(a->x, k) + r * image, tensor_f32(a->y, k) + r * image);
        }
    }
    return AS_OK;
}
