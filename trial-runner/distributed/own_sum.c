/* A vector is the sum of a range of shards: a node of the tree (OWN_TREE), the first ones of the
 * run (OWN_LINE), or one shard. The vectors are kept in the order of their shards.
 *
 * When a shard is opened, it is clear what it completes: with a node's other child it makes the
 * node, that one perhaps the next higher one, as a binary counter carries. So number i becomes, in
 * one pass, scale x value + child + child + …, one addition after the other, and is written to the
 * place of one of these children. The others' places are free for further shards. Children on the
 * left and on the right are added alike, because the sum of two numbers does not depend on their
 * order. */
#include "trial-runner/distributed/own_sum.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu_clones.h"

#define LEVELS 33  /* of a tree over 2^32 shards */
#define BLOCK 1024 /* numbers that are added at once, in the nearest cache */

struct vector {
    uint32_t first, end; /* its shards */
    float *values;
};

struct own_sum {
    own_order order;
    size_t n;
    int64_t step;
    uint32_t total;
    struct shard_run run;
    struct vector *vectors; /* [max_shards], sorted */
    const float **views;    /* [max_shards]: their values */
    size_t n_vectors;
    float **spare; /* [max_shards]: memory that no vector uses */
    size_t n_spare;
    /* The shard that is open: */
    bool is_open;
    float *to;
    const float *children[LEVELS];
    size_t n_children;
};

void own_sum_free(struct own_sum *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n_vectors; i++)
        free(o->vectors[i].values);
    for (size_t i = 0; i < o->n_spare; i++)
        free(o->spare[i]);
    free(o->vectors);
    free(o->views);
    free(o->spare);
    free(o);
}

as_status own_sum_create(own_order order, size_t n, uint32_t max_shards, struct own_sum **ret,
                         struct as_err *err)
{
    AS_AUTO(own_sum_freep) struct own_sum *o = as_calloc(1, sizeof *o);
    if (!o)
        return as_fail_nomem(err);
    *o = (struct own_sum){.order = order, .n = n, .step = -1};
    o->vectors = as_calloc(max_shards, sizeof *o->vectors);
    o->views = as_calloc(max_shards, sizeof *o->views);
    o->spare = as_calloc(max_shards, sizeof *o->spare);
    if (!o->vectors || !o->views || !o->spare)
        return as_fail_nomem(err);
    *ret = as_steal(o);
    return AS_OK;
}

/* ---- the list of vectors ---- */

static void set_views(struct own_sum *o)
{
    for (size_t i = 0; i < o->n_vectors; i++)
        o->views[i] = o->vectors[i].values;
}

static void insert(struct own_sum *o, struct vector v)
{
    size_t at = o->n_vectors++;
    for (; at > 0 && o->vectors[at - 1].first > v.first; at--)
        o->vectors[at] = o->vectors[at - 1];
    o->vectors[at] = v;
}

static void take_out(struct own_sum *o, size_t at)
{
    o->n_vectors--;
    memmove(o->vectors + at, o->vectors + at + 1, (o->n_vectors - at) * sizeof *o->vectors);
}

/* The vector of exactly these shards, or n_vectors. */
static size_t find(const struct own_sum *o, uint32_t first, uint32_t end)
{
    size_t i = 0;
    while (i < o->n_vectors && (o->vectors[i].first != first || o->vectors[i].end != end))
        i++;
    return i;
}

/* Does a vector belong to the run, now that it may be another one? */
static bool stays(const struct own_sum *o, const struct vector *v)
{
    bool inside = v->first >= o->run.first && v->end <= o->run.first + o->run.count;
    bool half_made = o->is_open && v->values == o->to;
    return inside && !half_made && (o->order != OWN_LINE || v->first == o->run.first);
}

void own_sum_begin(struct own_sum *o, int64_t step, uint32_t total, struct shard_run run)
{
    bool same = o->step == step && o->total == total;
    size_t kept = 0;
    o->step = step;
    o->total = total;
    o->run = run;
    for (size_t i = 0; i < o->n_vectors; i++) {
        if (same && stays(o, &o->vectors[i]))
            o->vectors[kept++] = o->vectors[i];
        else
            o->spare[o->n_spare++] = o->vectors[i].values;
    }
    o->n_vectors = kept;
    o->is_open = false;
    set_views(o);
}

