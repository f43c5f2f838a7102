/* Synchronous training: each step, the gradients of all shards are summed over the ranks, and every
 * rank applies the same sum.
 *
 * Each rank computes the gradients of its run of shards; shard_sum.c sums them. With the gradients
 * travel the loss, the running statistics of batch normalisation and the wishes of the ranks.
 *
 * When a rank is lost, the gradients that this rank has computed stay: in the next world only the
 * lost rank's shards are computed anew. */
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/moments.h"
#include "trial-runner/distributed/shard_sum.h"

/* The wishes follow the numbers of a gradient: each one number, above 0 if some rank wishes it. */
enum { N_WISHES = 2 };

struct allreduce {
    struct replica *replica;
    size_t n;          /* of a contribution: the gradient's numbers and the wishes */
    float **partials;  /* [max_shards] of n numbers; allocated when first needed */
    bool *has;         /* [max_shards]: computed for the step `step` */
    const float **own; /* [max_shards]: this rank's run, for the sum */
    float *sum;        /* [n] */
    int64_t step;      /* the step that `has` is about */
    struct shard_sum *shards;
    struct moments *moments; /* NULL: they are not divided */
};

static void allreduce_free(void *self)
{
    struct allreduce *a = self;
    if (!a)
        return;
    for (uint32_t i = 0; a->partials && i < a->replica->max_shards; i++)
        free(a->partials[i]);
    free(a->partials);
    free(a->has);
    free(a->own);
    free(a->sum);
    shard_sum_free(a->shards);
    moments_free(a->moments);
    free(a);
}

static inline void allreduce_freep(struct allreduce **a)
{
    allreduce_free(*a);
}

static as_status allreduce_create(const struct strategy_setup *setup, void **ret,
                                  struct as_err *err)
{
    AS_AUTO(allreduce_freep) struct allreduce *a = as_calloc(1, sizeof *a);
    if (!a)
        return as_fail_nomem(err);
    struct replica *r = setup->replica;
    *a = (struct allreduce){.replica = r, .n = r->n_numbers + N_WISHES, .step = -1};
    a->partials = as_calloc(r->max_shards, sizeof *a->partials);
    a->has = as_calloc(r->max_shards, sizeof *a->has);
    a->own = as_calloc(r->max_shards, sizeof *a->own);
    a->sum = as_calloc(a->n, sizeof *a->sum);
    if (!a->partials || !a->has || !a->own || !a->sum)
        return as_fail_nomem(err);
    as_status st = shard_sum_create(setup, a->n, &a->shards, err);
    if (st == AS_OK && setup->spec->distributed.shard_state)
        st = moments_create(setup, &a->moments, err);
    if (st < 0)
        return st;
    *ret = as_steal(a);
    return AS_OK;
}

/* The gradient, the statistics and the loss of one shard, as its share of the batch. */
static as_status compute_shard(struct allreduce *a, struct backend *lane, uint32_t shard,
                               struct as_err *err)
{
    struct replica *r = a->replica;
    if (!a->partials[shard] && !(a->partials[shard] = as_calloc(a->n, sizeof(float))))
        return as_fail_nomem(err);
    float *to = a->partials[shard];
    as_status st = r->ops->gradient(r->self, lane, 0, shard, to, err);
    if (st < 0)
        return st;
    float share = r->ops->share(r->self, 0, shard);
    for (size_t i = 0; i < r->n_params + r->n_state; i++)
        to[i] *= share;
    a->has[shard] = true;
    return AS_OK;
}

static as_status compute_run(struct allreduce *a, struct backend *lane, struct shard_run run,
                             unsigned wishes, struct as_err *err)
{
    size_t at = a->replica->n_numbers;
    for (uint32_t i = 0; i < run.count; i++) {
        uint32_t shard = run.first + i;
        if (!a->has[shard]) {
            as_status st = compute_shard(a, lane, shard, err);
            if (st < 0)
                return st;
        }
        /* A rank's wishes travel with its first shard; a rank without one has none, and does what
         * another wishes. */
        for (size_t w = 0; w < N_WISHES; w++)
            a->partials[shard][at + w] = i == 0 && (wishes >> w & 1);
        a->own[i] = a->partials[shard];
    }
    return AS_OK;
}

/* Begins the step at the position, or goes on with it: then what was computed stays. */
static void begin_step(struct allreduce *a)
{
    const struct replica *r = a->replica;
    int64_t step = r->ops->step(r->self);
    if (a->step != step)
        memset(a->has, 0, r->max_shards * sizeof *a->has);
    a->step = step;
}

static as_status allreduce_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                               unsigned *ret, struct as_err *err)
{
    struct allreduce *a = self;
    struct replica *r = a->replica;
    begin_step(a);
    struct shard_step at = {
        .step = a->step, .next = a->step + 1, .shards = r->ops->shards(r->self, 0)};
    struct shard_run run = shard_sum_own(a->shards, c, at.shards);
    as_status st = compute_run(a, lane, run, wishes, err);
    if (st == AS_OK)
        st = shard_sum_all(a->shards, c, at, a->own, a->sum, err);
    if (st < 0)
        return st;
    *ret = 0;
    for (size_t w = 0; w < N_WISHES; w++)
        if (a->sum[r->n_numbers + w] > 0)
            *ret |= 1U << w;
    return a->moments ? moments_update(a->moments, c, lane, a->sum, err)
                      : r->ops->update(r->self, lane, a->sum, err);
}

static size_t allreduce_parts(void *self, struct strategy_part *ret)
{
    struct allreduce *a = self;
    size_t n = shard_sum_parts(a->shards, ret);
    return a->moments ? n + moments_parts(a->moments, ret + n) : n;
}

static as_status allreduce_restored(void *self, bool from_checkpoint, struct as_err *err)
{
    struct allreduce *a = self;
    if (a->moments)
        moments_restored(a->moments, from_checkpoint);
    return shard_sum_restored(a->shards, from_checkpoint, err);
}

static bool allreduce_gathers(const void *self)
{
    const struct allreduce *a = self;
    return a->moments || shard_sum_gathers(a->shards);
}

static as_status allreduce_gather(void *self, struct coll *c, struct backend *lane,
                                  struct as_err *err)
{
    struct allreduce *a = self;
    (void)lane;
    as_status st = a->moments ? moments_gather(a->moments, c, err) : AS_OK;
    return st < 0 ? st : shard_sum_gather(a->shards, c, err);
}

static as_status allreduce_meet(void *self, struct meeting *m, struct as_err *err)
{
    struct allreduce *a = self;
    as_status st = a->moments ? moments_meet(a->moments, m, err) : meeting_catch_up(m, err);
    return st < 0 ? st : shard_sum_meet(a->shards, m->coll, err);
}

const struct strategy_ops strategy_allreduce = {
    .name = "allreduce",
    .create = allreduce_create,
    .free = allreduce_free,
    .run = allreduce_run,
    .parts = allreduce_parts,
    .restored = allreduce_restored,
    .gather = allreduce_gather,
    .gathers = allreduce_gathers,
    .meet = allreduce_meet,
};
