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
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/collective/mailbox.h"
#include "trial-runner/distributed/push_sum.h"
#include "trial-runner/distributed/shard_tree.h"
#include "trial-runner/distributed/strategy.h"

#define COMMON_STEPS 256
#define UNREAD_MAX 16 /* models that wait for this rank; beyond it says no */
#define FACTOR_MAX 2  /* by which a step may be longer than the optimizer's */

enum {
    GIVE = 1,
    ASK = 2,  /* the mail's step: answered, with the step of the rank, when it has come so far */
    NUDGE = 3 /* of a rank to itself: it has come further */
};
enum { TAG_DRAINED = 1, TAG_MEAN, TAG_SUM, TAG_RECORDS, TAG_WEIGHT };
enum { N_WISHES = 2 };

/* Begins a message; the weights and statistics follow. */
struct given {
    double weight;
};

/* A model that has come, or one that is on its way out. */
struct parcel {
    struct parcel *next;
    double weight;
    struct mail_call call; /* of one that goes out */
    float *model;          /* [n_weights]; behind this struct */
};

struct gossip {
    struct replica *replica;
    uint64_t seed;
    uint32_t peers;
    int64_t staleness;
    size_t n_weights; /* parameters and statistics */
    double weight;
    struct slot_state state; /* room */
    float *model;            /* [n_weights] */
    float *before;           /* [n_params]: the weights before a step */
    float **partials;        /* [max_shards] of n_numbers + N_WISHES */
    const void **own;
    float *sum;
    struct shard_run *runs;
    float loss; /* of the epoch, at the last common step */
    bool begun; /* this rank has a model that counts */

    /* For the current world: */
    uint32_t epoch;
    int32_t rank, n_ranks;
    struct mailbox *box;
    struct parcel *out;
    int64_t *known; /* [n_ranks]: steps that each rank has done at least */

    pthread_mutex_t lock; /* guards what follows */
    struct parcel *in;
    uint32_t unread;
    int64_t reached;     /* steps that this rank has done */
    struct mail **asked; /* [n_ranks]: who waits for this rank; NULL: not */
};

/* ---- life ---- */

static struct parcel *parcel_new(const struct gossip *g, double weight)
{
    struct parcel *p = as_calloc(1, sizeof *p + g->n_weights * sizeof(float));
    if (p) {
        p->weight = weight;
        p->model = (float *)(void *)(p + 1);
    }
    return p;
}

static void free_parcels(struct parcel *p)
{
    while (p) {
        struct parcel *next = p->next;
        free(p->call.answer);
        free(p);
        p = next;
    }
}

static void gossip_free(void *self)
{
    struct gossip *g = self;
    if (!g)
        return;
    mailbox_free(g->box);
    free_parcels(g->in);
    free_parcels(g->out);
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
    g->sum = as_calloc(r->n_numbers + N_WISHES, sizeof *g->sum);
    g->model = as_calloc(g->n_weights, sizeof *g->model);
    g->before = as_calloc(r->n_params, sizeof *g->before);
    g->runs = as_calloc(WORLD_MAX_RANKS, sizeof *g->runs);
    if (!g->partials || !g->own || !g->sum || !g->model || !g->before || !g->runs)
        return as_fail_nomem(err);
    *ret = as_steal(g);
    return AS_OK;
}

/* ---- the mailbox ---- */

/* Answers a rank that has asked; NULL: nobody. */
static void answer_step(struct mailbox *b, struct mail *m, int64_t reached)
{
    struct mail_part part = {&reached, sizeof reached};
    if (m)
        mailbox_answer(b, m, AS_OK, &part, 1);
}

static void on_ask(struct gossip *g, struct mailbox *b, struct mail *m)
{
    (void)pthread_mutex_lock(&g->lock);
    int64_t reached = g->reached;
    struct mail *before = g->asked[m->from]; /* it asks once at a time: an older one is void */
    bool waits = (int64_t)m->step > reached;
    g->asked[m->from] = waits ? m : NULL;
    (void)pthread_mutex_unlock(&g->lock);
    answer_step(b, before, reached);
    if (!waits)
        answer_step(b, m, reached);
}

