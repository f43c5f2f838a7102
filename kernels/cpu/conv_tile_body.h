/* The loops of conv_tile.c for one instruction set (vec_begin.h), with
 *   ROWS   rows of a tile: ROWS x 2 sums, 2 of a panel and what is multiplied must fit the registers
 */
#include "kernels/cpu/vec_begin.h"

/* n < LANES floats in pieces of 8, 4, 2, 1. */
CPU_INLINE void NAME(copy_part)(float *to, const float *from, size_t n)
{
#pragma GCC unroll 4
    for (size_t step = LANES / 2; step > 0; step /= 2) {
        if ((n & step) == 0)
            continue;
        memcpy(to, from, step * sizeof(*to));
        to += step;
        from += step;
    }
}

CPU_INLINE void NAME(add_part)(float *to, const float *from, size_t n, bool relu)
{
#pragma GCC unroll 4
    for (size_t step = LANES / 2; step > 0; step /= 2) {
        if ((n & step) == 0)
            continue;
        for (size_t i = 0; i < step; i++) {
            float sum = to[i] + from[i];
            to[i] = relu && sum < 0.0f ? 0.0f : sum;
        }
        to += step;
        from += step;
    }
}

/* The sums of one row's vector to where they belong. */
CPU_INLINE void NAME(put)(const struct pixel_tile *t, float *to, const float *from, size_t n)
{
    if (t->start == NULL && n < LANES) {
        NAME(add_part)(to, from, n, t->relu);
        return;
    }
    NAME(vec) v = VEC(from);
    if (t->start == NULL)
        v += VEC(to);
    if (t->relu)
        v = PICK(v < 0, (NAME(vec)){0}, v); /* NaN stays */
    if (n >= LANES) {
        VEC_OUT(to) = v;
        return;
    }
    float piece[LANES];
    VEC_OUT(piece) = v;
    NAME(copy_part)(to, piece, n);
}

CPU_INLINE void NAME(pixels_of)(const struct pixel_tile *t, const size_t n_vec)
{
    NAME(vec) sum[ROWS][2], start[2] = {{0}, {0}};
    const float *from[ROWS];
    for (size_t v = 0; v < n_vec && t->start != NULL; v++)
        start[v] = VEC(t->start + v * LANES);
    for (size_t r = 0; r < ROWS; r++) {
        from[r] = t->from[r];
        for (size_t v = 0; v < n_vec; v++)
            sum[r][v] = start[v];
    }
    const float *panel = t->panel;
    for (size_t k = 0; k < t->runs; k++) {
        for (size_t i = k * t->jump; i < k * t->jump + t->run; i++, panel += n_vec * LANES) {
            NAME(vec) b[2];
            for (size_t v = 0; v < n_vec; v++)
                b[v] = VEC(panel + v * LANES);
#pragma GCC unroll 8
            for (size_t r = 0; r < ROWS; r++)
                for (size_t v = 0; v < n_vec; v++)
                    sum[r][v] += from[r][i] * b[v];
        }
    }
    float done[ROWS][2 * LANES]; /* a loop over rows needs the sums out of their registers */
#pragma GCC unroll 8
    for (size_t r = 0; r < ROWS; r++)
        for (size_t v = 0; v < n_vec; v++)
            VEC_OUT(done[r] + v * LANES) = sum[r][v];
    for (size_t r = 0; r < t->rows; r++) {
        NAME(put)(t, t->to[r], done[r], t->cols);
        if (n_vec > 1)
            NAME(put)(t, t->to[r] + LANES, done[r] + LANES, t->cols - LANES);
    }
}

static void NAME(pixels)(const struct pixel_tile *t)
{
    if (t->cols > LANES)
        NAME(pixels_of)(t, 2);
    else
        NAME(pixels_of)(t, 1);
}

CPU_INLINE void NAME(weights_of)(const struct weight_tile *t, const size_t rows, const size_t n_vec)
{
    NAME(vec) sum[CONV_TILE_ROWS_MAX][2];
    const float *from[CONV_TILE_ROWS_MAX];
    for (size_t r = 0; r < rows; r++) {
        from[r] = t->from[r];
        for (size_t v = 0; v < n_vec; v++)
            sum[r][v] = (NAME(vec)){0};
    }
    const float *panel = t->panel;
    for (size_t n = 0; n < t->images; n++) {
        for (size_t y = 0; y < t->height; y++) {
            size_t i = n * t->image_jump + y * t->row_jump;
            for (size_t x = 0; x < t->width; x++, i += t->pixel_jump, panel += n_vec * LANES) {
                NAME(vec) b[2];
                for (size_t v = 0; v < n_vec; v++)
                    b[v] = VEC(panel + v * LANES);
#pragma GCC unroll 8
                for (size_t r = 0; r < rows; r++)
                    for (size_t v = 0; v < n_vec; v++)
                        sum[r][v] += from[r][i] * b[v];
            }
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < n_vec; v++)
            VEC_OUT(t->sum + (r * n_vec + v) * LANES) += sum[r][v];
}

CPU_INLINE void NAME(weights_rows)(const struct weight_tile *t, const size_t n_vec)
{
    switch (t->rows) {
    case 1:
        NAME(weights_of)(t, 1, n_vec);
        break;
    case 2:
        NAME(weights_of)(t, 2, n_vec);
        break;
    case 3:
        NAME(weights_of)(t, 3, n_vec);
        break;
    case 4:
        NAME(weights_of)(t, 4, n_vec);
        break;
    case 5:
        NAME(weights_of)(t, 5, n_vec);
        break;
    case 6:
        NAME(weights_of)(t, 6, n_vec);
        break;
#if ROWS > 6
    case 7:
        NAME(weights_of)(t, 7, n_vec);
        break;
    case 8:
        NAME(weights_of)(t, 8, n_vec);
        break;
#endif
    default:
        break;
    }
}

static void NAME(weights)(const struct weight_tile *t)
{
    if (t->cols > LANES)
        NAME(weights_rows)(t, 2);
    else
        NAME(weights_rows)(t, 1);
}

static void NAME(pack)(const float *src, size_t rows, size_t jump, size_t cols, float *panel)
{
    for (size_t r = 0; r < rows; r++, src += jump) {
        for (size_t c = 0; c < cols; c += LANES, panel += LANES) {
            if (cols - c >= LANES) {
                VEC_OUT(panel) = VEC(src + c);
            } else {
                VEC_OUT(panel) = (NAME(vec)){0};
                NAME(copy_part)(panel, src + c, cols - c);
            }
        }
    }
}

static const struct conv_tile NAME(tile) = {.rows = ROWS,
                                            .cols = 2 * LANES,
                                            .lanes = LANES,
                                            .pixels = NAME(pixels),
                                            .weights = NAME(weights),
                                            .pack = NAME(pack)};

#undef ROWS
#include "kernels/cpu/vec_end.h"
