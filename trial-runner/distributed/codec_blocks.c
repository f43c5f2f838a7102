/* How the values of a list of tensors are cut into blocks, and which blocks are a slice. The rule
 * looks at the tensors alone and never at ranks, so residuals and checkpoints fit any number of
 * them (decision 8008). Small tensors share a block, because the block's own numbers would weigh
 * more than their values; the last block of a tensor takes the rest, so that none is small. Slices
 * are equal in bytes up to a block. */
#include "trial-runner/distributed/gradient_codec_priv.h"

#include <string.h>

void blocks_done(struct blocks *b)
{
    free(b->of);
    *b = (struct blocks){0};
}

struct planner {
    const struct block_rule *rule;
    struct blocks *b;
    size_t cap;
    bool open; /* the last block holds small tensors, and has room for more */
};

static as_status add_block(struct planner *p, size_t n, struct as_err *err)
{
    struct blocks *b = p->b;
    as_status st = as_reserve_one(&b->of, b->n, &p->cap, sizeof *b->of, err);
    if (st < 0)
        return st;
    b->of[b->n++] = (struct block){.first = b->values, .n = n};
    b->values += n;
    return AS_OK;
}

static as_status add_small(struct planner *p, size_t n, struct as_err *err)
{
    struct blocks *b = p->b;
    as_status st = AS_OK;
    if (p->open) {
        b->of[b->n - 1].n += n;
        b->values += n;
    } else {
        st = add_block(p, n, err);
    }
    if (st == AS_OK)
        p->open = b->of[b->n - 1].n < p->rule->at_least;
    return st;
}

/* Equal blocks; the last one takes what is left over, so that none is small. */
static as_status add_large(struct planner *p, size_t n, size_t cols, struct as_err *err)
{
    size_t unit = p->rule->at_least;
    as_status st = AS_OK;
    p->open = false;
    if (p->rule->by_rows && cols <= BLOCK_ROW_MAX)
        unit = (unit + cols - 1) / cols * cols;
    while (st == AS_OK && n >= unit + p->rule->at_least) {
        st = add_block(p, unit, err);
        n -= unit;
    }
    return st == AS_OK ? add_block(p, n, err) : st;
}

static as_status add_tensor(struct planner *p, const struct codec_tensor *t, struct as_err *err)
{
    size_t n, total;
    if (__builtin_mul_overflow(t->rows, t->cols, &n) ||
        __builtin_add_overflow(p->b->values, n, &total) || total > SIZE_MAX / 64)
        return as_fail(err, AS_E_TOO_LARGE, "a tensor of %zu x %zu values is too large", t->rows,
                       t->cols);
    if (n == 0)
        return AS_OK;
    if (p->rule->merges && n < p->rule->at_least)
        return add_small(p, n, err);
    return add_large(p, n, t->cols, err);
}

as_status blocks_plan(const struct codec_tensor *tensors, size_t n_tensors,
                      const struct block_rule *rule, struct blocks *ret, struct as_err *err)
{
    AS_AUTO(blocks_done) struct blocks b = {0};
    struct planner p = {.rule = rule, .b = &b};
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && i < n_tensors; i++)
        st = add_tensor(&p, &tensors[i], err);
    if (st == AS_OK)
        st = add_block(&p, 0, err);
    if (st < 0)
        return st;
    b.n--; /* the last one is the end */
    for (size_t i = 0; i < b.n; i++)
        if (b.of[i].n > b.largest)
            b.largest = b.of[i].n;
    *ret = b;
    b = (struct blocks){0};
    return AS_OK;
}

/* The first block whose bytes begin at `at` or behind it. */
static size_t block_from(const struct blocks *b, size_t at)
{
    size_t low = 0, high = b->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (b->of[mid].at < at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void blocks_slice(const struct blocks *b, struct codec_slice slice, size_t *ret_first,
                  size_t *ret_end)
{
    size_t bytes = b->of[b->n].at, share = bytes / slice.count, rest = bytes % slice.count;
    size_t end = slice.index + (size_t)1;
    *ret_first = block_from(b, share * slice.index + rest * slice.index / slice.count);
    *ret_end = block_from(b, share * end + rest * end / slice.count);
}
