/* Sums over logical shards whose bits do not depend on how many ranks there are.
 *
 * The shards are the leaves of one binary tree. A rank holds a run of them, which is a row of whole
 * subtrees (nodes). Each rank sums its own subtrees, and sends slice j of their values to rank j.
 * Rank j has then slice j of a set of nodes that covers the tree, sums it in the tree's order, and
 * sends the result to all. Every addition of the tree happens at exactly one place, and with the
 * same two operands wherever that is.
 *
 * Where `total` is no power of two, a node without a right child is its left child. */
#include "trial-runner/collective/exchange.h"

#include <assert.h>
#include <string.h>

#define BLOCK_BYTES 8192 /* what is summed at once: a block for each level stays in the cache */
#define LEVELS_MAX 33    /* of a tree over 2^32 shards */

struct node {
    uint32_t first; /* shard */
    uint32_t level;
    const char *value;
};

struct tree {
    const struct reduction *reduce;
    uint32_t total;
    struct node *nodes; /* in order of their shards; they cover the tree, or a part of it */
    size_t n_nodes;
    char *blocks; /* one for each level */
};

static uint32_t levels_of(uint32_t total)
{
    uint32_t level = 0;
    while ((UINT64_C(1) << level) < total)
        level++;
    return level;
}

static uint32_t end_of(const struct tree *t, uint32_t first, uint32_t level)
{
    uint64_t end = first + (UINT64_C(1) << level);
    return end < t->total ? (uint32_t)end : t->total;
}

/* The level of the largest node that begins at `first` and ends at `end` or before. */
static uint32_t largest_at(const struct tree *t, uint32_t first, uint32_t end)
{
    uint32_t level = 0, top = levels_of(t->total);
    while (level < top && first % (UINT64_C(2) << level) == 0 && end_of(t, first, level + 1) <= end)
        level++;
    return level;
}

/* Appends the nodes of a run; their values follow each other from `value` in steps of `stride`. */
static size_t add_run(struct tree *t, struct shard_run run, const char *value, size_t stride)
{
    size_t before = t->n_nodes;
    uint32_t end = run.first + run.count;
    for (uint32_t first = run.first; first < end;) {
        uint32_t level = largest_at(t, first, end);
        t->nodes[t->n_nodes] = (struct node){first, level, value + (t->n_nodes - before) * stride};
        t->n_nodes++;
        first = end_of(t, first, level);
    }
    return t->n_nodes - before;
}

static size_t count_run(const struct tree *t, struct shard_run run)
{
    size_t n = 0;
    uint32_t end = run.first + run.count;
    for (uint32_t first = run.first; first < end; n++)
        first = end_of(t, first, largest_at(t, first, end));
    return n;
}

static const struct node *find(const struct tree *t, uint32_t first, uint32_t level)
{
    size_t low = 0, high = t->n_nodes;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (t->nodes[mid].first < first)
            low = mid + 1;
        else
            high = mid;
    }
    const struct node *n = &t->nodes[low];
    return low < t->n_nodes && n->first == first && n->level == level ? n : NULL;
}

/* The value of a node for `n` items from byte `at`: a view of a known node, or `into`. A left child
 * is evaluated into its parent's place, a right child into the block of its level, which nothing
 * else uses meanwhile. The recursion is as deep as the tree, at most LEVELS_MAX. */
static const char *evaluate(const struct tree *t, uint32_t first, uint32_t level, size_t at,
                            size_t n, char *into)
{
    const struct node *known = find(t, first, level);
    if (known)
        return known->value + at;
    assert(level > 0); /* the known nodes cover the tree */
    uint32_t half = level - 1;
    uint64_t middle = first + (UINT64_C(1) << half);
    const char *left = evaluate(t, first, half, at, n, into);
    if (middle >= t->total)
        return left;
    char *below = t->blocks + (size_t)half * BLOCK_BYTES;
    const char *right = evaluate(t, (uint32_t)middle, half, at, n, below);
    t->reduce->combine(into, left, right, n);
    return into;
}

