/* Sums over logical shards whose bits do not depend on how many ranks there are.
 *
 * The shards are the leaves of one binary tree. A rank holds a run of them, which is a row of whole
 * subtrees (nodes). Each rank sums its own subtrees, and sends slice j of their values to rank j.
 * Rank j has then slice j of a set of nodes that covers the tree, sums it in the tree's order, and
 * sends the result to all. Every addition of the tree happens at exactly one place, and with the
 * same two operands wherever that is.
 *
 * The sum goes by segments of the values, each in three stages: exchange of the subtrees' slices,
 * sum of the own slice, gathering of the results. Segments overlap: while one is exchanged, the one
 * before is summed and gathered. So what was received is still in the cache when it is added, and
 * memory is needed for two segments only, whatever the size of the whole.
 *
 * Where `total` is no power of two, a node without a right child is its left child. */
#include "trial-runner/collective/exchange.h"
#include "trial-runner/collective/frame.h"

#include <assert.h>
#include <string.h>

#define BLOCK_BYTES 8192 /* what is summed at once: a block for each level stays in the cache */
#define LEVELS_MAX 33    /* of a tree over 2^32 shards */
#define SLICE_BYTES ((size_t)2 * FRAME_PAYLOAD_MAX) /* of a segment, for each rank */

struct node {
    uint32_t first; /* shard */
    uint32_t level;
    int32_t rank; /* which holds it */
    const char *value;
};

struct tree {
    const struct reduction *reduce;
    uint32_t total;
    struct node *nodes; /* in order of their shards; they cover the tree, or a part of it */
    size_t n_nodes;
    char *blocks; /* one for each level */
};

/* Appends the nodes of a rank's run, without values. */
static void add_run(struct tree *t, struct shard_run run, int32_t rank)
{
    uint32_t end = run.first + run.count;
    for (uint32_t first = run.first; first < end;) {
        uint32_t level = shard_tree_largest(t->total, first, end);
        t->nodes[t->n_nodes++] = (struct node){.first = first, .level = level, .rank = rank};
        first = shard_tree_end(t->total, first, level);
    }
}

