/* The body of gemm.c, compiled once for each instruction set. Before it is included:
 *   TILE(name)      a name with the instruction set's suffix
 *   TILE_CODE       the attribute that lets the compiler use it
 *   LANES           floats of one vector register
 *   EACH_LANE       LANES_n of gemm.c
 *   ROWS            rows of c that are kept in registers, a power of two
 *   TILE(mask), TILE(mask_of)(n), TILE(load)(mask, from), TILE(store)(mask, to, v): the first n
 *                   lanes; loads read no others, and give zeros there
 *
 * A panel is up to VECTORS * LANES columns of op(b) over INNER steps, copied so that it lies dense
 * in the first cache; then ROWS rows at a time go over it: each step loads the vectors of the panel
 * once and multiplies them by ROWS elements of a. No include guard: that is the point. */

#ifdef TILE /* on its own this header is empty */
#define VEC TILE(vec)
#define PANEL (VECTORS * LANES)

/* `rows` x `vecs` vectors of c over k steps, of the last vector only the lanes in `mask` when
 * `part`. Element (i, p) of op(a) is at a[i * rs + p * cs]. */
TILE_CODE CPU_INLINE void TILE(tile)(size_t rows, size_t vecs, bool part, TILE(mask) mask,
                                     bool fresh, size_t k, const float *a, size_t rs, size_t cs,
                                     const float *b, size_t ldb, float *c, size_t ldc)
{
    VEC acc[ROWS][VECTORS];
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        UNROLL
        for (size_t j = 0; j < vecs; j++) {
            const float *at = c + i * ldc + j * LANES;
            if (fresh)
                acc[i][j] = (VEC){0};
            else
                acc[i][j] = part && j + 1 == vecs ? TILE(load)(mask, at) : *(const VEC *)at;
        }
    }
    for (size_t p = 0; p < k; p++) {
        VEC row[VECTORS];
        UNROLL
        for (size_t j = 0; j < vecs; j++) {
            const float *at = b + p * ldb + j * LANES;
            row[j] = part && j + 1 == vecs ? TILE(load)(mask, at) : *(const VEC *)at;
        }
        UNROLL
        for (size_t i = 0; i < rows; i++)
            UNROLL
        for (size_t j = 0; j < vecs; j++)
            acc[i][j] += a[i * rs + p * cs] * row[j];
    }
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        UNROLL
        for (size_t j = 0; j < vecs; j++) {
            float *at = c + i * ldc + j * LANES;
            if (part && j + 1 == vecs)
                TILE(store)(mask, at, acc[i][j]);
            else
                *(VEC *)at = acc[i][j];
        }
    }
}

/* What one panel takes. */
struct TILE(panel) {
    size_t m, cols, k;
    bool fresh; /* c is overwritten */
    const float *a;
    size_t lda;
    const float *b;
    size_t ldb;
    float *c;
    size_t ldc;
};

TILE_CODE CPU_INLINE void TILE(rows)(const struct TILE(panel) * g, size_t vecs, bool part, bool ta)
{
    size_t rs = ta ? 1 : g->lda, cs = ta ? g->lda : 1, i = 0;
    TILE(mask) mask = TILE(mask_of)(g->cols - (vecs - 1) * LANES);
    for (; i + ROWS <= g->m; i += ROWS)
        TILE(tile)
    (ROWS, vecs, part, mask, g->fresh, g->k, g->a + i * rs, rs, cs, g->b, g->ldb, g->c + i * g->ldc,
     g->ldc);
    UNROLL
    for (size_t rows = ROWS / 2; rows > 0; rows /= 2) {
        if ((g->m & rows) == 0)
            continue;
        TILE(tile)
        (rows, vecs, part, mask, g->fresh, g->k, g->a + i * rs, rs, cs, g->b, g->ldb,
         g->c + i * g->ldc, g->ldc);
        i += rows;
    }
}

/* One panel, with the constants that its inner loop wants to know. */
TILE_CODE static void TILE(run_panel)(const struct TILE(panel) * g, bool ta)
{
    bool wide = g->cols > LANES, part = g->cols % LANES != 0;
    if (wide && !part && !ta)
        TILE(rows)(g, 2, false, false);
    else if (wide && !part)
        TILE(rows)(g, 2, false, true);
    else if (wide && !ta)
        TILE(rows)(g, 2, true, false);
    else if (wide)
        TILE(rows)(g, 2, true, true);
    else if (!ta)
        TILE(rows)(g, 1, true, false);
    else
        TILE(rows)(g, 1, true, true);
}