/* to = the value of the node, n items. */
static void evaluate_all(const struct tree *t, uint32_t first, uint32_t level, char *to, size_t n)
{
    size_t item = t->reduce->item_bytes, most = BLOCK_BYTES / item;
    for (size_t done = 0; done < n;) {
        size_t now = n - done < most ? n - done : most;
        char *into = to + done * item;
        const char *value = evaluate(t, first, level, done * item, now, into);
        if (value != into)
            memcpy(into, value, now * item);
        done += now;
    }
}

static as_status check_runs(const struct shard_run *runs, int32_t size, uint32_t total,
                            struct as_err *err)
{
    uint32_t next = 0;
    for (int32_t r = 0; r < size; r++) {
        if (runs[r].first != next || runs[r].count > total - next)
            return as_fail(err, AS_E_INVAL,
                           "rank %d holds %u shards from %u; expected from %u, "
                           "and %u in all",
                           (int)r, (unsigned)runs[r].count, (unsigned)runs[r].first, (unsigned)next,
                           (unsigned)total);
        next += runs[r].count;
    }
    if (next != total || total == 0)
        return as_fail(err, AS_E_INVAL, "the ranks hold %u shards of %u", (unsigned)next,
                       (unsigned)total);
    return AS_OK;
}

struct summing {
    struct mesh *mesh;
    struct coll_id id;
    const struct reduction *reduce;
    const struct shard_run *runs;
    int32_t rank, size;
    size_t n, item;
    struct tree own; /* this rank's shards, then its subtrees */
    struct tree all; /* subtrees of all ranks, for this rank's slice */
    char *own_values, *slice_values;
    char *out;
};

static size_t slice_items(const struct summing *s, int32_t rank, size_t *ret_first)
{
    size_t end;
    coll_slice(s->n, s->size, rank, ret_first, &end);
    return end - *ret_first;
}

/* Sums this rank's shards to the values of its subtrees. A subtree of one shard is the shard. */
static as_status sum_own(struct summing *s, const void *const *partials, struct as_err *err)
{
    struct shard_run run = s->runs[s->rank];
    struct tree leaves = s->own;
    AS_AUTO(as_freep) struct node *nodes = as_calloc(run.count, sizeof *nodes);
    if (!nodes)
        return as_fail_nomem(err);
    for (uint32_t i = 0; i < run.count; i++)
        nodes[i] = (struct node){run.first + i, 0, partials[i]};
    leaves.nodes = nodes;
    leaves.n_nodes = run.count;
    for (size_t i = 0; i < s->own.n_nodes; i++) {
        struct node *top = &s->own.nodes[i];
        if (find(&leaves, top->first, top->level))
            top->value = partials[top->first - run.first];
        else
            evaluate_all(&leaves, top->first, top->level, s->own_values + i * s->n * s->item, s->n);
    }
    return AS_OK;
}

