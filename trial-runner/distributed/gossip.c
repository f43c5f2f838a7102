/* Gossip: every rank trains a model of its own, and mixes it with those of random peers by push-sum
 * (push_sum.h; of stochastic gradients: Blot et al. 2016, Assran et al. 2019).
 *
 * A step of a rank is an optimizer step with the mean gradient of its own shards of the batch. Then
 * it gives half of its weight, with its model, to each of `peers` random peers, and takes in what
 * has come meanwhile. A model that a peer could not take (it is lost, or has too much unread) is
 * taken back, so the sum of weight x model stays.
 *
 * A rank that gives waits until the peer is at most `staleness` steps behind it. Without that a
 * rank that has the processor for a while gets far ahead of others, whose old models then undo its
 * steps (decision 8014). It asks the peer, whose answer is held back until it has come so far; a
 * peer that is lost is not waited for.
 *
 * At a common step all ranks come together: at the last step of an epoch, whose model is evaluated,
 * and at every COMMON_STEPS-th, where they can agree to stop. There every rank gets the mean of all
 * models (with their moments and statistics, by weight), and they do that step together, as
 * synchronous training does. The weights are then 1 again.
 *
 * When a rank dies, its model and its weight are lost, and the others go on; only the next common
 * step waits for the next world. A rank that joins gets the model of the one that is furthest, and
 * half of its weight. Moments are not given away: each rank keeps its own between common steps. */
#include "trial-runner/distributed/gossip_priv.h"

#include <stdlib.h>
#include <string.h>

#define FACTOR_MAX 2 /* by which a step may be longer than the optimizer's */

/* ---- life ---- */

static void gossip_free(void *self)
{
    struct gossip *g = self;
    if (!g)
        return;
    mailbox_free(g->box);
    gossip_free_parcels(g->in);
    gossip_free_parcels(g->out);
    slot_state_done(&g->state);
    for (uint32_t i = 0; g->partials && i < g->replica->max_shards; i++)
        free(g->partials[i]);
    free(g->partials);
    free(g->own);
    free(g->sum);
    free(g->model);
    free(g->before);
    free(g->runs);
    free(g->known);
    free(g->asked);
    (void)pthread_mutex_destroy(&g->lock);
    free(g);
}

static inline void gossip_freep(struct gossip **g)
{
    gossip_free(*g);
}

static as_status gossip_create(const struct strategy_setup *setup, void **ret, struct as_err *err)
{
    struct replica *r = setup->replica;
    AS_AUTO(gossip_freep) struct gossip *g = as_calloc(1, sizeof *g);
    if (!g)
        return as_fail_nomem(err);
    *g = (struct gossip){.replica = r,
                         .seed = setup->seed,
                         .peers = (uint32_t)setup->spec->distributed.peers,
                         .staleness = setup->spec->distributed.gossip_staleness,
                         .n_weights = r->n_params + r->n_state,
                         .weight = 1};
    (void)pthread_mutex_init(&g->lock, NULL);
    as_status st = r->ops->state_new(r->self, &g->state, err);
    if (st < 0)
        return st;
    g->partials = as_calloc(r->max_shards, sizeof *g->partials);
    g->own = as_calloc(r->max_shards, sizeof *g->own);
    g->sum = as_calloc(r->n_numbers + STRATEGY_WISHES, sizeof *g->sum);
    g->model = as_calloc(g->n_weights, sizeof *g->model);
    g->before = as_calloc(r->n_params, sizeof *g->before);
    g->runs = as_calloc(WORLD_MAX_RANKS, sizeof *g->runs);
    if (!g->partials || !g->own || !g->sum || !g->model || !g->before || !g->runs)
        return as_fail_nomem(err);
    *ret = as_steal(g);
    return AS_OK;
}

/* ---- steps ---- */

as_status gossip_compute(struct gossip *g, struct backend *lane, struct shard_run run,
                         unsigned wishes, float *ret_share, struct as_err *err)
{
    struct replica *r = g->replica;
    *ret_share = 0;
    for (uint32_t i = 0; i < run.count; i++) {
        uint32_t shard = run.first + i;
        if (!g->partials[shard] &&
            !(g->partials[shard] = as_calloc(r->n_numbers + STRATEGY_WISHES, sizeof(float))))
            return as_fail_nomem(err);
        float *to = g->partials[shard], share = r->ops->share(r->self, 0, shard);
        as_status st = r->ops->gradient(r->self, lane, 0, shard, to, err);
        if (st < 0)
            return st;
        for (size_t k = 0; k < g->n_weights; k++)
            to[k] *= share;
        strategy_wishes_put(i == 0 ? wishes : 0, to + r->n_numbers);
        g->own[i] = to;
        *ret_share += share;
    }
    return AS_OK;
}

/* An optimizer step by this rank alone. A rank without a shard of a small batch does nothing. */
static as_status step_alone(struct gossip *g, struct backend *lane, struct as_err *err)
{
    struct replica *r = g->replica;
    uint32_t total = r->ops->shards(r->self, 0);
    float share = 0;
    coll_spread(total, g->n_ranks, g->runs);
    struct shard_run run = g->runs[g->rank];
    AS_AUTO(as_freep) struct shard_node *leaves = as_calloc(run.count, sizeof *leaves);
    if (!leaves)
        return as_fail_nomem(err);
    as_status st = gossip_compute(g, lane, run, 0, &share, err);
    if (st < 0)
        return st;
    if (run.count == 0) {
        r->ops->advance(r->self, 1);
        return AS_OK;
    }
    for (uint32_t i = 0; i < run.count; i++)
        leaves[i] = (struct shard_node){run.first + i, 0, g->partials[run.first + i]};
    st =
        shard_tree_sum(total, shard_tree_root(total), leaves, run.count, g->sum, r->n_numbers, err);
    for (size_t k = 0; k < g->n_weights; k++)
        g->sum[k] /= share;
    return st < 0 ? st : r->ops->update(r->self, lane, g->sum, err);
}

