/* Rows of a data set into a batch: of 32-bit words, of bytes with scaling, and columns of a matrix.
 *
 * The work is memory traffic with an index, so the loops are short and each tile is a run of rows.
 * A large member is cut into tiles of rows; small members are joined into tiles of several members.
 * A row that does not exist becomes NaN (or -1), and nothing is read for it. */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "base/cpu_clones.h"

/* Words that make one tile. */
#define TILE_WORDS 16384

/* The index of a batch. */
struct places {
    struct tensor index, at;
    size_t members, rows, batch, width, at_rows, index_len;
};

/* The rows of a gather and the function that copies them. */
struct rows {
    const struct places *places;
    const void *args; /* of the operation */
    void (*some)(const void *args, const struct places *p, size_t k, size_t first, size_t end);
    size_t per_tile; /* rows of one tile; or members, where a member has fewer */
    size_t tiles;    /* of one member; 0: per_tile members make a tile */
};

/* A position in a member's part of the index. */
struct cursor {
    const int32_t *index;
    int64_t at, len;
    size_t rows;
};

CPU_INLINE struct cursor cursor_at(const struct places *p, size_t k, size_t first)
{
    struct cursor c = {tensor_i32(p->index, k), (int64_t)first, (int64_t)p->batch, p->rows};
    if (p->at.buf != NULL) {
        c.at += (int64_t)*tensor_i32(p->at, k) * (int64_t)p->at_rows;
        c.len = (int64_t)p->index_len;
    }
    if (c.index == NULL)
        c.len = 0;
    return c;
}

/* Returns the next row of the source; -1 if it does not exist. */
CPU_INLINE int64_t next_row(struct cursor *c)
{
    int64_t at = c->at++;
    int32_t from = at >= 0 && at < c->len ? c->index[at] : -1;
    return from >= 0 && (size_t)from < c->rows ? from : -1;
}

static void rows_tile(void *arg, size_t i)
{
    const struct rows *s = arg;
    const struct places *p = s->places;
    if (s->tiles > 0) {
        size_t first = i % s->tiles * s->per_tile, end = first + s->per_tile;
        s->some(s->args, p, i / s->tiles, first, end < p->batch ? end : p->batch);
        return;
    }
    size_t end = (i + 1) * s->per_tile < p->members ? (i + 1) * s->per_tile : p->members;
    for (size_t k = i * s->per_tile; k < end; k++)
        s->some(s->args, p, k, 0, p->batch);
}

/* All rows of all members, side by side. */
static void split_rows(struct backend *be, const struct places *p, const void *args,
                       void (*some)(const void *args, const struct places *p, size_t k,
                                    size_t first, size_t end))
{
    if (p->members == 1 && p->batch * p->width < TILE_WORDS) { /* the common small case */
        some(args, p, 0, 0, p->batch);
        return;
    }
    struct rows s = {p, args, some, TILE_WORDS / (p->width + 1) + 1, 0};
    if (p->batch > s.per_tile)
        s.tiles = (p->batch + s.per_tile - 1) / s.per_tile;
    else
        s.per_tile = TILE_WORDS / (p->batch * p->width + 1) + 1;
    size_t n = s.tiles > 0 ? p->members * s.tiles : (p->members + s.per_tile - 1) / s.per_tile;
    cpu_split(be, n, rows_tile, &s);
}

/* ---- words ---- */

#define BLOCK 16 /* words of one vector */

/* Inline: a call of memcpy for each row takes as long as copying a row of a small table. The
 * barrier keeps gcc from replacing the loop by memcpy. */
CPU_INLINE void copy_row(uint32_t *restrict to, const uint32_t *restrict from, size_t width)
{
    size_t d = 0;
    for (; d + BLOCK <= width; d += BLOCK) {
        memcpy(to + d, from + d, BLOCK * sizeof(*to));
        __asm__ volatile("" ::: "memory");
    }
    for (; d < width; d++) {
        to[d] = from[d];
        __asm__ volatile("" ::: "memory");
    }
}

/* Rows [first, end) of member k. They are copied as 32-bit words, for either kind. Rows that
 * do not exist become NaN or -1. */
CPU_CLONES static void gather_rows(const void *args, const struct places *p, size_t k, size_t first,
                                   size_t end)
{
    const struct gather_args *a = args;
    const uint32_t *src = (const uint32_t *)tensor_i32(a->src, k);
    uint32_t *dst = (uint32_t *)tensor_i32(a->dst, k);
    uint32_t missing = a->src.buf->kind == BUF_F32 ? UINT32_C(0x7fc00000) : UINT32_MAX;
    struct cursor c = cursor_at(p, k, first);
    for (size_t r = first; r < end; r++) {
        int64_t from = next_row(&c);
        if (from >= 0)
            copy_row(dst + r * p->width, src + (size_t)from * p->width, p->width);
        for (size_t d = 0; from < 0 && d < p->width; d++)
            dst[r * p->width + d] = missing;
    }
}

as_status cpu_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    (void)err;
    const struct places p = {a->index, a->at,    a->members, a->rows,
                             a->batch, a->width, a->at_rows, a->index_len};
    if (a->width > 0) /* rows of width 0 need no buffer */
        split_rows(be, &p, a, gather_rows);
    return AS_OK;
}

/* ---- bytes ---- */

CPU_INLINE void scale_row(float *restrict to, const unsigned char *restrict from,
                          const float *restrict mean, const float *restrict scale, size_t width)
{
    for (size_t d = 0; d < width; d++)
        to[d] = ((float)from[d] - mean[d]) / scale[d];
}

CPU_CLONES static void gather_bytes_rows(const void *args, const struct places *p, size_t k,
                                         size_t first, size_t end)
{
    const struct gather_bytes_args *a = args;
    const unsigned char *src = (const unsigned char *)tensor_i32(a->src, k);
    float *dst = tensor_f32(a->dst, k);
    struct cursor c = cursor_at(p, k, first);
    for (size_t r = first; r < end; r++) {
        int64_t from = next_row(&c);
        if (from >= 0)
            scale_row(dst + r * p->width, src + (size_t)from * p->width, tensor_f32(a->mean, k),
                      tensor_f32(a->scale, k), p->width);
        for (size_t d = 0; from < 0 && d < p->width; d++)
            dst[r * p->width + d] = NAN;
    }
}

as_status cpu_gather_bytes(struct backend *be, const struct gather_bytes_args *a,
                           struct as_err *err)
{
    (void)err;
    const struct places p = {a->index, a->at,    a->members, a->rows,
                             a->batch, a->width, a->at_rows, a->index_len};
    if (a->width > 0)
        split_rows(be, &p, a, gather_bytes_rows);
    return AS_OK;
}

as_status cpu_columns(struct backend *be, const struct columns_args *a, struct as_err *err)
{
    (void)be;
    (void)err;
    for (size_t k = 0; k < a->members; k++)
        for (size_t r = 0; r < a->rows; r++)
            memcpy(tensor_f32(a->dst, k) + r * a->dst_width + a->dst_at,
                   tensor_f32(a->src, k) + r * a->src_width + a->src_at, a->width * sizeof(float));
    return AS_OK;
}
