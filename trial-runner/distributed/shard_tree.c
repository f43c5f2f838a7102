/* A node is evaluated from known nodes below it, in blocks of BLOCK numbers with one block of
 * scratch for each level, so a sum of any length needs memory for the depth of the tree alone. Each
 * addition is that of the tree with the left child first; what is not known counts as absent and
 * not as 0, so the bits are those of the tree over what is there. */
#include "trial-runner/distributed/shard_tree.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

#define LEVELS 33
#define BLOCK 1024 /* numbers that are summed at once */

struct tree {
    uint32_t total;
    const struct shard_node *known;
    size_t n_known;
    float *blocks; /* [LEVELS][BLOCK] */
};

static uint64_t end_of(uint32_t total, uint32_t first, uint32_t level)
{
    uint64_t end = first + (UINT64_C(1) << level);
    return end < total ? end : total;
}

struct shard_node shard_tree_root(uint32_t total)
{
    uint32_t level = 0;
    while ((UINT64_C(1) << level) < total)
        level++;
    return (struct shard_node){.level = level};
}

size_t shard_tree_cover(uint32_t total, struct shard_run run, struct shard_node *ret)
{
    uint32_t end = run.first + run.count, top = shard_tree_root(total).level;
    size_t n = 0;
    for (uint32_t first = run.first; first < end;) {
        uint32_t level = 0;
        while (level < top && first % (UINT64_C(2) << level) == 0 &&
               end_of(total, first, level + 1) <= end)
            level++;
        ret[n++] = (struct shard_node){.first = first, .level = level};
        first = (uint32_t)end_of(total, first, level);
    }
    return n;
}

/* The known node, or NULL; *ret_any: some known node lies in it. */
static const struct shard_node *find(const struct tree *t, uint32_t first, uint32_t level,
                                     bool *ret_any)
{
    uint64_t end = end_of(t->total, first, level);
    size_t low = 0, high = t->n_known;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->known[mid].first < first)
            low = mid + 1;
        else
            high = mid;
    }
    *ret_any = low < t->n_known && t->known[low].first < end;
    const struct shard_node *n = &t->known[low];
    return *ret_any && n->first == first && n->level == level ? n : NULL;
}

/* Numbers `at` to at + n of a node: a view of a known node, or `into`; NULL if nothing of it is
 * known. As deep as the tree. */
static const float *evaluate(const struct tree *t, uint32_t first, uint32_t level, size_t at,
                             size_t n, float *into)
{
    bool any;
    const struct shard_node *known = find(t, first, level, &any);
    if (known)
        return known->value + at;
    if (!any || level == 0)
        return NULL;
    uint32_t half = level - 1;
    uint64_t middle = first + (UINT64_C(1) << half);
    const float *left = evaluate(t, first, half, at, n, into);
    if (middle >= t->total)
        return left;
    float *below = t->blocks + (size_t)half * BLOCK;
    const float *right = evaluate(t, (uint32_t)middle, half, at, n, below);
    if (!left || !right) { /* the caller keeps `into`, or uses what it gets before it sums again */
        if (right && right == below)
            memcpy(into, right, n * sizeof *into);
        return left ? left : right == below ? into : right;
    }
    for (size_t i = 0; i < n; i++)
        into[i] = left[i] + right[i];
    return into;
}

as_status shard_tree_sum(uint32_t total, struct shard_node of, const struct shard_node *known,
                         size_t n_known, float *to, size_t n, struct as_err *err)
{
    struct tree t = {.total = total, .known = known, .n_known = n_known};
    AS_AUTO(as_freep) float *blocks = as_calloc(LEVELS, BLOCK * sizeof *blocks);
    if (!blocks)
        return as_fail_nomem(err);
    t.blocks = blocks;
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t now = n - at < BLOCK ? n - at : BLOCK;
        const float *value = evaluate(&t, of.first, of.level, at, now, to + at);
        if (!value)
            memset(to + at, 0, now * sizeof *to);
        else if (value != to + at)
            memcpy(to + at, value, now * sizeof *to);
    }
    return AS_OK;
}