static size_t count_run(uint32_t total, struct shard_run run)
{
    size_t n = 0;
    uint32_t end = run.first + run.count;
    for (uint32_t first = run.first; first < end; n++)
        first = shard_tree_end(total, first, shard_tree_largest(total, first, end));
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

/* to = the value of the node for n items from byte `at`. */
static void evaluate_all(const struct tree *t, uint32_t first, uint32_t level, size_t at, char *to,
                         size_t n)
{
    size_t item = t->reduce->item_bytes, most = BLOCK_BYTES / item;
    for (size_t done = 0; done < n;) {
        size_t now = n - done < most ? n - done : most;
        char *into = to + done * item;
        const char *value = evaluate(t, first, level, at + done * item, now, into);
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

/* A segment on its way. */
struct segment {
    size_t first, items;
    struct exchange slices, results;
    char *own_values;   /* of the own subtrees that are no single shard */
    char *slice_values; /* of the other ranks' subtrees, this rank's slice */
    struct tree all;    /* all ranks' subtrees, this rank's slice */
};

struct summing {
    const struct reduction *reduce;
    const struct shard_run *runs;
    int32_t rank, size;
    size_t n, item, segment_items, n_segments;
    struct tree leaves; /* this rank's shards, whole; or what it has merged them to */
    struct tree own;    /* its subtrees, of the segment that was begun last */
    struct segment segments[2];
    char *out;
};

static struct segment *segment_of(struct summing *s, size_t k)
{
    return &s->segments[k % 2];
}

/* Slice `rank` of a segment, in items of the segment. */
static size_t slice_items(const struct summing *s, const struct segment *g, int32_t rank,
                          size_t *ret_first)
{
    size_t end;
    coll_slice(g->items, s->size, rank, ret_first, &end);
    return end - *ret_first;
}

/* Sums the segment of this rank's shards to that of its subtrees. A subtree of one shard is the
 * shard, and one that was merged before is what it was merged to. */
static void sum_own(struct summing *s, struct segment *g)
{
    size_t at = g->first * s->item;
    for (size_t i = 0; i < s->own.n_nodes; i++) {
        struct node *top = &s->own.nodes[i];
        const struct node *leaf = find(&s->leaves, top->first, top->level);
        char *sum = g->own_values + i * s->segment_items * s->item;
        if (!leaf)
            evaluate_all(&s->leaves, top->first, top->level, at, sum, g->items);
        top->value = leaf ? leaf->value + at : sum;
    }
}

/* Slice j of every own subtree goes to rank j; slice `rank` of every other rank's comes here. */
static void begin_segment(struct summing *s, size_t k)
{
    struct segment *g = segment_of(s, k);
    g->first = k * s->segment_items;
    g->items = s->n - g->first < s->segment_items ? s->n - g->first : s->segment_items;
    sum_own(s, g);
    size_t first, bytes = slice_items(s, g, s->rank, &first) * s->item;
    char *to = g->slice_values;
    const struct node *own = s->own.nodes;
    for (size_t i = 0; i < g->all.n_nodes; i++) {
        struct node *node = &g->all.nodes[i];
        if (node->rank == s->rank) {
            node->value = (own++)->value + first * s->item;
            continue;
        }
        node->value = to;
        exchange_receive(&g->slices, node->rank, to, bytes, NULL, NULL);
        to += bytes;
    }
    for (int32_t r = 0; r < s->size; r++) {
        size_t theirs = slice_items(s, g, r, &first) * s->item;
        for (size_t i = 0; r != s->rank && i < s->own.n_nodes; i++)
            exchange_send(&g->slices, r, s->own.nodes[i].value + first * s->item, theirs, NULL);
    }
}

/* Sums this rank's slice, sends it to all, and takes theirs. */
static as_status continue_segment(struct summing *s, size_t k, struct as_err *err)
{
    struct segment *g = segment_of(s, k);
    as_status st = exchange_wait(&g->slices, err);
    if (st < 0)
        return st;
    char *out = s->out + g->first * s->item;
    size_t own_first, first, mine = slice_items(s, g, s->rank, &own_first);
    evaluate_all(&g->all, 0, shard_tree_levels(g->all.total), 0, out + own_first * s->item, mine);
    for (int32_t r = 0; r < s->size; r++) {
        size_t theirs = slice_items(s, g, r, &first);
        if (r == s->rank)
            continue;
        exchange_send(&g->results, r, out + own_first * s->item, mine * s->item, NULL);
        exchange_receive(&g->results, r, out + first * s->item, theirs * s->item, NULL, NULL);
    }
    return AS_OK;
}

/* All ranks post in this order, so messages between two of them match. */
static as_status run_segments(struct summing *s, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t k = 0; st == AS_OK && k < s->n_segments + 2; k++) {
        if (k < s->n_segments)
            begin_segment(s, k);
        if (k >= 2)
            st = exchange_wait(&segment_of(s, k - 2)->results, err);
        if (st == AS_OK && k >= 1 && k - 1 < s->n_segments)
            st = continue_segment(s, k - 1, err);
    }
    return st;
}

/* --- memory --- */

/* Nodes of all ranks' runs; they cover the tree. */
static void add_all(struct summing *s, struct tree *t)
{
    for (int32_t r = 0; r < s->size; r++)
        add_run(t, s->runs[r], r);
}

static as_status take_nodes(struct summing *s, struct workspace *w, const struct tree_terms *terms,
                            size_t n_all, struct as_err *err)
{
    struct shard_run run = s->runs[s->rank];
    uint32_t total = terms->total;
    size_t n_own = count_run(total, run), n_leaves = terms->merged ? n_own : run.count;
    struct node *own = workspace_get(w, WORKSPACE_OWN, n_own, sizeof *own);
    struct node *leaves = workspace_get(w, WORKSPACE_LEAVES, n_leaves, sizeof *leaves);
    struct node *all = workspace_get(w, WORKSPACE_ALL, 2 * n_all, sizeof *all);
    char *blocks = workspace_get(w, WORKSPACE_BLOCKS, LEVELS_MAX, BLOCK_BYTES);
    if (!own || !leaves || !all || !blocks)
        return as_fail_nomem(err);
    struct tree empty = {.reduce = s->reduce, .total = total, .blocks = blocks};
    s->leaves = s->own = s->segments[0].all = s->segments[1].all = empty;
    s->own.nodes = own;
    add_run(&s->own, run, s->rank);
    s->leaves.nodes = leaves;
    s->leaves.n_nodes = n_leaves;
    for (uint32_t i = 0; i < n_leaves; i++) {
        leaves[i] = terms->merged ? own[i] : (struct node){.first = run.first + i, .rank = s->rank};
        leaves[i].value = terms->values[i];
    }
    for (size_t i = 0; i < 2; i++) {
        s->segments[i].all.nodes = all + i * n_all;
        add_all(s, &s->segments[i].all);
    }
    return AS_OK;
}

static as_status take_buffers(struct summing *s, struct mesh *m, struct coll_id id, size_t n_all,
                              struct as_err *err)
{
    struct workspace *w = mesh_workspace(m);
    size_t n_own = s->own.n_nodes, others = (size_t)s->size - 1;
    size_t slice = (s->segment_items + others) / (size_t)s->size; /* the longest */
    size_t n_slices = n_all - n_own + n_own * others, n_results = 2 * others;
    struct transfer *t =
        workspace_get(w, WORKSPACE_TRANSFERS, 2 * (n_slices + n_results), sizeof *t);
    char *own = workspace_get(w, WORKSPACE_OWN_VALUES, 2 * n_own * s->segment_items, s->item);
    char *slices = workspace_get(w, WORKSPACE_SLICE_VALUES, 2 * (n_all - n_own) * slice, s->item);
    if (!t || !own || !slices)
        return as_fail_nomem(err);
    for (size_t i = 0; i < 2; i++) {
        struct segment *g = &s->segments[i];
        g->own_values = own + i * n_own * s->segment_items * s->item;
        g->slice_values = slices + i * (n_all - n_own) * slice * s->item;
        exchange_init(&g->slices, m, id, t, n_slices);
        exchange_init(&g->results, m, id, t + n_slices, n_results);
        g->results.streams = s->n * s->item >= EXCHANGE_STREAMS_BYTES;
        t += n_slices + n_results;
    }
    return AS_OK;
}

as_status tree_sum(struct mesh *m, struct coll_id id, const struct reduction *reduce,
                   const struct tree_terms *terms, void *out, size_t n, struct as_err *err)
{
    uint32_t total = terms->total;
    const struct shard_run *runs = terms->runs;
    struct summing s = {.reduce = reduce,
                        .runs = runs,
                        .rank = mesh_rank(m),
                        .size = mesh_size(m),
                        .n = n,
                        .item = reduce->item_bytes,
                        .out = out};
    size_t n_all = 0, most = SLICE_BYTES / s.item * (size_t)s.size;
    as_status st = check_runs(runs, s.size, total, err);
    if (st < 0)
        return st;
    s.segment_items = n < most ? n : most;
    s.n_segments = n == 0 ? 0 : (n + most - 1) / most;
    for (int32_t r = 0; r < s.size; r++)
        n_all += count_run(total, runs[r]);
    if ((st = take_nodes(&s, mesh_workspace(m), terms, n_all, err)) < 0 ||
        (st = take_buffers(&s, m, id, n_all, err)) < 0)
        return st;
    return run_segments(&s, err);
}
