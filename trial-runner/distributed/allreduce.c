/* Synchronous training: each step, the gradients of all shards are summed over the ranks, and every
 * rank applies the same sum.
 *
 * Each rank computes the gradients of its run of shards; shard_sum.c sums them. With the gradients
 * travel the loss, the running statistics of batch normalisation and the wishes of the ranks. A large
 * gradient leaves in buckets while the rest of it is computed (buckets.c).
 *
 * When a rank is lost, the gradients that this rank has computed stay: in the next world only the
 * lost rank's shards are computed anew. */
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/buckets.h"
#include "trial-runner/distributed/device_step.h"
#include "trial-runner/distributed/moments.h"

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
    struct buckets *buckets;     /* NULL: sums are too small for them */
    struct moments *moments;     /* NULL: they are not divided */
    struct device_step *devices; /* NULL: the sums of this world go through the host */
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
    buckets_free(a->buckets);
    shard_sum_free(a->shards);
    moments_free(a->moments);
    device_step_free(a->devices);
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
    as_status st;
    if ((st = shard_sum_create(setup, a->n, &a->shards, err)) < 0 ||
        (st = buckets_create(a->shards, r->n_params, a->n, &a->buckets, err)) < 0 ||
        (setup->spec->distributed.shard_state &&
         (st = moments_create(setup, &a->moments, err)) < 0))
        return st;
    *ret = as_steal(a);
    return AS_OK;
}

static void scale(float *values, size_t n, float by)
{
    for (size_t i = 0; i < n; i++)
        values[i] *= by;
}

/* A shard whose gradient leaves while it is computed. */
struct leaving {
    struct buckets *buckets;
    float *values, share;
    size_t n; /* numbers that have left */
};

static void let_leave(void *arg, size_t first, size_t n)
{
    struct leaving *l = arg;
    scale(l->values + first, n, l->share);
    l->n += n;
    buckets_complete(l->buckets, first, n);
}

/* The gradient, the statistics and the loss of one shard, as its share of the batch. With `buckets`,
 * they get its numbers as soon as they are known. */
static as_status compute_shard(struct allreduce *a, struct backend *lane, uint32_t shard,
                               struct buckets *buckets, struct as_err *err)
{
    struct replica *r = a->replica;
    float *to = a->partials[shard], share = r->ops->share(r->self, 0, shard);
    struct leaving l = {.buckets = buckets, .values = to, .share = share};
    struct replica_watch watch = {.complete = let_leave, .arg = &l};
    as_status st = buckets && r->ops->gradient_watched
                       ? r->ops->gradient_watched(r->self, lane, 0, shard, to, &watch, err)
                       : r->ops->gradient(r->self, lane, 0, shard, to, err);
    if (st < 0)
        return st;
    scale(to + l.n, r->n_params + r->n_state - l.n, share); /* l.n: none or all parameters */
    a->has[shard] = true;
    return AS_OK;
}

/* Memory for this rank's run, and what it wishes. A rank's wishes travel with its first shard; a
 * rank without one has none, and does what another wishes. */
static as_status prepare_run(struct allreduce *a, struct shard_run run, unsigned wishes,
                             struct as_err *err)
{
    for (uint32_t i = 0; i < run.count; i++) {
        float **p = &a->partials[run.first + i];
        if (!*p && !(*p = as_calloc(a->n, sizeof **p)))
            return as_fail_nomem(err);
        for (size_t w = 0; w < N_WISHES; w++)
            (*p)[a->replica->n_numbers + w] = i == 0 && (wishes >> w & 1);
        a->own[i] = *p;
    }
    return AS_OK;
}

static as_status compute_run(struct allreduce *a, struct backend *lane, struct shard_run run,
                             struct buckets *buckets, struct as_err *err)
{
    as_status st = AS_OK;
    for (uint32_t i = 0; st == AS_OK && i < run.count; i++)
        if (!a->has[run.first + i])
            st = compute_shard(a, lane, run.first + i, i == run.count - 1 ? buckets : NULL, err);
    return st;
}

/* All ranks decide alike whether there are buckets, also those that have nothing to compute. */
static as_status compute_and_sum(struct allreduce *a, struct coll *c, struct backend *lane,
                                 struct shard_step at, struct as_err *err)
{
    struct shard_run run = shard_sum_own(a->shards, c, at.shards);
    struct buckets *buckets = coll_size(c) > 1 ? a->buckets : NULL;
    if (buckets)
        buckets_begin(buckets, c, at, a->own, a->sum);
    as_status st = compute_run(a, lane, run, buckets, err);
    if (st < 0 && buckets)
        buckets_abandon(buckets);
    if (st < 0)
        return st;
    return buckets ? buckets_end(buckets, err)
                   : shard_sum_all(a->shards, c, at, a->own, a->sum, err);
}

static unsigned agreed_wishes(const float *numbers)
{
    unsigned agreed = 0;
    for (size_t w = 0; w < N_WISHES; w++)
        agreed |= numbers[w] > 0 ? 1U << w : 0;
    return agreed;
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

/* The whole step, where the gradients stay on the devices. */
static as_status run_on_devices(struct allreduce *a, struct backend *lane, unsigned wishes,
                                unsigned *ret, struct as_err *err)
{
    struct replica *r = a->replica;
    struct buf *sum = NULL;
    const float *behind = NULL;
    as_status st = device_step_run(a->devices, lane, wishes, &sum, &behind, err);
    if (st < 0)
        return st;
    *ret = agreed_wishes(behind + r->n_state + 1);
    return r->ops->update_on_device(r->self, lane, sum, behind, err);
}

static as_status allreduce_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                               unsigned *ret, struct as_err *err)
{
    struct allreduce *a = self;
    struct replica *r = a->replica;
    if (a->devices)
        return run_on_devices(a, lane, wishes, ret, err);
    begin_step(a);
    struct shard_step at = {
        .step = a->step, .next = a->step + 1, .shards = r->ops->shards(r->self, 0)};
    as_status st = prepare_run(a, shard_sum_own(a->shards, c, at.shards), wishes, err);
    if (st == AS_OK)
        st = compute_and_sum(a, c, lane, at, err);
    if (st < 0)
        return st;
    *ret = agreed_wishes(a->sum + r->n_numbers);
    return a->moments ? moments_update(a->moments, c, lane, a->sum, err)
                      : r->ops->update(r->self, lane, a->sum, err);
}

static struct strategy_progress allreduce_progress(void *self)
{
    struct buckets *b = ((struct allreduce *)self)->buckets;
    return b ? (struct strategy_progress){.buckets = buckets_count(b),
                                          .begun_early = buckets_begun_early(b),
                                          .summed = buckets_summed(b)}
             : (struct strategy_progress){0};
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
    if (st < 0 || (st = shard_sum_meet(a->shards, m->coll, err)) < 0)
        return st;
    device_step_free(a->devices);
    a->devices = NULL;
    return m->devices ? device_step_create(m->devices, a->replica, N_WISHES, &a->devices, err)
                      : AS_OK;
}

static bool allreduce_uses_devices(const void *self)
{
    const struct allreduce *a = self;
    return !a->moments && shard_sum_splits(a->shards);
}

const struct strategy_ops strategy_allreduce = {
    .name = "allreduce",
    .create = allreduce_create,
    .free = allreduce_free,
    .run = allreduce_run,
    .progress = allreduce_progress,
    .uses_devices = allreduce_uses_devices,
    .parts = allreduce_parts,
    .restored = allreduce_restored,
    .gather = allreduce_gather,
    .gathers = allreduce_gathers,
    .meet = allreduce_meet,
};