/* Swap one bit of the row's number with the same bit of the column's, in all rows. */
#define TAKE_LOW(l, bit) ((l) & (bit)) ? LANES + (l) - (bit) : (l)
#define TAKE_HIGH(l, bit) ((l) & (bit)) ? LANES + (l) : (l) + (bit)
#define SWAP(v, bit)                                                                               \
    UNROLL for (size_t r = 0; r < LANES; r++)                                                      \
    {                                                                                              \
        if ((r & (bit)) != 0)                                                                      \
            continue;                                                                              \
        VEC x = (v)[r], y = (v)[r + (bit)];                                                        \
        (v)[r] = __builtin_shufflevector(x, y, EACH_LANE(TAKE_LOW, bit));                          \
        (v)[r + (bit)] = __builtin_shufflevector(x, y, EACH_LANE(TAKE_HIGH, bit));                 \
    }

/* LANES rows of b by LANES steps, transposed: to[p * PANEL + r] = b[r * ldb + p]. */
TILE_CODE CPU_INLINE void TILE(turn)(const float *b, size_t ldb, float *to)
{
    VEC v[LANES];
    UNROLL
    for (size_t r = 0; r < LANES; r++)
        v[r] = *(const VEC *)(b + r * ldb);
    SWAP(v, 1)
    SWAP(v, 2)
    SWAP(v, 4)
#if LANES > 8
    SWAP(v, 8)
#endif
    UNROLL
    for (size_t r = 0; r < LANES; r++)
        *(VEC *)(to + r * PANEL) = v[r];
}

/* `cols` rows of b (columns of its transpose) over k steps. */
TILE_CODE static void TILE(pack_turned)(size_t k, size_t cols, const float *b, size_t ldb,
                                        float *to)
{
    size_t whole = cols - cols % LANES, steps = k - k % LANES;
    for (size_t j = 0; j < whole; j += LANES) {
        for (size_t p = 0; p < steps; p += LANES)
            TILE(turn)(b + j * ldb + p, ldb, to + p * PANEL + j);
        for (size_t p = steps; p < k; p++)
            for (size_t r = j; r < j + LANES; r++)
                to[p * PANEL + r] = b[r * ldb + p];
    }
    for (size_t r = whole; r < cols; r++)
        for (size_t p = 0; p < k; p++)
            to[p * PANEL + r] = b[r * ldb + p];
}

TILE_CODE static void TILE(pack)(size_t k, size_t cols, const float *b, size_t ldb, float *to)
{
    if (cols == PANEL) {
        for (size_t p = 0; p < k; p++)
            UNROLL
        for (size_t j = 0; j < PANEL; j += LANES)
            *(VEC *)(to + p * PANEL + j) = *(const VEC *)(b + p * ldb + j);
        return;
    }
    for (size_t p = 0; p < k; p++)
        for (size_t j = 0; j < cols; j++)
            to[p * PANEL + j] = b[p * ldb + j];
}

TILE_CODE static void TILE(gemm)(const struct gemm *g)
{
    _Alignas(64) float packed[INNER * PANEL];
    bool direct = !g->tb && (g->m <= ROWS || g->k * g->ldb <= DIRECT);
    for (size_t col = 0; col < g->n; col += PANEL) {
        for (size_t p = 0; p < g->k; p += INNER) {
            const float *b = g->b + (g->tb ? col * g->ldb + p : p * g->ldb + col);
            struct TILE(panel) s = {
                .m = g->m,
                .cols = g->n - col < PANEL ? g->n - col : PANEL,
                .k = g->k - p < INNER ? g->k - p : INNER,
                .fresh = p == 0 && !g->add,
                .a = g->a + (g->ta ? p * g->lda : p),
                .lda = g->lda,
                .b = direct ? b : packed,
                .ldb = direct ? g->ldb : PANEL,
                .c = g->c + col,
                .ldc = g->ldc,
            };
            if (g->tb)
                TILE(pack_turned)(s.k, s.cols, b, g->ldb, packed);
            else if (!direct)
                TILE(pack)(s.k, s.cols, b, g->ldb, packed);
            TILE(run_panel)(&s, g->ta);
        }
    }
}

#undef SWAP
#undef TAKE_LOW
#undef TAKE_HIGH
#undef EACH_LANE
#undef PANEL
#undef VEC
#undef TILE
#undef TILE_CODE
#undef LANES
#undef ROWS

#endif
