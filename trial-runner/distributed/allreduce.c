/* Synchronous training: each step, the gradients of all shards are summed over the ranks, and every
 * rank applies the same sum.
 *
 * Each rank computes the gradients of its run of shards and adds them up meanwhile (own_sum.c);
 * shard_sum.c sums over the ranks. With the gradients travel the loss, the running statistics of
 * batch normalisation and the wishes of the ranks. A large gradient leaves in buckets while the
 * rest of it is computed (buckets.c), or layers of it travel as factors (outer_products.c): then
 * this rank's vectors have the other numbers alone, one behind the other.
 *
 * When a rank is lost, the gradients that this rank has computed stay: in the next world only the
 * lost rank's shards are computed anew, and those that this rank has added to shards which are
 * another rank's there. */
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/buckets.h"
#include "trial-runner/distributed/device_step.h"
#include "trial-runner/distributed/optimizer_moments.h"
#include "trial-runner/distributed/outer_products.h"

struct allreduce {
    struct replica *replica;
    size_t n;   /* of a contribution: the gradient's numbers and the wishes */
    float *sum; /* [n] */
    struct shard_sum *shards;
    struct own_sum *own;          /* of this rank's run */
    struct buckets *buckets;      /* NULL: sums are too small for them */
    struct outer_products *outer; /* NULL: no layer travels as factors */
    struct moments *moments;      /* NULL: they are not divided */
    struct device_step *devices;  /* NULL: the sums of this world go through the host */
    bool lineage;                 /* ranks hold some of the rows */
};

static void allreduce_free(void *self)
{
    struct allreduce *a = self;
    if (!a)
        return;
    free(a->sum);
    own_sum_free(a->own);
    buckets_free(a->buckets);
    shard_sum_free(a->shards);
    outer_products_free(a->outer);
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
    *a = (struct allreduce){.replica = r,
                            .n = r->n_numbers + STRATEGY_WISHES,
                            .lineage = setup->spec->distributed.lineage};
    a->sum = as_calloc(a->n, sizeof *a->sum);
    if (!a->sum)
        return as_fail_nomem(err);
    as_status st;
    if ((st = shard_sum_create(setup, a->n, &a->shards, err)) < 0 ||
        (st = own_sum_create(shard_sum_order(a->shards), a->n, r->max_shards, &a->own, err)) < 0 ||
        (st = buckets_create(a->shards, r->n_params, a->n, &a->buckets, err)) < 0 ||
        (st = outer_products_create(setup, a->n, &a->outer, err)) < 0 ||
        (setup->spec->distributed.shard_state &&
         (st = moments_create(setup, &a->moments, err)) < 0))
        return st;
    *ret = as_steal(a);
    return AS_OK;
}

/* How a step's numbers travel; equal on all ranks. */
struct way {
    struct outer_products *outer; /* NULL: all numbers as they are */
    struct buckets *buckets;      /* NULL: nothing leaves before the end */
    const struct number_range *rest;
    size_t n_rest, rest_n; /* of the numbers that travel as they are, all of them together */
};

/* A shard on its way from the replica to the sum. */
struct taking {
    struct allreduce *a;
    const struct way *way;
    struct buckets *buckets; /* of the last shard */
    uint32_t shard;
    float share;
};

/* Gradient and statistics count as the shard's share of the batch; the loss is a sum over rows.
 *   at   where the numbers lie in this rank's vectors */
static void add(const struct taking *t, size_t first, size_t at, const float *values, size_t n)
{
    const struct replica *r = t->a->replica;
    size_t shares = r->n_params + r->n_state;
    size_t scaled = first >= shares ? 0 : shares - first < n ? shares - first : n;
    own_sum_add(t->a->own, at, values, scaled, t->share);
    own_sum_add(t->a->own, at + scaled, values + scaled, n - scaled, 1);
}

static void take(void *arg, size_t first, const float *values, size_t n)
{
    const struct taking *t = arg;
    for (size_t i = 0; i < t->way->n_rest; i++) {
        const struct number_range *r = &t->way->rest[i];
        size_t from = first > r->first ? first : r->first;
        size_t to = first + n < r->first + r->n ? first + n : r->first + r->n;
        if (from < to)
            add(t, from, r->at + (from - r->first), values + (from - first), to - from);
    }
    if (t->buckets && n < t->a->replica->n_params) /* what comes as a whole leaves at the end */
        buckets_complete(t->buckets, first, n);
}

static bool take_factors(void *arg, size_t first, size_t pairs, float **ret_left, float **ret_right)
{
    const struct taking *t = arg;
    return outer_products_place(t->way->outer, t->shard, first, pairs, ret_left, ret_right);
}

static as_status compute_shard(struct allreduce *a, struct backend *lane, uint32_t shard,
                               const struct way *way, struct buckets *buckets, struct as_err *err)
{
    struct replica *r = a->replica;
    struct taking t = {a, way, buckets, shard, r->ops->share(r->self, 0, shard)};
    struct replica_sink sink = {.take = take,
                                .arg = &t,
                                .early = buckets != NULL,
                                .factors = way->outer ? take_factors : NULL};
    as_status st = own_sum_open(a->own, shard, err);
    if (st < 0 || (st = r->ops->gradient_taken(r->self, lane, 0, shard, &sink, err)) < 0)
        return st;
    own_sum_close(a->own);
    return AS_OK;
}

