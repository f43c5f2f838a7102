/* The factors of a step lie shard by shard, those of a shard layer by layer: so what a rank has for
 * the others is one range, and what it gets from each is one. Shards of this rank are written while
 * it computes them, the others' arrive in their places.
 *
 * The sums go through an own_sum over all shards: it holds one vector of the layers for each level
 * of the tree at most. */
#include "trial-runner/distributed/outer_products.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_FACTORS = SHARD_SUM_TAGS + 16 };

struct layer {
    size_t index; /* of the replica's tensors */
    size_t at;    /* its numbers in the vectors of own_sum */
    bool chosen;  /* in this step */
};

struct outer_products {
    struct replica *replica;
    distributed_factors when;
    size_t n;             /* numbers of a vector */
    struct layer *layers; /* tensors that have factors, in the order of the parameters */
    size_t n_layers;
    struct number_range *rest; /* [n_layers + 1] */
    size_t n_rest, rest_n;
    struct own_sum *sums;
    struct shard_run *runs; /* by rank */
    /* The step: */
    struct shard_step at;
    size_t *begins; /* [max_shards + 1]: where the factors of a shard begin */
    float *factors;
    size_t n_factors; /* room */
};

void outer_products_free(struct outer_products *o)
{
    if (!o)
        return;
    free(o->layers);
    free(o->rest);
    own_sum_free(o->sums);
    free(o->runs);
    free(o->begins);
    free(o->factors);
    free(o);
}

static const struct replica_tensor *tensor_of(const struct outer_products *o, const struct layer *l)
{
    return &o->replica->tensors[l->index];
}

static size_t numbers_of(const struct replica_tensor *t)
{
    return t->rows * t->cols;
}

/* Layers in the order of their parameters; returns how many numbers they have together. */
static size_t list_layers(struct outer_products *o)
{
    const struct replica *r = o->replica;
    size_t n = 0;
    for (size_t i = 0; i < r->n_tensors; i++) {
        if (r->tensors[i].pairs == 0)
            continue;
        size_t at = o->n_layers++;
        for (; at > 0 && tensor_of(o, &o->layers[at - 1])->first > r->tensors[i].first; at--)
            o->layers[at] = o->layers[at - 1];
        o->layers[at] = (struct layer){.index = i};
    }
    for (size_t k = 0; k < o->n_layers; k++) {
        o->layers[k].at = n;
        n += numbers_of(tensor_of(o, &o->layers[k]));
    }
    return n;
}

as_status outer_products_create(const struct strategy_setup *setup, size_t n,
                                struct outer_products **ret, struct as_err *err)
{
    struct replica *r = setup->replica;
    *ret = NULL;
    if (setup->spec->distributed.factors == DISTRIBUTED_FACTORS_NEVER)
        return AS_OK;
    AS_AUTO(outer_products_freep) struct outer_products *o = as_calloc(1, sizeof *o);
    if (!o)
        return as_fail_nomem(err);
    *o = (struct outer_products){
        .replica = r, .when = setup->spec->distributed.factors, .n = n, .at = {.step = -1}};
    o->layers = as_calloc(r->n_tensors, sizeof *o->layers);
    o->rest = as_calloc(r->n_tensors + 1, sizeof *o->rest);
    o->runs = as_calloc(WORLD_MAX_RANKS, sizeof *o->runs);
    o->begins = as_calloc((size_t)r->max_shards + 1, sizeof *o->begins);
    if (!o->layers || !o->rest || !o->runs || !o->begins)
        return as_fail_nomem(err);
    size_t numbers = list_layers(o);
    if (o->n_layers == 0)
        return AS_OK;
    as_status st = own_sum_create(OWN_TREE, numbers, r->max_shards, &o->sums, err);
    if (st == AS_OK)
        *ret = as_steal(o);
    return st;
}

/* ---- a step ---- */

/* Pairs of factors that a shard has of a tensor. */
static size_t pairs_of(const struct outer_products *o, const struct replica_tensor *t,
                       uint32_t shard)
{
    return t->pairs * o->replica->ops->rows(o->replica->self, 0, shard);
}

