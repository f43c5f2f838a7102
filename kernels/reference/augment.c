/* Each output pixel reads the input pixel that it comes from. */
#include "base/rng.h"
#include "kernels/reference/reference.h"

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

static struct change change_of(const struct augment_args *a, size_t k, size_t r)
{
    const int32_t *seed = tensor_i32(a->seed, k);
    uint64_t key = (uint32_t)seed[0] | (uint64_t)(uint32_t)seed[1] << 32;
    uint64_t step = (uint32_t)*tensor_i32(a->step, k);
    uint32_t one[4], two[4];
    philox4x32(key, step << 32 | AUGMENT_PURPOSE, 2 * (uint64_t)r, one);
    philox4x32(key, step << 32 | AUGMENT_PURPOSE, 2 * (uint64_t)r + 1, two);
    int64_t pad = setting(a->pad, k), side = setting(a->cutout, k);
    double share = a->flip.buf != NULL ? (double)*tensor_f32(a->flip, k) : 0;
    return (struct change){
        .down = below(one[0], 2 * (uint64_t)pad + 1) - pad,
        .right = below(one[1], 2 * (uint64_t)pad + 1) - pad,
        .flip = (double)one[2] < share * 0x1p32,
        .top = below(two[0], a->height) - side / 2,
        .left = below(two[1], a->width) - side / 2,
        .side = side,
    };
}

static bool is_cut(const struct change *c, int64_t i, int64_t j)
{
    return i >= c->top && i < c->top + c->side && j >= c->left && j < c->left + c->side;
}

static void change_image(const struct augment_args *a, const struct change *c, const float *x,
                         float *y)
{
    int64_t height = (int64_t)a->height, width = (int64_t)a->width;
    for (int64_t i = 0; i < height; i++) {
        for (int64_t j = 0; j < width; j++) {
            int64_t row = i - c->down, col = j - c->right;
            bool inside = row >= 0 && row < height && col >= 0 && col < width && !is_cut(c, i, j);
            if (c->flip)
                col = width - 1 - col;
            for (size_t ch = 0; ch < a->channels; ch++) {
                size_t to = (size_t)(i * width + j) * a->channels + ch; /* [H, W, C] */
                y[to] = inside ? x[(size_t)(row * width + col) * a->channels + ch] : 0;
            }
        }
    }
}

as_status ref_augment(struct backend *be, const struct augment_args *a, struct as_err *err)
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
