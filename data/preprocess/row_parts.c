#include "data/preprocess/row_parts.h"

#include <string.h>

#include "data/random_purpose.h"

void row_parts_deal(int32_t *rows, size_t n, uint64_t seed)
{
    struct rng r = draw_stream(seed, DRAW_PARTITIONS, 0);
    draw_shuffle(&r, rows, n);
}

static void order_part(const struct row_parts *p, size_t part, struct rng r, int32_t *ret)
{
    size_t rows = row_parts_first(p, part + 1) - row_parts_first(p, part);
    size_t each = row_parts_each(p);
    int32_t *work = p->work;
    for (size_t i = 0; i < rows; i++)
        work[i] = (int32_t)i;
    draw_shuffle(&r, work, rows);
    for (size_t i = 0; i < each; i++) {
        size_t step = i / p->micro * p->n + part;
        ret[step * p->micro + i % p->micro] = (int32_t)p->base[part] + work[i];
    }
}

void row_parts_order(const struct row_parts *p, uint64_t seed, int64_t epoch, int32_t *ret)
{
    memset(ret, 0, row_parts_batches(p) * p->n * p->micro * sizeof *ret);
    for (size_t part = 0; part < p->n; part++)
        if (p->base[part] >= 0)
            order_part(p, part, draw_stream(seed, DRAW_PART_ORDER, (uint64_t)epoch * p->n + part),
                       ret);
}
