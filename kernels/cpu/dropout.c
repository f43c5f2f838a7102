/* Philox in lanes: 32 counters at once, so up to 128 elements at a time. With 16, gcc
 * unrolls the loop before it looks for vectors, and is four times slower (0.25 against 1.1 G
 * elements/s). Lanes continue from one row into the next, so that narrow layers fill them too. */
#include "kernels/cpu/cpu.h"

#include "base/cpu_clones.h"
#include "kernels/philox.h"

#define LANES 32
#define BLOCK (LANES * 4) /* elements */

struct stream {
    uint64_t key, hi;
    uint64_t threshold;
    float scale;
};

/* The counter of the next lane: four units of one row. */
struct place {
    uint32_t row, quad;
};

/* The words of the next LANES places of rows that are `quads` wide; `at` moves on. */
CPU_INLINE void draw_words(const struct stream *s, struct place *at, uint32_t quads,
                           uint32_t words[BLOCK])
{
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    if (quads - at->quad > LANES) {
        for (uint32_t j = 0; j < LANES; j++) {
            c0[j] = at->quad + j;
            c1[j] = at->row;
        }
        at->quad += LANES;
    } else {
        for (uint32_t j = 0; j < LANES; j++) {
            c0[j] = at->quad;
            c1[j] = at->row;
            bool last = ++at->quad == quads;
            at->quad = last ? 0 : at->quad;
            at->row += last;
        }
    }
    for (uint32_t j = 0; j < LANES; j++) {
        c2[j] = (uint32_t)s->hi;
        c3[j] = (uint32_t)(s->hi >> 32);
    }
    uint32_t key0 = (uint32_t)s->key, key1 = (uint32_t)(s->key >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        for (int j = 0; j < LANES; j++)
            philox_round(&c0[j], &c1[j], &c2[j], &c3[j], key0, key1);
        key0 += PHILOX_W0;
        key1 += PHILOX_W1;
    }
    for (int j = 0; j < LANES; j++) {
        words[4 * j] = c0[j];
        words[4 * j + 1] = c1[j];
        words[4 * j + 2] = c2[j];
        words[4 * j + 3] = c3[j];
    }
}

/* For rows of a multiple of four units: the words have the order of the elements. */
CPU_CLONES static void drop_even(const struct stream *s, const float *x, float *y, size_t rows,
                                 size_t width)
{
    uint32_t threshold = (uint32_t)s->threshold; /* < 2^32: the caller handles "all" */
    float scale = s->scale;
    struct place at = {0, 0};
    size_t n = rows * width;
    for (size_t first = 0; first < n; first += BLOCK) {
        uint32_t words[BLOCK];
        draw_words(s, &at, (uint32_t)(width / 4), words);
        size_t end = n - first < BLOCK ? n - first : BLOCK;
        for (size_t i = 0; i < end; i++)
            y[first + i] = words[i] >= threshold ? x[first + i] * scale : 0.0f;
    }
}

/* For any width: the last words of a row are not used. */
CPU_CLONES static void drop_odd(const struct stream *s, const float *x, float *y, size_t rows,
                                size_t width)
{
    uint32_t threshold = (uint32_t)s->threshold;
    float scale = s->scale;
    struct place at = {0, 0};
    size_t i = 0, left = width; /* the next element, and the elements left in its row */
    for (size_t n = rows * width; i < n;) {
        uint32_t words[BLOCK];
        draw_words(s, &at, (uint32_t)((width + 3) / 4), words);
        for (size_t lane = 0; lane < LANES && i < n; lane++) {
            size_t len = left < 4 ? left : 4;
            for (size_t j = 0; j < len; j++, i++)
                y[i] = words[4 * lane + j] >= threshold ? x[i] * scale : 0.0f;
            left = left == len ? width : left - len;
        }
    }
}

/* For rates that need no random numbers. */
static void keep_all(const float *x, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i];
}

static void drop_all(float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = 0.0f;
}

as_status cpu_dropout(struct backend *be, const struct dropout_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++) {
        const float *x = tensor_f32(a->x, k);
        float *y = tensor_f32(a->y, k), rate = tensor_f32(a->rate, k)[0];
        const int32_t *seed = tensor_i32(a->seed, k);
        uint64_t step = (uint32_t)tensor_i32(a->step, k)[0];
        struct stream s = {
            .key = (uint32_t)seed[0] | (uint64_t)(uint32_t)seed[1] << 32,
            .hi = step << 32 | (uint64_t)a->layer << 8 | DROPOUT_PURPOSE,
            .threshold = dropout_threshold(rate),
            .scale = dropout_scale(rate),
        };
        if (s.threshold > UINT32_MAX)
            drop_all(y, a->rows * a->width);
        else if (!(rate > 0.0f))
            keep_all(x, y, a->rows * a->width);
        else if (a->width % 4 == 0)
            drop_even(&s, x, y, a->rows, a->width);
        else
            drop_odd(&s, x, y, a->rows, a->width);
    }
    return AS_OK;
}