static void on_nudge(struct gossip *g, struct mailbox *b, struct mail *m)
{
    for (int32_t r = 0; r < g->n_ranks; r++) {
        struct mail *ready = NULL;
        (void)pthread_mutex_lock(&g->lock);
        int64_t reached = g->reached;
        if (g->asked[r] && (int64_t)g->asked[r]->step <= reached) {
            ready = g->asked[r];
            g->asked[r] = NULL;
        }
        (void)pthread_mutex_unlock(&g->lock);
        answer_step(b, ready, reached);
    }
    mailbox_answer(b, m, AS_OK, NULL, 0);
}

/* Who is lost waits no more. */
static void on_lost(void *arg, struct mailbox *b, int32_t rank)
{
    struct gossip *g = arg;
    (void)pthread_mutex_lock(&g->lock);
    struct mail *m = g->asked[rank];
    g->asked[rank] = NULL;
    (void)pthread_mutex_unlock(&g->lock);
    if (m)
        mailbox_answer(b, m, AS_E_UNAVAILABLE, NULL, 0);
}

static void on_give(struct gossip *g, struct mailbox *b, struct mail *m)
{
    struct given head;
    bool sound = m->n == sizeof head + g->n_weights * sizeof(float);
    if (sound) {
        memcpy(&head, m->bytes, sizeof head);
        sound = head.weight > 0 && head.weight < 1e9;
    }
    struct parcel *p = sound ? parcel_new(g, head.weight) : NULL;
    as_status st = p ? AS_OK : sound ? AS_E_NOMEM : AS_E_INVAL;
    if (p) {
        memcpy(p->model, m->bytes + sizeof head, g->n_weights * sizeof(float));
        (void)pthread_mutex_lock(&g->lock);
        if (g->unread < UNREAD_MAX) {
            p->next = g->in;
            g->in = p;
            g->unread++;
        } else {
            st = AS_E_EXHAUSTED;
        }
        (void)pthread_mutex_unlock(&g->lock);
    }
    if (st != AS_OK)
        free(p);
    mailbox_answer(b, m, st, NULL, 0);
}

static void on_request(void *arg, struct mailbox *b, struct mail *m)
{
    if (m->kind == GIVE)
        on_give(arg, b, m);
    else if (m->kind == ASK)
        on_ask(arg, b, m);
    else if (m->kind == NUDGE)
        on_nudge(arg, b, m);
    else
        mailbox_answer(b, m, AS_E_INVAL, NULL, 0);
}

/* This rank has done so many steps: who waits for that hears of it. */
static as_status set_reached(struct gossip *g, int64_t step, struct as_err *err)
{
    bool wanted = false;
    (void)pthread_mutex_lock(&g->lock);
    g->reached = step;
    for (int32_t r = 0; r < g->n_ranks; r++)
        wanted = wanted || (g->asked[r] && (int64_t)g->asked[r]->step <= step);
    (void)pthread_mutex_unlock(&g->lock);
    struct mail_call call = {.to = g->rank, .kind = NUDGE, .step = (uint64_t)step};
    if (!wanted)
        return AS_OK;
    mailbox_begin(g->box, &call);
    as_status st = mailbox_finish(g->box, &call, err);
    free(call.answer);
    return st;
}

/* Waits until the peer has done `step` steps, or is lost. AS_E_UNAVAILABLE: the epoch is over. */
static as_status await_peer(struct gossip *g, struct coll *c, int32_t to, int64_t step,
                            struct as_err *err)
{
    struct mail_call call = {.to = to, .kind = ASK, .step = (uint64_t)step};
    if (g->known[to] >= step)
        return AS_OK;
    mailbox_begin(g->box, &call);
    as_status st = mailbox_finish(g->box, &call, err);
    if (st == AS_OK && call.answer_n == sizeof g->known[to])
        memcpy(&g->known[to], call.answer, sizeof g->known[to]);
    free(call.answer);
    return st == AS_E_UNAVAILABLE && !coll_is_over(c) ? AS_OK : st;
}

/* ---- the model ---- */

/* A view of the state with weights and statistics alone, in g->model. */
static struct slot_state model_of(const struct gossip *g)
{
    struct slot_state s = g->state;
    s.params = g->model;
    s.statistics = g->replica->n_state ? g->model + g->replica->n_params : NULL;
    s.moment1 = s.moment2 = s.average = NULL;
    return s;
}

static as_status read_model(struct gossip *g, struct as_err *err)
{
    struct slot_state s = model_of(g);
    as_status st = g->replica->ops->state_get(g->replica->self, &s, err);
    g->state.steps = s.steps;
    g->state.active = s.active;
    g->state.loss_sum = s.loss_sum;
    return st;
}

