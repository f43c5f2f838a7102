/* Local SGD: workers train by themselves for a block of steps, and then their weights are averaged.
 *
 *   plain averaging    McMahan et al. 2017 (federated averaging); Stich 2019
 *   block_momentum     Chen, Huo: Scalable Training of Deep Learning Machines by Incremental Block
 *                      Training with Intra-Block Parallel Optimization and Blockwise Model-Update
 *                      Filtering, ICASSP 2016 (CNTK's BMUF)
 *   outer              Douillard et al.: DiLoCo, 2023
 *
 * A worker is logical: worker w takes shard w of each batch, and makes one step of the document's
 * optimizer with it. So a batch has the same samples as in synchronous training, and the block of a
 * worker is a task like a shard's gradient: it depends on the weights at the block's start and on
 * the position, not on the rank that does it. The tasks' changes of the weights are summed in the
 * order of a tree, weighted with their samples. So any number of ranks gives the same bits, and
 * when a rank dies, the others do its tasks of this block anew: no completed block is lost.
 *
 * Moments begin each block with 0, as CNTK's do, or with their mean over the workers
 * (docs/decisions/8010). A block ends with the epoch, because the model is evaluated then. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/device_vectors.h"
#include "trial-runner/distributed/shard_sum.h"

/* Behind the changes of the weights and the means of moments and statistics: the loss, workers that
 * are frozen because a gradient was not finite, and the wishes of the ranks. */
enum { LOSS, FROZEN, WISHES, N_EXACT = WISHES + 2 };

struct local_sgd {
    const struct train_spec *spec;
    struct replica *replica;
    struct shard_sum *sums;
    size_t n, at_moment1, at_moment2, at_state, at_exact; /* of a task's vector */
    float **tasks;                                        /* [max_shards] of n; when first needed */
    bool *has;                                            /* [max_shards]: of the block at `step` */
    const float **own;                                    /* [max_shards] */
    float *sum;                                           /* [n] */
    float *velocity;                                      /* [n_params]; NULL: no momentum */
    struct slot_state start, now;                         /* `now` has no average */
    int64_t step;                                         /* where the block begins; -1: none */
    int64_t length;
    uint32_t workers;
    double rows; /* of the block, over all workers */
    /* A task that was left because a rank was lost: its state after `done` steps. */
    struct slot_state left;
    int64_t left_worker, left_done;
    struct device_vectors *devices; /* NULL: the sums of this world go through the host */
};

static void local_free(void *self)
{
    struct local_sgd *l = self;
    if (!l)
        return;
    for (uint32_t i = 0; l->tasks && i < l->replica->max_shards; i++)
        free(l->tasks[i]);
    free(l->tasks);
    free(l->has);
    free(l->own);
    free(l->sum);
    free(l->velocity);
    slot_state_done(&l->start);
    slot_state_done(&l->now);
    slot_state_done(&l->left);
    device_vectors_free(l->devices);
    shard_sum_free(l->sums);
    free(l);
}

static inline void local_freep(struct local_sgd **l)
{
    local_free(*l);
}

static void set_layout(struct local_sgd *l)
{
    const struct replica *r = l->replica;
    bool average = l->spec->distributed.moments == DISTRIBUTED_MOMENTS_AVERAGE;
    l->at_moment1 = r->n_params;
    l->at_moment2 = l->at_moment1 + (average ? r->n_params : 0);
    l->at_state = l->at_moment2 + (average && r->has_moment2 ? r->n_params : 0);
    l->at_exact = l->at_state + r->n_state;
    l->n = l->at_exact + N_EXACT;
}

static as_status new_states(struct local_sgd *l, struct as_err *err)
{
    struct replica *r = l->replica;
    struct slot_state *parts[] = {&l->now, &l->left};
    as_status st = r->ops->state_new(r->self, &l->start, err);
    for (size_t i = 0; st == AS_OK && i < AS_ARRAY_LEN(parts); i++) {
        st = r->ops->state_new(r->self, parts[i], err);
        free(parts[i]->average); /* of the weights after a block alone */
        parts[i]->average = NULL;
    }
    return st;
}

static as_status local_create(const struct strategy_setup *setup, void **ret, struct as_err *err)
{
    AS_AUTO(local_freep) struct local_sgd *l = as_calloc(1, sizeof *l);
    if (!l)
        return as_fail_nomem(err);
    struct replica *r = setup->replica;
    *l = (struct local_sgd){.spec = setup->spec, .replica = r, .step = -1, .left_worker = -1};
    set_layout(l);
    bool has_velocity = setup->spec->distributed.outer.momentum > 0;
    l->tasks = as_calloc(r->max_shards, sizeof *l->tasks);
    l->has = as_calloc(r->max_shards, sizeof *l->has);
    l->own = as_calloc(r->max_shards, sizeof *l->own);
    l->sum = as_calloc(l->n, sizeof *l->sum);
    l->velocity = has_velocity ? as_calloc(r->n_params, sizeof *l->velocity) : NULL;
    if (!l->tasks || !l->has || !l->own || !l->sum || (has_velocity && !l->velocity))
        return as_fail_nomem(err);
    as_status st = new_states(l, err);
    if (st == AS_OK)
        st = shard_sum_create(setup, l->n, &l->sums, err);
    if (st == AS_OK)
        *ret = as_steal(l);
    return st;
}

