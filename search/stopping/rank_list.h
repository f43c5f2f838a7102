/* Results in the order of their costs, with their ranks: blocks of sorted entries.
 *
 * The order is kind, then cost, then trial number. A list of blocks says for each how many entries
 * are before it, so that a rank is two binary searches, one of them in the list, which stays in the
 * processor's cache. A tree of the same entries would read memory at each level. Adding an entry
 * moves the others of its block, and counts up the blocks behind it: O(n / RANK_BLOCK), but in one
 * sweep over memory. */
#ifndef ASSAY_SEARCH_STOPPING_RANK_LIST_H
#define ASSAY_SEARCH_STOPPING_RANK_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define RANK_BLOCK 256 /* entries; a full block is cut in two halves */

struct ranked {
    double cost;     /* NaN only if all entries of its kind have it */
    uint64_t number; /* of the trial; in a list once */
    uint32_t row;    /* the caller's */
    uint8_t kind;    /* lower is better */
    bool waits;
};

struct rank_block {
    struct ranked first; /* a copy of its first entry */
    uint32_t before;     /* entries of the blocks before it */
    uint32_t n, n_waiting;
    uint32_t place; /* its entries are entries[place * RANK_BLOCK ..] */
};

/* Zeroed: empty. */
struct rank_list {
    struct rank_block *blocks; /* in order */
    size_t n_blocks, cap_blocks;
    struct ranked *entries;
    size_t first_waiting; /* no block before this one has a waiting entry; n_blocks: none has */
};
void rank_list_done(struct rank_list *l);

/* Make room for one more entry, so that the next rank_list_add() cannot fail. AS_E_NOMEM. */
AS_MUST_CHECK as_status rank_list_reserve(struct rank_list *l, struct as_err *err);

/* Add an entry; there is room for it. */
void rank_list_add(struct rank_list *l, const struct ranked *entry);

/* How many entries are better by kind and cost? Equal ones are not. O(log n). */
size_t rank_list_better(const struct rank_list *l, const struct ranked *entry);

/* The entry at place k of the order, k below the number of entries; a view until the next change.
 * O(log n). */
const struct ranked *rank_list_at(const struct rank_list *l, size_t k);

/* This entry, which was added, waits no longer. */
void rank_list_leave(struct rank_list *l, const struct ranked *entry);

/* The first entry in order that waits, a view until the next change; NULL: none does. O(1) blocks,
 * O(RANK_BLOCK) entries. */
const struct ranked *rank_list_first_waiting(const struct rank_list *l);

#endif
