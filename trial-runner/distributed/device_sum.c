/* The tree of coll_tree_sum() over buffers of a device. Additions are the back end's own operation;
 * they are called in the order of the tree, one level's block for each right child, as
 * collective/tree.c does on the host. Nothing is cut into segments: a device has the memory, and is
 * slow in small pieces. */
#include "trial-runner/distributed/device_sum.h"

#include <stdlib.h>

#include "kernels/ops.h"

#define LEVELS_MAX 33

struct place { /* numbers of a buffer, from element `at` */
    struct buf *buf;
    size_t at;
};

struct node {
    uint32_t first, level;
    int32_t rank;
    struct place value;
};

struct nodes { /* in order of their shards */
    struct node *node;
    size_t n;
};

struct device_sum {
    struct backend *be;
    struct peers *peers;
    int32_t rank, size;
    uint32_t total;
    size_t n;
    struct shard_run run;
    struct nodes leaves, own, all; /* this rank's shards; its subtrees; those of all ranks */
    struct buf *level[LEVELS_MAX]; /* [n]: right children; made where a subtree needs them */
    struct buf *own_values;        /* [own.n, n] */
    struct buf *slice_values;      /* [all.n - own.n, this rank's slice] */
    struct peers_message *messages;
};

void device_sum_free(struct device_sum *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < LEVELS_MAX; i++)
        buf_free(s->level[i]);
    buf_free(s->own_values);
    buf_free(s->slice_values);
    free(s->leaves.node);
    free(s->own.node);
    free(s->all.node);
    free(s->messages);
    free(s);
}

static size_t slice_of(const struct device_sum *s, int32_t rank, size_t *ret_first)
{
    size_t end;
    coll_slice(s->n, s->size, rank, ret_first, &end);
    return end - *ret_first;
}

/* ---- nodes ---- */

static void add_run(struct nodes *to, uint32_t total, struct shard_run run, int32_t rank)
{
    uint32_t end = run.first + run.count;
    for (uint32_t first = run.first; first < end;) {
        uint32_t level = shard_tree_largest(total, first, end);
        to->node[to->n++] = (struct node){.first = first, .level = level, .rank = rank};
        first = shard_tree_end(total, first, level);
    }
}

static const struct node *find(const struct nodes *in, uint32_t first, uint32_t level)
{
    for (size_t i = 0; i < in->n; i++) /* few: two for each level and rank */
        if (in->node[i].first == first && in->node[i].level == level)
            return &in->node[i];
    return NULL;
}

/* *ret = the value of a node for n numbers: where it stands already, or `into`. */
static as_status evaluate(struct device_sum *s, const struct nodes *known, uint32_t first,
                          uint32_t level, size_t n, struct place into, struct place *ret,
                          struct as_err *err)
{
    const struct node *there = find(known, first, level);
    if (there) {
        *ret = there->value;
        return AS_OK;
    }
    uint32_t half = level - 1;
    uint64_t middle = first + (UINT64_C(1) << half);
    struct place left, right;
    as_status st = evaluate(s, known, first, half, n, into, &left, err);
    if (st < 0)
        return st;
    if (middle >= s->total) {
        *ret = left;
        return AS_OK;
    }
    if ((st = evaluate(s, known, (uint32_t)middle, half, n, (struct place){s->level[half], 0},
                       &right, err)) < 0)
        return st;
    struct add_args a = {.members = 1,
                         .n = n,
                         .a = tensor_at(left.buf, left.at, 0),
                         .b = tensor_at(right.buf, right.at, 0),
                         .y = tensor_at(into.buf, into.at, 0),
                         .act = ACT_NONE};
    *ret = into;
    return n > 0 ? backend_add(s->be, &a, err) : AS_OK;
}

/* ---- a sum ---- */

static as_status sum_own(struct device_sum *s, struct buf *const *partials, struct as_err *err)
{
    as_status st = AS_OK;
    for (size_t i = 0; i < s->leaves.n; i++)
        s->leaves.node[i].value = (struct place){partials[i], 0};
    for (size_t i = 0; st == AS_OK && i < s->own.n; i++) {
        struct node *top = &s->own.node[i];
        struct place into = {s->own_values, i * s->n};
        st = evaluate(s, &s->leaves, top->first, top->level, s->n, into, &top->value, err);
    }
    return st;
}

/* Both sides leave out what is empty. */
static void add_message(struct device_sum *s, size_t *n, int32_t peer, bool sends,
                        struct place place, size_t length)
{
    if (length > 0)
        s->messages[(*n)++] = (struct peers_message){
            .peer = peer, .sends = sends, .buf = place.buf, .at = place.at, .n = length};
}

static struct place behind(struct place p, size_t by)
{
    return (struct place){p.buf, p.at + by};
}