uint32_t own_sum_missing(const struct own_sum *o)
{
    uint32_t next = o->run.first;
    for (size_t i = 0; i < o->n_vectors && o->vectors[i].first == next; i++)
        next = o->vectors[i].end;
    return next;
}

/* ---- a shard ---- */

/* Takes the vector of these shards, if there is one, as a child of what is open. */
static bool take_child(struct own_sum *o, uint32_t first, uint32_t end)
{
    size_t at = find(o, first, end);
    if (at == o->n_vectors)
        return false;
    float *values = o->vectors[at].values;
    if (o->n_children == 0)
        o->to = values;
    else
        o->spare[o->n_spare++] = values;
    o->children[o->n_children++] = values;
    take_out(o, at);
    return true;
}

/* The largest node that the shard completes. Where there is no right child, a node is its left
 * one. */
static struct vector merge_in_tree(struct own_sum *o, uint32_t shard)
{
    struct vector v = {.first = shard, .end = shard + 1};
    uint32_t top = shard_tree_levels(o->total);
    for (uint32_t level = 0; level < top; level++) {
        uint32_t parent = (uint32_t)((uint64_t)v.first >> (level + 1) << (level + 1));
        uint32_t end = shard_tree_end(o->total, parent, level + 1);
        bool whole = v.first == parent && v.end == end;
        if (!whole &&
            !(v.first == parent ? take_child(o, v.end, end) : take_child(o, parent, v.first)))
            break;
        v.first = parent;
        v.end = end;
    }
    return v;
}

static struct vector merge(struct own_sum *o, uint32_t shard)
{
    if (o->order == OWN_TREE)
        return merge_in_tree(o, shard);
    struct vector v = {.first = shard, .end = shard + 1};
    if (o->order == OWN_LINE && take_child(o, o->run.first, shard))
        v.first = o->run.first;
    return v;
}

as_status own_sum_open(struct own_sum *o, uint32_t shard, struct as_err *err)
{
    o->n_children = 0;
    struct vector v = merge(o, shard);
    if (o->n_children == 0) { /* then nothing has changed yet */
        o->to = o->n_spare > 0 ? o->spare[o->n_spare - 1] : as_calloc(o->n, sizeof *o->to);
        if (!o->to)
            return as_fail_nomem(err);
        o->n_spare -= o->n_spare > 0;
    }
    v.values = o->to;
    insert(o, v);
    set_views(o);
    o->is_open = true;
    return AS_OK;
}

void own_sum_close(struct own_sum *o)
{
    o->is_open = false;
}

/* ---- numbers ---- */

CPU_CLONES static void scale_block(float *to, const float *values, float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = scale * values[i];
}

/* `to` may be the child. */
CPU_CLONES static void scale_add_block(float *to, const float *child, const float *values,
                                       float scale, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = child[i] + scale * values[i];
}

CPU_CLONES static void add_block(float *to, const float *child, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = child[i] + values[i];
}

/* Every child is added once, the last one into `to`. */
static void add_numbers(struct own_sum *o, size_t first, const float *values, size_t n, float scale)
{
    float sum[BLOCK], *to = o->to + first;
    size_t last = o->n_children - 1;
    scale_add_block(sum, o->children[0] + first, values, scale, n);
    for (size_t c = 1; c < last; c++)
        add_block(sum, o->children[c] + first, sum, n);
    add_block(to, o->children[last] + first, sum, n);
}

void own_sum_add(struct own_sum *o, size_t first, const float *values, size_t n, float scale)
{
    if (o->n_children == 0) {
        scale_block(o->to + first, values, scale, n);
        return;
    }
    if (o->n_children == 1) {
        scale_add_block(o->to + first, o->children[0] + first, values, scale, n);
        return;
    }
    for (size_t done = 0; done < n; done += BLOCK) {
        size_t now = n - done < BLOCK ? n - done : BLOCK;
        add_numbers(o, first + done, values + done, now, scale);
    }
}

void own_sum_put(struct own_sum *o, size_t first, const float *values, size_t n)
{
    for (size_t i = 0; i < o->n_vectors; i++)
        for (size_t k = 0; k < n; k++)
            o->vectors[i].values[first + k] = i == 0 ? values[k] : 0;
}

const float *const *own_sum_values(const struct own_sum *o)
{
    return o->views;
}

size_t own_sum_count(const struct own_sum *o)
{
    return o->n_vectors;
}
