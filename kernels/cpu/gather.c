#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/clones.h"

/* Words that make one tile. */
#define TILE_WORDS 16384

struct rows {
    const struct gather_args *a;
    uint32_t missing; /* fills a row with a bad index or a place outside it */
    size_t per_tile;  /* rows of one tile; or members, where a member has fewer */
    size_t tiles;     /* of one member; 0: per_tile members make a tile */
};

#define BLOCK 16 /* words of one vector */

/* Inline: a call of memcpy for each row takes as long as the rows of a small table. The barrier
 * keeps gcc from putting one in the loop's place. */
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

/* Rows [first, end) of member k. They are moved as 32-bit words, whatever their kind. */
CPU_CLONES static void gather_rows(const struct gather_args *a, size_t k, size_t first, size_t end,
                                   uint32_t missing)
{
    const uint32_t *src = (const uint32_t *)tensor_i32(a->src, k);
    const int32_t *index = tensor_i32(a->index, k);
    int64_t at = 0, len = (int64_t)a->batch;
    if (a->at.buf != NULL) {
        at = (int64_t)*tensor_i32(a->at, k) * (int64_t)a->at_rows;
        len = (int64_t)a->index_len;
    }
    at += (int64_t)first;
    for (size_t r = first; r < end; r++, at++) {
        uint32_t *to = (uint32_t *)tensor_i32(a->dst, k) + r * a->width;
        int32_t from = at >= 0 && at < len ? index[at] : -1;
        if (from >= 0 && (size_t)from < a->rows) {
            copy_row(to, src + (size_t)from * a->width, a->width);
            continue;
        }
        for (size_t d = 0; d < a->width; d++)
            to[d] = missing;
    }
}

static void gather_tile(void *arg, size_t i)
{
    const struct rows *s = arg;
    const struct gather_args *a = s->a;
    if (s->tiles > 0) {
        size_t first = i % s->tiles * s->per_tile, end = first + s->per_tile;
        gather_rows(a, i / s->tiles, first, end < a->batch ? end : a->batch, s->missing);
        return;
    }
    size_t end = (i + 1) * s->per_tile < a->members ? (i + 1) * s->per_tile : a->members;
    for (size_t k = i * s->per_tile; k < end; k++)
        gather_rows(a, k, 0, a->batch, s->missing);
}

as_status cpu_gather(struct backend *be, const struct gather_args *a, struct as_err *err)
{
    (void)err;
    const float not_a_number = NAN;
    uint32_t missing = UINT32_MAX; /* -1 */
    if (a->width == 0)
        return AS_OK; /* rows of nothing, which need no buffer */
    if (a->src.buf->kind == BUF_F32)
        memcpy(&missing, &not_a_number, sizeof(missing));
    if (a->members == 1 && a->batch * a->width < TILE_WORDS) { /* the common small case */
        gather_rows(a, 0, 0, a->batch, missing);
        return AS_OK;
    }
    struct rows s = {a, missing, TILE_WORDS / (a->width + 1) + 1, 0};
    if (a->batch > s.per_tile)
        s.tiles = (a->batch + s.per_tile - 1) / s.per_tile;
    else
        s.per_tile = TILE_WORDS / (a->batch * a->width + 1) + 1;
    size_t n = s.tiles > 0 ? a->members * s.tiles : (a->members + s.per_tile - 1) / s.per_tile;
    cpu_split(be, n, gather_tile, &s);
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