/* Is it cheaper for a rank to send its part of `pairs` factors to each other rank than 2 (R - 1)/R
 * of the gradient? Where the ranks divide the shards evenly, R is on both sides alike. In doubles:
 * products of sizes may be large. */
static bool is_cheaper(const struct replica_tensor *t, double pairs)
{
    return pairs * ((double)t->rows + (double)t->cols) < 2 * (double)t->rows * (double)t->cols;
}

static void choose_layers(struct outer_products *o)
{
    double rows = 0;
    for (uint32_t s = 0; s < o->at.shards; s++)
        rows += o->replica->ops->rows(o->replica->self, 0, s);
    for (size_t k = 0; k < o->n_layers; k++) {
        const struct replica_tensor *t = tensor_of(o, &o->layers[k]);
        o->layers[k].chosen =
            o->when == DISTRIBUTED_FACTORS_ALWAYS || is_cheaper(t, rows * (double)t->pairs);
    }
}

static void list_rest(struct outer_products *o)
{
    size_t first = 0;
    o->n_rest = o->rest_n = 0;
    for (size_t k = 0; k <= o->n_layers; k++) {
        const struct replica_tensor *t = k < o->n_layers ? tensor_of(o, &o->layers[k]) : NULL;
        if (t && !o->layers[k].chosen)
            continue;
        size_t end = t ? t->first : o->n;
        if (end > first)
            o->rest[o->n_rest++] = (struct number_range){first, end - first, o->rest_n};
        o->rest_n += end - first;
        first = t ? end + numbers_of(t) : end;
    }
}

static as_status place_shards(struct outer_products *o, struct as_err *err)
{
    size_t n = 0;
    for (uint32_t s = 0; s < o->at.shards; s++) {
        o->begins[s] = n;
        for (size_t k = 0; k < o->n_layers; k++) {
            const struct replica_tensor *t = tensor_of(o, &o->layers[k]);
            n += o->layers[k].chosen ? pairs_of(o, t, s) * (t->rows + t->cols) : 0;
        }
    }
    o->begins[o->at.shards] = n;
    if (n <= o->n_factors)
        return AS_OK;
    free(o->factors);
    o->factors = as_calloc(n, sizeof *o->factors);
    o->n_factors = o->factors ? n : 0;
    return o->factors ? AS_OK : as_fail_nomem(err);
}

as_status outer_products_begin(struct outer_products *o, struct shard_step at, struct as_err *err)
{
    if (at.step == o->at.step && at.shards == o->at.shards)
        return AS_OK;
    o->at = at;
    choose_layers(o);
    list_rest(o);
    as_status st = place_shards(o, err);
    if (st < 0)
        o->at.step = -1;
    return st;
}

const struct number_range *outer_products_rest(const struct outer_products *o, size_t *ret_n)
{
    *ret_n = o->n_rest;
    return o->rest;
}

size_t outer_products_rest_n(const struct outer_products *o)
{
    return o->rest_n;
}

/* The factors of a chosen layer, of one shard. */
static void places_of(const struct outer_products *o, uint32_t shard, const struct layer *l,
                      float **ret_left, float **ret_right)
{
    const struct replica_tensor *t = tensor_of(o, l);
    float *at = o->factors + o->begins[shard];
    for (const struct layer *k = o->layers; k < l; k++) {
        const struct replica_tensor *before = tensor_of(o, k);
        if (k->chosen)
            at += pairs_of(o, before, shard) * (before->rows + before->cols);
    }
    *ret_left = at;
    *ret_right = at + pairs_of(o, t, shard) * t->rows;
}

bool outer_products_place(const struct outer_products *o, uint32_t shard, size_t first,
                          size_t pairs, float **ret_left, float **ret_right)
{
    for (size_t k = 0; k < o->n_layers; k++) {
        const struct replica_tensor *t = tensor_of(o, &o->layers[k]);
        if (!o->layers[k].chosen || t->first != first || pairs != pairs_of(o, t, shard))
            continue;
        places_of(o, shard, &o->layers[k], ret_left, ret_right);
        return true;
    }
    return false;
}