/* The weight that this rank has given away makes no step: it is on its way, or waits at a peer. So
 * the step counts for it too, as in stochastic gradient push (Assran et al. 2019), whose gradients
 * are added to w x. Bounded, because a rank may have little weight for a while. */
static void step_for_weight(struct gossip *g)
{
    double factor = 1 / g->weight;
    float f = (float)(factor > FACTOR_MAX ? FACTOR_MAX : factor);
    for (size_t i = 0; i < g->replica->n_params; i++)
        g->model[i] = g->before[i] + f * (g->model[i] - g->before[i]);
}

static as_status gossip_step(struct gossip *g, struct coll *c, struct backend *lane,
                             struct as_err *err)
{
    const struct replica *r = g->replica;
    int64_t step = r->ops->step(r->self);
    if (g->n_ranks == 1)
        return step_alone(g, lane, err);
    as_status st = gossip_read_model(g, err);
    if (st < 0)
        return st;
    memcpy(g->before, g->model, r->n_params * sizeof *g->before);
    if ((st = step_alone(g, lane, err)) < 0 || (st = gossip_set_reached(g, step + 1, err)) < 0 ||
        (st = gossip_read_model(g, err)) < 0)
        return st;
    step_for_weight(g);
    (void)gossip_settle_out(g, false);
    (void)gossip_take_in(g);
    for (uint32_t i = 0; st == AS_OK && i < g->peers && (int32_t)i < g->n_ranks - 1; i++)
        st = gossip_give(g, c, step, i, err);
    return st == AS_OK ? gossip_write_model(g, err) : st;
}

/* The loss begins anew with an epoch. */
static as_status begin_epoch(struct gossip *g, struct as_err *err)
{
    struct slot_state counters = {0};
    as_status st = g->replica->ops->state_get(g->replica->self, &counters, err);
    if (st == AS_OK && (!g->begun || counters.loss_sum < g->loss))
        g->loss = counters.loss_sum;
    g->begun = true;
    return st;
}

static as_status gossip_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                            unsigned *ret, struct as_err *err)
{
    struct gossip *g = self;
    *ret = 0;
    as_status st = AS_OK;
    if (g->epoch && coll_is_over(c))
        st = as_fail(err, AS_E_UNAVAILABLE, "the epoch is over");
    if (st == AS_OK && g->epoch != coll_world(c)->epoch)
        st = gossip_join(g, c, err);
    if (st == AS_OK)
        st = begin_epoch(g, err);
    if (st == AS_OK)
        st = gossip_is_common(g->replica, 0) ? gossip_common_step(g, c, lane, wishes, ret, err)
                                             : gossip_step(g, c, lane, err);
    if (st == AS_E_UNAVAILABLE) {
        as_status left = gossip_leave(g, err);
        return left < 0 ? left : st;
    }
    return st;
}

/* ---- the next world ---- */

/* Where a rank comes from: its position, and the common step that it will come to. */
struct record {
    int64_t step, common;
    int64_t begun;
};

/* Ranks that come to the same common step as the furthest go on from where they are. Others, and
 * new ones, get its state and half of its weight. A common step may be done by some ranks and not
 * by others, in the middle of an epoch too: who was lost had sent its part of the sum to some
 * only. */
static as_status gossip_meet(void *self, struct meeting *m, struct as_err *err)
{
    struct gossip *g = self;
    const struct replica *r = g->replica;
    int32_t n = coll_size(m->coll), rank = coll_rank(m->coll), ahead = 0;
    AS_AUTO(as_freep) struct record *all = as_calloc((size_t)n, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    all[rank] = (struct record){m->steps[rank], gossip_next_common(r), g->begun};
    as_status st = coll_allgather(m->coll, (struct coll_id){.tag = TAG_RECORDS}, all, (size_t)n,
                                  sizeof *all, err);
    for (int32_t i = 1; i < n; i++)
        if (all[i].step > all[ahead].step ||
            (all[i].step == all[ahead].step && all[i].begun > all[ahead].begun))
            ahead = i;
    for (int32_t i = 0; st == AS_OK && i < n; i++) {
        bool goes_on = all[i].begun && all[i].common == all[ahead].common;
        if (i == ahead || goes_on || !all[ahead].begun) {
            if (i != ahead && !goes_on && all[i].step != all[ahead].step)
                st = m->transfer(m, ahead, i, err);
            continue;
        }
        struct coll_id id = {.tag = TAG_WEIGHT, .what = "weight"};
        double half = g->weight / 2;
        if ((st = m->transfer(m, ahead, i, err)) < 0)
            return st;
        if (rank == ahead && (st = coll_send(m->coll, id, i, &half, sizeof half, err)) == AS_OK)
            g->weight = half;
        if (rank == i &&
            (st = coll_receive(m->coll, id, ahead, &half, sizeof half, err)) == AS_OK) {
            g->weight = half;
            g->begun = false; /* the loss that came with the state is another rank's */
        }
    }
    return st;
}

const struct strategy_ops strategy_gossip = {
    .name = "gossip",
    .create = gossip_create,
    .free = gossip_free,
    .run = gossip_run,
    .meet = gossip_meet,
};