/* The shards of the run that are not there yet; the last one leaves in buckets. */
static as_status compute_run(struct allreduce *a, struct backend *lane, struct shard_run run,
                             const struct way *way, struct as_err *err)
{
    as_status st = AS_OK;
    uint32_t end = run.first + run.count, shard;
    while (st == AS_OK && (shard = own_sum_missing(a->own)) < end)
        st = compute_shard(a, lane, shard, way, shard == end - 1 ? way->buckets : NULL, err);
    return st;
}

/* A rank's wishes travel with its first shards; a rank without any has none, and does what another
 * wishes. */
static void put_wishes(struct allreduce *a, const struct way *way, unsigned wishes)
{
    float numbers[STRATEGY_WISHES];
    strategy_wishes_put(wishes, numbers);
    own_sum_put(a->own, way->rest_n - STRATEGY_WISHES, numbers, STRATEGY_WISHES);
}

/* The sum of a rank that is alone is what it has added up itself, unless that is encoded first,
 * clipped in place, or not all. */
static bool has_all(const struct allreduce *a, const struct coll *c, const struct way *way)
{
    return coll_size(c) == 1 && !a->moments && !way->outer &&
           shard_sum_order(a->shards) != OWN_EACH;
}

/* All ranks decide alike, also those that have nothing to compute. */
static as_status choose_way(struct allreduce *a, const struct coll *c, struct shard_step at,
                            const struct number_range *all, struct way *ret, struct as_err *err)
{
    *ret = (struct way){.rest = all, .n_rest = 1, .rest_n = a->n};
    as_status st = a->outer ? outer_products_begin(a->outer, at, err) : AS_OK;
    if (st < 0)
        return st;
    if (a->outer && outer_products_rest_n(a->outer) < a->n) {
        ret->outer = a->outer;
        ret->rest = outer_products_rest(a->outer, &ret->n_rest);
        ret->rest_n = outer_products_rest_n(a->outer);
    } else {
        ret->buckets = coll_size(c) > 1 ? a->buckets : NULL;
    }
    return AS_OK;
}

/* a->sum = the sum, when this rank's run is computed. */
static as_status sum_run(struct allreduce *a, struct coll *c, struct backend *lane,
                         struct shard_step at, const struct way *way, struct as_err *err)
{
    const float *const *own = own_sum_values(a->own);
    if (way->buckets)
        return buckets_end(way->buckets, err);
    if (!way->outer)
        return shard_sum_merged(a->shards, c, at, own, a->sum, err);
    as_status st = shard_sum_part(a->shards, c, at, own, 0, way->rest_n, 0, a->sum, err);
    return st < 0 ? st : outer_products_sum(way->outer, c, lane, a->sum, err);
}

static as_status compute_and_sum(struct allreduce *a, struct coll *c, struct backend *lane,
                                 struct shard_step at, unsigned wishes, const float **ret,
                                 struct as_err *err)
{
    const struct number_range all = {0, a->n, 0};
    struct shard_run run = shard_sum_own(a->shards, c, at.shards);
    struct way way;
    as_status st = replica_hold_shards(a->replica, run, err);
    if (st < 0 || (st = choose_way(a, c, at, &all, &way, err)) < 0)
        return st;
    own_sum_begin(a->own, at.step, at.shards, run); /* perhaps again: what was computed stays */
    if (way.buckets)
        buckets_begin(way.buckets, c, at, a->own, a->sum);
    st = compute_run(a, lane, run, &way, err);
    if (st < 0 && way.buckets)
        buckets_abandon(way.buckets);
    if (st < 0)
        return st;
    put_wishes(a, &way, wishes);
    if (has_all(a, c, &way)) {
        *ret = own_sum_values(a->own)[0];
        return coll_is_over(c) ? as_fail(err, AS_E_UNAVAILABLE, "the epoch is over") : AS_OK;
    }
    *ret = a->sum;
    return sum_run(a, c, lane, at, &way, err);
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
    *ret = strategy_wishes_read(behind + r->n_state + 1);
    return r->ops->update_on_device(r->self, lane, sum, behind, err);
}

static as_status allreduce_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                               unsigned *ret, struct as_err *err)
{
    struct allreduce *a = self;
    struct replica *r = a->replica;
    if (a->devices)
        return run_on_devices(a, lane, wishes, ret, err);
    int64_t step = r->ops->step(r->self);
    struct shard_step at = {.step = step, .next = step + 1, .shards = r->ops->shards(r->self, 0)};
    const float *sum = NULL;
    as_status st = compute_and_sum(a, c, lane, at, wishes, &sum, err);
    if (st < 0)
        return st;
    *ret = strategy_wishes_read(sum + r->n_numbers);
    return a->moments ? moments_update(a->moments, c, lane, a->sum, err)
                      : r->ops->update(r->self, lane, sum, err);
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
    return m->devices
               ? device_step_create(m->devices, a->replica, STRATEGY_WISHES, &a->devices, err)
               : AS_OK;
}

static bool allreduce_uses_devices(const void *self)
{
    const struct allreduce *a = self;
    return !a->moments && !a->outer && !a->lineage && shard_sum_splits(a->shards);
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