/* ---- the sum ---- */

static size_t bytes_of(const struct outer_products *o, struct shard_run run)
{
    return (o->begins[run.first + run.count] - o->begins[run.first]) * sizeof *o->factors;
}

/* Every rank gets the factors of all shards. */
static as_status exchange(struct outer_products *o, struct coll *c, struct as_err *err)
{
    const struct coll_id id = {
        .step = (uint64_t)o->at.step, .tag = TAG_FACTORS, .what = "factors of gradients"};
    int32_t n = coll_size(c), own = coll_rank(c);
    AS_AUTO(as_freep) struct coll_message *room = as_calloc(2 * (size_t)n, sizeof *room);
    if (!room)
        return as_fail_nomem(err);
    coll_spread(o->at.shards, n, o->runs);
    struct coll_message *sent = room, *received = room + n;
    size_t n_sent = 0, n_received = 0, mine = bytes_of(o, o->runs[own]);
    for (int32_t r = 0; r < n; r++) {
        size_t theirs = bytes_of(o, o->runs[r]);
        if (r != own && mine > 0)
            sent[n_sent++] = (struct coll_message){
                .peer = r, .from = o->factors + o->begins[o->runs[own].first], .bytes = mine};
        if (r != own && theirs > 0)
            received[n_received++] = (struct coll_message){
                .peer = r, .to = o->factors + o->begins[o->runs[r].first], .bytes = theirs};
    }
    return coll_exchange(c, id, sent, n_sent, received, n_received, err);
}

static as_status add_shard(struct outer_products *o, struct backend *lane, uint32_t shard,
                           struct as_err *err)
{
    struct replica *r = o->replica;
    float share = r->ops->share(r->self, 0, shard);
    as_status st = own_sum_open(o->sums, shard, err);
    for (size_t k = 0; st == AS_OK && k < o->n_layers; k++) {
        const struct layer *l = &o->layers[k];
        const struct replica_tensor *t = tensor_of(o, l);
        const float *product;
        float *left, *right;
        if (!l->chosen)
            continue;
        places_of(o, shard, l, &left, &right);
        st = r->ops->product(r->self, lane, l->index, pairs_of(o, t, shard), left, right, &product,
                             err);
        if (st == AS_OK)
            own_sum_add(o->sums, l->at, product, numbers_of(t), share);
    }
    if (st == AS_OK)
        own_sum_close(o->sums);
    return st;
}

/* From the last one on: each moves behind where it was. */
static void move_rest(const struct outer_products *o, float *sum)
{
    for (size_t i = o->n_rest; i-- > 0;)
        memmove(sum + o->rest[i].first, sum + o->rest[i].at, o->rest[i].n * sizeof *sum);
}

as_status outer_products_sum(struct outer_products *o, struct coll *c, struct backend *lane,
                             float *sum, struct as_err *err)
{
    if (o->rest_n == o->n)
        return AS_OK;
    as_status st = exchange(o, c, err);
    if (st < 0)
        return st;
    own_sum_begin(o->sums, -1, 0, (struct shard_run){0}); /* nothing stays of another world */
    own_sum_begin(o->sums, o->at.step, o->at.shards, (struct shard_run){0, o->at.shards});
    for (uint32_t s = 0; st == AS_OK && s < o->at.shards; s++)
        st = add_shard(o, lane, s, err);
    if (st < 0)
        return st;
    const float *summed = own_sum_values(o->sums)[0];
    move_rest(o, sum);
    for (size_t k = 0; k < o->n_layers; k++) {
        const struct replica_tensor *t = tensor_of(o, &o->layers[k]);
        if (o->layers[k].chosen)
            memcpy(sum + t->first, summed + o->layers[k].at, numbers_of(t) * sizeof *sum);
    }
    return AS_OK;
}
