/* The common steps of gossip, to which all ranks come together: every rank gets the mean of all
 * models by weight, and they do the step as synchronous training does. */
#include "trial-runner/distributed/gossip_priv.h"

#define COMMON_STEPS 256

static void add_weighted(double *to, const float *from, size_t n, double weight)
{
    for (size_t i = 0; from && i < n; i++)
        to[i] = weight * (double)from[i];
}

static void divide(float *to, const double *from, size_t n, double weight)
{
    for (size_t i = 0; to && i < n; i++)
        to[i] = (float)(from[i] / weight);
}

/* Every rank gets the mean of all, by weight: weights, moments, averages, statistics; and the loss
 * of all. */
static as_status average(struct gossip *g, struct coll *c, struct as_err *err)
{
    const struct replica *r = g->replica;
    struct slot_state *s = &g->state;
    float *part[] = {s->params, s->moment1, s->moment2, s->average, s->statistics};
    size_t n_of[] = {r->n_params, r->n_params, r->n_params, r->n_params, r->n_state};
    size_t n = 2;
    as_status st = r->ops->state_get(r->self, s, err);
    for (size_t i = 0; i < AS_ARRAY_LEN(part); i++)
        n += part[i] ? n_of[i] : 0;
    AS_AUTO(as_freep) double *own = as_calloc(n, sizeof *own);
    AS_AUTO(as_freep) double *all = as_calloc(n, sizeof *all);
    if (st < 0 || !own || !all)
        return st < 0 ? st : as_fail_nomem(err);
    own[0] = g->weight;
    own[1] = (double)s->loss_sum - (g->rank == 0 ? 0 : (double)g->loss);
    size_t at = 2;
    for (size_t i = 0; i < AS_ARRAY_LEN(part); at += part[i] ? n_of[i] : 0, i++)
        add_weighted(own + at, part[i], n_of[i], g->weight);
    struct coll_id id = {.step = (uint64_t)r->ops->step(r->self), .tag = TAG_MEAN, .what = "mean"};
    st = coll_allreduce(c, id, COLL_RING, &reduce_f64_sum, own, all, n, err);
    if (st < 0)
        return st;
    at = 2;
    for (size_t i = 0; i < AS_ARRAY_LEN(part); at += part[i] ? n_of[i] : 0, i++)
        divide(part[i], all + at, n_of[i], all[0]);
    s->loss_sum = (float)all[1];
    s->steps = (int32_t)r->ops->step(r->self);
    g->weight = 1;
    g->loss = s->loss_sum;
    return r->ops->state_put(r->self, s, err);
}

/* All models come to their peers before the mean is made of them. */
static as_status drain(struct gossip *g, struct coll *c, struct as_err *err)
{
    const struct replica *r = g->replica;
    struct coll_id id = {
        .step = (uint64_t)r->ops->step(r->self), .tag = TAG_DRAINED, .what = "common step"};
    as_status st = gossip_read_model(g, err);
    if (st < 0)
        return st;
    bool changed = gossip_settle_out(g, true);
    st = coll_barrier(c, id, err);
    if (st == AS_OK)
        changed = gossip_take_in(g) || changed;
    if (!changed)
        return st;
    as_status written = gossip_write_model(g, err);
    return st < 0 ? st : written;
}

as_status gossip_common_step(struct gossip *g, struct coll *c, struct backend *lane,
                             unsigned wishes, unsigned *ret, struct as_err *err)
{
    struct replica *r = g->replica;
    uint32_t total = r->ops->shards(r->self, 0);
    float share;
    coll_spread(total, g->n_ranks, g->runs);
    as_status st = drain(g, c, err);
    if (st < 0 || (st = average(g, c, err)) < 0 ||
        (st = gossip_compute(g, lane, g->runs[g->rank], wishes, &share, err)) < 0)
        return st;
    struct coll_id id = {
        .step = (uint64_t)r->ops->step(r->self), .tag = TAG_SUM, .what = "gradients"};
    st = coll_tree_sum(c, id, &reduce_f32_sum, g->runs, total, g->own, g->sum,
                       r->n_numbers + STRATEGY_WISHES, err);
    if (st < 0)
        return st;
    *ret |= strategy_wishes_read(g->sum + r->n_numbers);
    if ((st = r->ops->update(r->self, lane, g->sum, err)) < 0)
        return st;
    st = gossip_read_model(g, err);
    g->loss = g->state.loss_sum;
    return st == AS_OK && g->n_ranks > 1 ? gossip_set_reached(g, r->ops->step(r->self), err) : st;
}

bool gossip_is_common(const struct replica *r, int64_t ahead)
{
    return (r->ops->step(r->self) + ahead + 1) % COMMON_STEPS == 0 ||
           r->ops->shards(r->self, ahead + 1) == 0;
}

int64_t gossip_next_common(const struct replica *r)
{
    int64_t ahead = 0;
    while (!gossip_is_common(r, ahead))
        ahead++;
    return r->ops->step(r->self) + ahead;
}