/* ---- a task ---- */

/* The rows of a worker in the block. */
static double rows_of(const struct local_sgd *l, uint32_t worker)
{
    const struct replica *r = l->replica;
    double rows = 0;
    for (int64_t ahead = 0; ahead < l->length; ahead++)
        if (worker < r->ops->shards(r->self, ahead))
            rows += r->ops->rows(r->self, ahead, worker);
    return rows;
}

/* Puts the task's weighted changes into its vector. */
static void write_task(const struct local_sgd *l, uint32_t worker, float *to)
{
    const struct replica *r = l->replica;
    const struct slot_state *a = &l->start, *b = &l->now;
    float weight = (float)(rows_of(l, worker) / l->rows);
    for (size_t i = 0; i < r->n_params; i++)
        to[i] = weight * (b->params[i] - a->params[i]);
    for (size_t i = l->at_moment1; i < l->at_moment2; i++)
        to[i] = weight * b->moment1[i - l->at_moment1];
    for (size_t i = l->at_moment2; i < l->at_state; i++)
        to[i] = weight * b->moment2[i - l->at_moment2];
    for (size_t i = 0; i < r->n_state; i++)
        to[l->at_state + i] = weight * b->statistics[i];
    float *exact = to + l->at_exact;
    exact[LOSS] = b->loss_sum;
    exact[FROZEN] = (float)!b->active;
}

/* Goes on with a task that was left, or begins it. */
static as_status begin_task(struct local_sgd *l, uint32_t worker, int64_t *ret_ahead,
                            struct as_err *err)
{
    struct replica *r = l->replica;
    if (l->left_worker == worker) {
        *ret_ahead = l->left_done;
        l->left_worker = -1;
        return r->ops->state_put(r->self, &l->left, err);
    }
    float loss = l->start.loss_sum;
    l->start.loss_sum = 0; /* a task's own */
    as_status st = r->ops->state_put(r->self, &l->start, err);
    l->start.loss_sum = loss;
    *ret_ahead = 0;
    return st;
}

static as_status do_task(struct local_sgd *l, struct coll *c, struct backend *lane, uint32_t worker,
                         struct as_err *err)
{
    struct replica *r = l->replica;
    int64_t ahead;
    if (!l->tasks[worker] && !(l->tasks[worker] = as_calloc(l->n, sizeof(float))))
        return as_fail_nomem(err);
    as_status st = begin_task(l, worker, &ahead, err);
    for (; st == AS_OK && ahead < l->length; ahead++) {
        if (coll_is_over(c)) {
            l->left_worker = worker;
            l->left_done = ahead;
            st = r->ops->state_get(r->self, &l->left, err);
            return st < 0 ? st : as_fail(err, AS_E_UNAVAILABLE, "the epoch is over");
        }
        if (worker < r->ops->shards(r->self, ahead))
            st = r->ops->local_step(r->self, lane, ahead, worker, err);
    }
    if (st == AS_OK)
        st = r->ops->state_get(r->self, &l->now, err);
    if (st < 0)
        return st;
    write_task(l, worker, l->tasks[worker]);
    l->has[worker] = true;
    return AS_OK;
}

/* ---- a block ---- */

static as_status begin_block(struct local_sgd *l, struct as_err *err)
{
    struct replica *r = l->replica;
    int64_t step = r->ops->step(r->self);
    if (l->step == step)
        return AS_OK; /* again: what was computed stays */
    memset(l->has, 0, r->max_shards * sizeof *l->has);
    l->left_worker = -1;
    l->length = 0;
    while (l->length < l->spec->distributed.local_steps && r->ops->shards(r->self, l->length) > 0)
        l->length++;
    l->workers = r->ops->shards(r->self, 0); /* a later batch has no more */
    l->rows = 0;
    for (uint32_t w = 0; w < l->workers; w++)
        l->rows += rows_of(l, w);
    as_status st = r->ops->state_get(r->self, &l->start, err);
    if (st == AS_OK)
        l->step = step;
    return st;
}

static as_status do_run(struct local_sgd *l, struct coll *c, struct backend *lane,
                        struct shard_run run, unsigned wishes, struct as_err *err)
{
    for (uint32_t i = 0; i < run.count; i++) {
        uint32_t worker = run.first + i;
        as_status st = l->has[worker] ? AS_OK : do_task(l, c, lane, worker, err);
        if (st < 0)
            return st;
        float *wish = l->tasks[worker] + l->at_exact + WISHES;
        for (size_t w = 0; w < N_EXACT - WISHES; w++)
            wish[w] = i == 0 && (wishes >> w & 1);
        l->own[i] = l->tasks[worker];
    }
    return AS_OK;
}

