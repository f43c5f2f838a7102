/* The blocks of a list with ranks.
 *
 * Blocks keep their place in memory when others are added before them: only the list of blocks,
 * which has a copy of each first entry, is moved. So an entry is found by a search in the list and
 * one in a block, and a full block is cut by copying its upper half to a new place at the end. */
#include "search/stopping/rank_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void rank_list_done(struct rank_list *l)
{
    free(l->blocks);
    free(l->entries);
}

as_status rank_list_reserve(struct rank_list *l, struct as_err *err)
{
    size_t cap = l->cap_blocks;
    as_status st = as_reserve_one(&l->blocks, l->n_blocks, &cap, sizeof *l->blocks, err);
    if (st == AS_OK && cap > l->cap_blocks)
        st = as_grow(&l->entries, cap * RANK_BLOCK, sizeof *l->entries, err);
    if (st == AS_OK)
        l->cap_blocks = cap;
    return st;
}

/* Is a better than b? By number only if `all` of the order is asked. */
static bool is_before(const struct ranked *a, const struct ranked *b, bool all)
{
    if (a->kind != b->kind)
        return a->kind < b->kind;
    if (a->cost < b->cost || a->cost > b->cost)
        return a->cost < b->cost;
    return all && a->number < b->number;
}

static struct ranked *entries_of(const struct rank_list *l, size_t block)
{
    return l->entries + (size_t)l->blocks[block].place * RANK_BLOCK;
}

/* The last block whose first entry is before this one; the first block if none is. */
static size_t find_block(const struct rank_list *l, const struct ranked *entry, bool all)
{
    size_t low = 0, high = l->n_blocks;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (is_before(&l->blocks[middle].first, entry, all))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* How many entries of the block are before this one? */
static size_t find_entry(const struct rank_list *l, size_t block, const struct ranked *entry,
                         bool all)
{
    const struct ranked *entries = entries_of(l, block);
    size_t low = 0, high = l->blocks[block].n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before(&entries[middle], entry, all))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t rank_list_better(const struct rank_list *l, const struct ranked *entry)
{
    if (l->n_blocks == 0)
        return 0;
    size_t block = find_block(l, entry, false);
    return l->blocks[block].before + find_entry(l, block, entry, false);
}

const struct ranked *rank_list_at(const struct rank_list *l, size_t k)
{
    size_t low = 0, high = l->n_blocks;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (l->blocks[middle].before <= k)
            low = middle;
        else
            high = middle;
    }
    return &entries_of(l, low)[k - l->blocks[low].before];
}

static uint32_t count_waiting(const struct ranked *entries, size_t n)
{
    uint32_t waiting = 0;
    for (size_t i = 0; i < n; i++)
        waiting += entries[i].waits;
    return waiting;
}

/* Cut a full block into two halves. */
static void cut_block(struct rank_list *l, size_t at)
{
    struct rank_block *b = &l->blocks[at];
    size_t half = RANK_BLOCK / 2;
    memmove(b + 2, b + 1, (l->n_blocks - at - 1) * sizeof *b);
    b[1] = (struct rank_block){.before = b->before + (uint32_t)half,
                               .n = b->n - (uint32_t)half,
                               .place = (uint32_t)l->n_blocks++};
    memcpy(entries_of(l, at + 1), entries_of(l, at) + half, b[1].n * sizeof *l->entries);
    b[1].first = *entries_of(l, at + 1);
    b[1].n_waiting = count_waiting(entries_of(l, at + 1), b[1].n);
    b->n = (uint32_t)half;
    b->n_waiting -= b[1].n_waiting;
    l->first_waiting += l->first_waiting > at;
}

static void skip_blocks_without_waiting(struct rank_list *l)
{
    while (l->first_waiting < l->n_blocks && l->blocks[l->first_waiting].n_waiting == 0)
        l->first_waiting++;
}

void rank_list_add(struct rank_list *l, const struct ranked *entry)
{
    if (l->n_blocks == 0) {
        l->blocks[l->n_blocks++] = (struct rank_block){.first = *entry};
        l->first_waiting = 1;
    }
    size_t at = find_block(l, entry, true);
    if (l->blocks[at].n == RANK_BLOCK) {
        cut_block(l, at);
        at += is_before(&l->blocks[at + 1].first, entry, true);
    }
    struct rank_block *b = &l->blocks[at];
    struct ranked *entries = entries_of(l, at);
    size_t i = find_entry(l, at, entry, true);
    memmove(entries + i + 1, entries + i, (b->n - i) * sizeof *entries);
    entries[i] = *entry;
    b->first = entries[0];
    b->n++;
    b->n_waiting += entry->waits;
    for (size_t k = at + 1; k < l->n_blocks; k++)
        l->blocks[k].before++;
    if (entry->waits && at < l->first_waiting)
        l->first_waiting = at;
    skip_blocks_without_waiting(l);
}

void rank_list_leave(struct rank_list *l, const struct ranked *entry)
{
    size_t block = find_block(l, entry, true), at = find_entry(l, block, entry, true);
    /* The last block whose first entry is before this one does not hold it if it is the first entry
     * of the next. */
    if (at == l->blocks[block].n) {
        block++;
        at = 0;
    }
    entries_of(l, block)[at].waits = false;
    l->blocks[block].first.waits = entries_of(l, block)[0].waits;
    l->blocks[block].n_waiting--;
    skip_blocks_without_waiting(l);
}

const struct ranked *rank_list_first_waiting(const struct rank_list *l)
{
    if (l->first_waiting >= l->n_blocks)
        return NULL;
    const struct ranked *entries = entries_of(l, l->first_waiting);
    while (!entries->waits)
        entries++;
    return entries;
}