static as_status write_model(struct gossip *g, struct as_err *err)
{
    struct slot_state s = model_of(g);
    return g->replica->ops->state_put(g->replica->self, &s, err);
}

/* Takes back what did not arrive, and forgets what did; `wait`: for all of it. True if the model
 * has changed. */
static bool settle_out(struct gossip *g, bool wait)
{
    bool changed = false;
    for (struct parcel **at = &g->out; *at;) {
        struct parcel *p = *at;
        if (!wait && !mailbox_is_done(g->box, &p->call)) {
            at = &p->next;
            continue;
        }
        if (mailbox_finish(g->box, &p->call, NULL) < 0) {
            push_sum_take(g->model, &g->weight, p->model, p->weight, g->n_weights);
            changed = true;
        }
        *at = p->next;
        p->next = NULL;
        free_parcels(p);
    }
    return changed;
}

static bool take_in(struct gossip *g)
{
    (void)pthread_mutex_lock(&g->lock);
    struct parcel *in = g->in;
    g->in = NULL;
    g->unread = 0;
    (void)pthread_mutex_unlock(&g->lock);
    for (struct parcel *p = in; p; p = p->next)
        push_sum_take(g->model, &g->weight, p->model, p->weight, g->n_weights);
    free_parcels(in);
    return in != NULL;
}

/* Gives a part of the weight to a random peer. To one that has not answered yet nothing is
 * given. */
static as_status give(struct gossip *g, struct coll *c, int64_t step, uint32_t index,
                      struct as_err *err)
{
    int32_t to = push_sum_peer(g->seed, (uint64_t)step, index, g->rank, g->n_ranks);
    as_status st = await_peer(g, c, to, step + 1 - g->staleness, err);
    if (st < 0)
        return st;
    for (const struct parcel *p = g->out; p; p = p->next)
        if (p->call.to == to)
            return AS_OK;
    if (mailbox_has_lost(g->box, to))
        return AS_OK;
    struct parcel *p = parcel_new(g, 0);
    if (!p)
        return as_fail_nomem(err);
    memcpy(p->model, g->model, g->n_weights * sizeof(float));
    p->weight = push_sum_give(&g->weight);
    p->call = (struct mail_call){
        .to = to,
        .kind = GIVE,
        .step = (uint64_t)step,
        .parts = {{&p->weight, sizeof p->weight}, {p->model, g->n_weights * sizeof(float)}}};
    p->next = g->out;
    g->out = p;
    mailbox_begin(g->box, &p->call);
    return AS_OK;
}

/* Leaves the world: what is on its way out and has not arrived comes back. */
static as_status leave(struct gossip *g, struct as_err *err)
{
    as_status st = AS_OK;
    if (!g->box)
        return st;
    st = read_model(g, err);
    struct parcel *out = g->out;
    mailbox_free(as_steal(g->box)); /* ends all calls */
    g->out = NULL;
    for (struct parcel *p = out; p; p = p->next)
        if (p->call.status < 0)
            push_sum_take(g->model, &g->weight, p->model, p->weight, g->n_weights);
    (void)take_in(g);
    free_parcels(out);
    g->epoch = 0;
    return st < 0 ? st : write_model(g, err);
}

static as_status join(struct gossip *g, struct coll *c, struct as_err *err)
{
    struct mailbox_opts opts = {.max_bytes = sizeof(struct given) + g->n_weights * sizeof(float),
                                .on_request = on_request,
                                .on_lost = on_lost,
                                .arg = g};
    as_status st = leave(g, err);
    if (st < 0)
        return st;
    g->rank = coll_rank(c);
    g->n_ranks = coll_size(c);
    g->reached = g->replica->ops->step(g->replica->self);
    free(g->known);
    free(g->asked);
    g->known = as_calloc((size_t)g->n_ranks, sizeof *g->known);
    g->asked = as_calloc((size_t)g->n_ranks, sizeof *g->asked);
    if (!g->known || !g->asked)
        return as_fail_nomem(err);
    st = mailbox_create(c, &opts, &g->box, err);
    g->epoch = coll_world(c)->epoch;
    return st;
}

/* ---- steps ---- */