/* Slice j of every own subtree goes to rank j; slice `rank` of every other rank's comes here. */
static as_status exchange_slices(struct summing *s, struct as_err *err)
{
    size_t first, mine = slice_items(s, s->rank, &first), max = 0;
    for (int32_t r = 0; r < s->size; r++)
        max += count_run(&s->all, s->runs[r]);
    max += s->own.n_nodes * (size_t)s->size;
    AS_AUTO(as_freep) struct transfer *t = as_calloc(max, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    struct exchange x;
    exchange_init(&x, s->mesh, s->id, t, max);
    size_t own_first = first, at = 0;
    for (int32_t r = 0; r < s->size; r++) {
        size_t before = s->all.n_nodes;
        at = before * mine * s->item;
        size_t count = add_run(&s->all, s->runs[r], s->slice_values + at, mine * s->item);
        size_t theirs = slice_items(s, r, &first);
        for (size_t i = 0; r == s->rank && i < count; i++)
            s->all.nodes[before + i].value = s->own.nodes[i].value + own_first * s->item;
        for (size_t i = 0; r != s->rank && i < count; i++)
            exchange_receive(&x, r, s->slice_values + at + i * mine * s->item, mine * s->item, NULL,
                             NULL);
        for (size_t i = 0; r != s->rank && i < s->own.n_nodes; i++)
            exchange_send(&x, r, s->own.nodes[i].value + first * s->item, theirs * s->item, NULL);
    }
    return exchange_wait(&x, err);
}

static as_status gather_slices(struct summing *s, struct as_err *err)
{
    size_t first, mine, own_first;
    AS_AUTO(as_freep) struct transfer *t = as_calloc(2 * (size_t)s->size, sizeof *t);
    if (!t)
        return as_fail_nomem(err);
    struct exchange x;
    exchange_init(&x, s->mesh, s->id, t, 2 * (size_t)s->size);
    mine = slice_items(s, s->rank, &own_first);
    for (int32_t r = 0; r < s->size; r++) {
        size_t theirs = slice_items(s, r, &first);
        if (r == s->rank)
            continue;
        exchange_send(&x, r, s->out + own_first * s->item, mine * s->item, NULL);
        exchange_receive(&x, r, s->out + first * s->item, theirs * s->item, NULL, NULL);
    }
    return exchange_wait(&x, err);
}

static as_status allocate(struct summing *s, uint32_t total, struct as_err *err)
{
    size_t first, mine = slice_items(s, s->rank, &first), n_all = 0;
    s->own.reduce = s->all.reduce = s->reduce;
    s->own.total = s->all.total = total;
    for (int32_t r = 0; r < s->size; r++)
        n_all += count_run(&s->all, s->runs[r]);
    size_t n_own = count_run(&s->own, s->runs[s->rank]);
    s->own.nodes = as_calloc(n_own, sizeof *s->own.nodes);
    s->all.nodes = as_calloc(n_all, sizeof *s->all.nodes);
    s->own.blocks = s->all.blocks = as_calloc(LEVELS_MAX, BLOCK_BYTES);
    s->own_values = as_calloc(n_own * s->n, s->item);
    s->slice_values = as_calloc(n_all * mine, s->item);
    if (!s->own.nodes || !s->all.nodes || !s->all.blocks || !s->own_values || !s->slice_values)
        return as_fail_nomem(err);
    add_run(&s->own, s->runs[s->rank], s->own_values, s->n * s->item);
    return AS_OK;
}

static as_status run(struct summing *s, uint32_t total, const void *const *partials,
                     struct as_err *err)
{
    as_status st;
    size_t first;
    if ((st = allocate(s, total, err)) < 0 || (st = sum_own(s, partials, err)) < 0 ||
        (st = exchange_slices(s, err)) < 0)
        return st;
    size_t mine = slice_items(s, s->rank, &first);
    evaluate_all(&s->all, 0, levels_of(total), s->out + first * s->item, mine);
    return gather_slices(s, err);
}

as_status tree_sum(struct mesh *m, struct coll_id id, const struct reduction *reduce,
                   const struct shard_run *runs, uint32_t total, const void *const *partials,
                   void *out, size_t n, struct as_err *err)
{
    struct summing s = {.mesh = m,
                        .id = id,
                        .reduce = reduce,
                        .runs = runs,
                        .rank = mesh_rank(m),
                        .size = mesh_size(m),
                        .n = n,
                        .item = reduce->item_bytes,
                        .out = out};
    as_status st = check_runs(runs, s.size, total, err);
    if (st == AS_OK)
        st = run(&s, total, partials, err);
    free(s.own.nodes);
    free(s.all.nodes);
    free(s.all.blocks);
    free(s.own_values);
    free(s.slice_values);
    return st;
}