static as_status exchange_slices(struct device_sum *s, struct as_err *err)
{
    size_t first, mine = slice_of(s, s->rank, &first), n = 0, taken = 0;
    const struct node *own = s->own.node;
    for (size_t i = 0; i < s->all.n; i++) {
        struct node *node = &s->all.node[i];
        if (node->rank == s->rank) {
            node->value = behind((own++)->value, first);
            continue;
        }
        node->value = (struct place){s->slice_values, taken++ * mine};
        add_message(s, &n, node->rank, false, node->value, mine);
    }
    for (int32_t r = 0; r < s->size; r++) {
        size_t theirs = slice_of(s, r, &first);
        for (size_t i = 0; r != s->rank && i < s->own.n; i++)
            add_message(s, &n, r, true, behind(s->own.node[i].value, first), theirs);
    }
    return n > 0 ? peers_exchange(s->peers, s->messages, n, err) : AS_OK;
}

static as_status gather_slices(struct device_sum *s, struct buf *out, struct as_err *err)
{
    size_t own_first, first, mine = slice_of(s, s->rank, &own_first), n = 0;
    for (int32_t r = 0; r < s->size; r++) {
        size_t theirs = slice_of(s, r, &first);
        if (r == s->rank)
            continue;
        add_message(s, &n, r, true, (struct place){out, own_first}, mine);
        add_message(s, &n, r, false, (struct place){out, first}, theirs);
    }
    return n > 0 ? peers_exchange(s->peers, s->messages, n, err) : AS_OK;
}

as_status device_sum_run(struct device_sum *s, struct buf *const *partials, struct buf *out,
                         struct as_err *err)
{
    size_t first, mine = slice_of(s, s->rank, &first);
    struct place into = {out, first}, value;
    as_status st;
    if ((st = sum_own(s, partials, err)) < 0 || (st = exchange_slices(s, err)) < 0 ||
        (st = evaluate(s, &s->all, 0, shard_tree_levels(s->total), mine, into, &value, err)) < 0)
        return st;
    if (value.buf != into.buf && mine > 0)
        st = buf_copy(out, first, value.buf, value.at, mine, err);
    return st < 0 ? st : gather_slices(s, out, err);
}

/* ---- life ---- */

static as_status make_nodes(struct device_sum *s, const struct shard_run *runs, struct as_err *err)
{
    size_t most = 2 * LEVELS_MAX * (size_t)s->size;
    s->leaves.node = as_calloc(s->run.count, sizeof *s->leaves.node);
    s->own.node = as_calloc(2 * (size_t)LEVELS_MAX, sizeof *s->own.node);
    s->all.node = as_calloc(most, sizeof *s->all.node);
    if (!s->leaves.node || !s->own.node || !s->all.node)
        return as_fail_nomem(err);
    for (uint32_t i = 0; i < s->run.count; i++)
        s->leaves.node[s->leaves.n++] = (struct node){.first = s->run.first + i, .rank = s->rank};
    add_run(&s->own, s->total, s->run, s->rank);
    for (int32_t r = 0; r < s->size; r++)
        add_run(&s->all, s->total, runs[r], r);
    s->messages = as_calloc(s->all.n + (s->own.n + 2) * (size_t)s->size, sizeof *s->messages);
    return s->messages ? AS_OK : as_fail_nomem(err);
}

static as_status make_buffers(struct device_sum *s, struct as_err *err)
{
    size_t first, mine = slice_of(s, s->rank, &first), others = s->all.n - s->own.n;
    as_status st = AS_OK;
    for (uint32_t l = 0; st == AS_OK && l < shard_tree_levels(s->total); l++)
        st = buf_create(s->be, BUF_F32, s->n, &s->level[l], err);
    if (st == AS_OK && s->own.n > 0)
        st = buf_create(s->be, BUF_F32, s->own.n * s->n, &s->own_values, err);
    if (st == AS_OK && others * mine > 0)
        st = buf_create(s->be, BUF_F32, others * mine, &s->slice_values, err);
    return st;
}

as_status device_sum_create(struct backend *be, struct peers *peers, int32_t rank, int32_t size,
                            const struct shard_run *runs, uint32_t total, size_t n,
                            struct device_sum **ret, struct as_err *err)
{
    uint32_t next = 0;
    for (int32_t r = 0; r < size; r++) {
        if (runs[r].first != next || runs[r].count > total - next)
            return as_fail(
                err, AS_E_INVAL, "rank %d holds %u shards from %u of %u, expected from %u", (int)r,
                (unsigned)runs[r].count, (unsigned)runs[r].first, (unsigned)total, (unsigned)next);
        next += runs[r].count;
    }
    if (next != total || total == 0 || n == 0)
        return as_fail(err, AS_E_INVAL, "the ranks hold %u shards of %u, of %zu numbers",
                       (unsigned)next, (unsigned)total, n);
    AS_AUTO(device_sum_freep) struct device_sum *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    *s = (struct device_sum){.be = be,
                             .peers = peers,
                             .rank = rank,
                             .size = size,
                             .total = total,
                             .n = n,
                             .run = runs[rank]};
    as_status st = make_nodes(s, runs, err);
    if (st == AS_OK)
        st = make_buffers(s, err);
    if (st == AS_OK)
        *ret = as_steal(s);
    return st;
}