/* The weights after the block: w + the filtered mean change. */
static void outer_step(struct local_sgd *l)
{
    const struct distributed_outer *o = &l->spec->distributed.outer;
    const float lr = (float)o->lr, momentum = (float)o->momentum;
    float *w = l->start.params, *v = l->velocity;
    for (size_t i = 0; i < l->replica->n_params; i++) {
        float change = o->block ? lr * l->sum[i] : l->sum[i];
        if (v) {
            v[i] = momentum * v[i] + change;
            change = o->nesterov ? change + momentum * v[i] : v[i];
        }
        w[i] += o->block ? change : lr * change;
    }
}

static void average_weights(struct local_sgd *l)
{
    const float decay = (float)pow(l->spec->optimizer.ema, (double)l->length);
    float *average = l->start.average;
    for (size_t i = 0; average && i < l->replica->n_params; i++)
        average[i] = decay * average[i] + (1 - decay) * l->start.params[i];
}

/* The start of the block becomes the state after it. */
static as_status end_block(struct local_sgd *l, struct as_err *err)
{
    struct replica *r = l->replica;
    struct slot_state *s = &l->start;
    const float *exact = l->sum + l->at_exact;
    const bool average = l->spec->distributed.moments == DISTRIBUTED_MOMENTS_AVERAGE;
    outer_step(l);
    average_weights(l);
    for (size_t i = 0; i < r->n_params; i++) {
        s->moment1[i] = average ? l->sum[l->at_moment1 + i] : 0;
        if (s->moment2)
            s->moment2[i] = average ? l->sum[l->at_moment2 + i] : 0;
    }
    for (size_t i = 0; i < r->n_state; i++)
        s->statistics[i] = l->sum[l->at_state + i];
    s->loss_sum += exact[LOSS];
    s->active = s->active && !(exact[FROZEN] > 0);
    s->steps = average ? s->steps + (int32_t)l->length : 0;
    l->step = -1;
    as_status st = r->ops->state_put(r->self, s, err);
    if (st == AS_OK)
        r->ops->advance(r->self, l->length);
    return st;
}

static as_status local_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                           unsigned *ret, struct as_err *err)
{
    struct local_sgd *l = self;
    struct replica *r = l->replica;
    as_status st = begin_block(l, err);
    if (st < 0)
        return st;
    struct shard_step at = {.step = l->step, .next = l->step + l->length, .shards = l->workers};
    st = do_run(l, c, lane, shard_sum_own(l->sums, c, at.shards), wishes, err);
    if (st == AS_OK)
        st = l->devices ? device_vectors_sum_host(l->devices, at.shards, l->own, l->sum, err)
                        : shard_sum_all(l->sums, c, at, l->own, l->sum, err);
    if (st == AS_E_UNAVAILABLE) { /* the replica is as it was */
        struct as_err why;
        as_status back = r->ops->state_put(r->self, &l->start, &why);
        return back == AS_OK ? st : as_fail(err, back, "%s", why.msg);
    }
    if (st < 0)
        return st;
    *ret = 0;
    for (size_t w = 0; w < N_EXACT - WISHES; w++)
        if (l->sum[l->at_exact + WISHES + w] > 0)
            *ret |= 1U << w;
    return end_block(l, err);
}

/* ---- what is kept ---- */

static size_t local_parts(void *self, struct strategy_part *ret)
{
    struct local_sgd *l = self;
    size_t n = shard_sum_parts(l->sums, ret);
    if (l->velocity)
        ret[n++] = (struct strategy_part){
            .name = "velocity", .values = l->velocity, .n = l->replica->n_params};
    return n;
}

static as_status local_restored(void *self, bool from_checkpoint, struct as_err *err)
{
    return shard_sum_restored(((struct local_sgd *)self)->sums, from_checkpoint, err);
}

static bool local_gathers(const void *self)
{
    return shard_sum_gathers(((const struct local_sgd *)self)->sums);
}

static as_status local_gather(void *self, struct coll *c, struct backend *lane, struct as_err *err)
{
    (void)lane;
    return shard_sum_gather(((struct local_sgd *)self)->sums, c, err);
}

static as_status local_meet(void *self, struct meeting *m, struct as_err *err)
{
    struct local_sgd *l = self;
    as_status st = meeting_catch_up(m, err);
    if (st < 0 || (st = shard_sum_meet(l->sums, m->coll, err)) < 0)
        return st;
    device_vectors_free(l->devices);
    l->devices = NULL;
    return m->devices &&
                   coll_size(m->coll) > 1 /* who is alone has the weights on the host anyway */
               ? device_vectors_create(m->devices, l->replica->max_shards, l->n, &l->devices, err)
               : AS_OK;
}

static bool local_uses_devices(const void *self)
{
    return shard_sum_splits(((const struct local_sgd *)self)->sums);
}

const struct strategy_ops strategy_local_sgd = {
    .name = "local_sgd",
    .create = local_create,
    .free = local_free,
    .run = local_run,
    .parts = local_parts,
    .restored = local_restored,
    .gather = local_gather,
    .gathers = local_gathers,
    .meet = local_meet,
    .uses_devices = local_uses_devices,
};