/* The gradients of this rank's shards of the batch at the position, as shares of the batch. */
static as_status compute_run(struct gossip *g, struct backend *lane, struct shard_run run,
                             unsigned wishes, float *ret_share, struct as_err *err)
{
    struct replica *r = g->replica;
    *ret_share = 0;
    for (uint32_t i = 0; i < run.count; i++) {
        uint32_t shard = run.first + i;
        if (!g->partials[shard] &&
            !(g->partials[shard] = as_calloc(r->n_numbers + N_WISHES, sizeof(float))))
            return as_fail_nomem(err);
        float *to = g->partials[shard], share = r->ops->share(r->self, 0, shard);
        as_status st = r->ops->gradient(r->self, lane, 0, shard, to, err);
        if (st < 0)
            return st;
        for (size_t k = 0; k < g->n_weights; k++)
            to[k] *= share;
        for (size_t w = 0; w < N_WISHES; w++)
            to[r->n_numbers + w] = i == 0 && (wishes >> w & 1);
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
    as_status st = compute_run(g, lane, run, 0, &share, err);
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
    as_status st = read_model(g, err);
    if (st < 0)
        return st;
    memcpy(g->before, g->model, r->n_params * sizeof *g->before);
    if ((st = step_alone(g, lane, err)) < 0 || (st = set_reached(g, step + 1, err)) < 0 ||
        (st = read_model(g, err)) < 0)
        return st;
    step_for_weight(g);
    (void)settle_out(g, false);
    (void)take_in(g);
    for (uint32_t i = 0; st == AS_OK && i < g->peers && (int32_t)i < g->n_ranks - 1; i++)
        st = give(g, c, step, i, err);
    return st == AS_OK ? write_model(g, err) : st;
}

/* ---- common steps ---- */

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
    as_status st = read_model(g, err);
    if (st < 0)
        return st;
    bool changed = settle_out(g, true);
    st = coll_barrier(c, id, err);
    if (st == AS_OK)
        changed = take_in(g) || changed;
    if (!changed)
        return st;
    as_status written = write_model(g, err);
    return st < 0 ? st : written;
}

static as_status common_step(struct gossip *g, struct coll *c, struct backend *lane,
                             unsigned wishes, unsigned *ret, struct as_err *err)
{
    struct replica *r = g->replica;
    uint32_t total = r->ops->shards(r->self, 0);
    float share;
    coll_spread(total, g->n_ranks, g->runs);
    as_status st = drain(g, c, err);
    if (st < 0 || (st = average(g, c, err)) < 0 ||
        (st = compute_run(g, lane, g->runs[g->rank], wishes, &share, err)) < 0)
        return st;
    struct coll_id id = {
        .step = (uint64_t)r->ops->step(r->self), .tag = TAG_SUM, .what = "gradients"};
    st = coll_tree_sum(c, id, &reduce_f32_sum, g->runs, total, g->own, g->sum,
                       r->n_numbers + N_WISHES, err);
    for (size_t w = 0; st == AS_OK && w < N_WISHES; w++)
        *ret |= g->sum[r->n_numbers + w] > 0 ? 1U << w : 0U;
    if (st == AS_OK)
        st = r->ops->update(r->self, lane, g->sum, err);
    if (st < 0)
        return st;
    st = read_model(g, err);
    g->loss = g->state.loss_sum;
    return st == AS_OK && g->n_ranks > 1 ? set_reached(g, r->ops->step(r->self), err) : st;
}

static bool is_common(const struct replica *r, int64_t ahead)
{
    return (r->ops->step(r->self) + ahead + 1) % COMMON_STEPS == 0 ||
           r->ops->shards(r->self, ahead + 1) == 0;
}

/* The common step that a rank comes to from its position; behind the last one, the position. */
static int64_t next_common(const struct replica *r)
{
    int64_t ahead = 0;
    while (!is_common(r, ahead))
        ahead++;
    return r->ops->step(r->self) + ahead;
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
        st = join(g, c, err);
    if (st == AS_OK)
        st = begin_epoch(g, err);
    if (st == AS_OK)
        st = is_common(g->replica, 0) ? common_step(g, c, lane, wishes, ret, err)
                                      : gossip_step(g, c, lane, err);
    if (st == AS_E_UNAVAILABLE) {
        as_status left = leave(g, err);
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
    all[rank] = (struct record){m->steps[rank], next_common(r), g->begun};
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
