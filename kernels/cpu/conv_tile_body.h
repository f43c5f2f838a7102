/* The body of conv_tile.c for one instruction set: no guard, included once for each.
 *   LANES     floats of a vector
 *   ROWS      rows of a tile: ROWS x 2 sums, 2 of a panel and the rest must fit the registers
 *   NAME(x)   the name of this set's x */

typedef float NAME(vec) __attribute__((vector_size(LANES * 4)));
typedef int NAME(mask) __attribute__((vector_size(LANES * 4)));
typedef NAME(vec) NAME(loose) __attribute__((aligned(4), may_alias)); /* at any address */

/* The first n floats of v, n < LANES, in pieces of 8, 4, 2, 1. */
CPU_INLINE void NAME(put_part)(float *to, const NAME(vec) * v, size_t n, bool add)
{
    float piece[LANES];
    memcpy(piece, v, sizeof(piece));
    const float *from = piece;
#pragma GCC unroll 4
    for (size_t step = LANES / 2; step > 0; step /= 2) {
        if ((n & step) == 0)
            continue;
        for (size_t i = 0; i < step; i++)
            to[i] = add ? to[i] + from[i] : from[i];
        to += step;
        from += step;
    }
}

CPU_INLINE void NAME(put)(const struct pixel_tile *t, float *to, NAME(vec) * v, size_t n)
{
    if (t->start == NULL) {
        if (n >= LANES)
            *(NAME(loose) *)to += *v;
        else
            NAME(put_part)(to, v, n, true);
        return;
    }
    if (t->relu)
        *v = (NAME(vec))((NAME(mask)) * v & ~(*v < 0)); /* NaN stays */
    if (n >= LANES)
        *(NAME(loose) *)to = *v;
    else
        NAME(put_part)(to, v, n, false);
}

CPU_INLINE void NAME(pixels_of)(const struct pixel_tile *t, const size_t n_vec)
{
    NAME(vec) sum[ROWS][2];
    const float *from[ROWS];
    for (size_t r = 0; r < ROWS; r++) {
        from[r] = t->from[r];
        for (size_t v = 0; v < n_vec; v++)
            if (t->start != NULL)
                sum[r][v] = *(const NAME(loose) *)(t->start + v * LANES);
            else
                sum[r][v] = (NAME(vec)){0};
    }
    const float *panel = t->panel;
    for (size_t k = 0; k < t->runs; k++) {
        for (size_t i = k * t->jump; i < k * t->jump + t->run; i++, panel += n_vec * LANES) {
            NAME(vec) b[2];
            for (size_t v = 0; v < n_vec; v++)
                b[v] = *(const NAME(loose) *)(panel + v * LANES);
#pragma GCC unroll 8
            for (size_t r = 0; r < ROWS; r++)
                for (size_t v = 0; v < n_vec; v++)
                    sum[r][v] += from[r][i] * b[v];
        }
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < ROWS; r++) {
        if (r >= t->rows)
            break;
        NAME(put)(t, t->to[r], &sum[r][0], t->cols);
        if (n_vec > 1)
            NAME(put)(t, t->to[r] + LANES, &sum[r][1], t->cols - LANES);
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
                    b[v] = *(const NAME(loose) *)(panel + v * LANES);
#pragma GCC unroll 8
                for (size_t r = 0; r < rows; r++)
                    for (size_t v = 0; v < n_vec; v++)
                        sum[r][v] += from[r][i] * b[v];
            }
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < n_vec; v++)
            *(NAME(loose) *)(t->sum + (r * n_vec + v) * LANES) += sum[r][v];
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

static const struct conv_tile NAME(tile) = {.rows = ROWS,
                                            .cols = 2 * LANES,
                                            .lanes = LANES,
                                            .pixels = NAME(pixels),
                                            .weights = NAME(weights)};

#undef LANES
#undef ROWS
#undef NAME
