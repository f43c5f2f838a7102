/* The layers of the network are placed on the ranks (model_parallel; Dean et al. 2012: DistBelief).
 *
 * A step: the shards of the batch go through the blocks as through a pipeline (block_pass.c); each
 * rank adds up the gradients of its blocks in the order of the tree over the shards, as one rank
 * alone does for all blocks; each sends its sums to the rank that has the copies of its blocks; all
 * agree that they have what they need; each applies its sums (block_state.c).
 *
 * Nothing changes before they have agreed. Who has not come through that, though others have, has
 * its sums all the same: in the next world it gets what was agreed on, and completes the step
 * itself. So a step is done by all that live, or by none.
 *
 * When an epoch begins, ranks tell each other how long they have computed. If one is much slower
 * than others would be, all place the blocks anew, with the same bits (block_placement.h).
 *
 * What is promised: with two copies, of the last world in which all have met, the death of ranks
 * among which no two are neighbours (the last stage and the first are neighbours, too). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "trial-runner/distributed/block_pass.h"
#include "trial-runner/distributed/block_placement.h"
#include "trial-runner/distributed/block_state.h"
#include "trial-runner/distributed/own_sum.h"

enum { TAG_COPY = 32, TAG_AGREE, TAG_STANDING, TAG_HELD, TAG_RESULT, TAG_TIMES };

/* In a new world blocks stay until the slowest rank has computed so long, after each move twice as
 * long as before: where measurements are noise, moves become rare. */
#define MEASURED_NS (1 * NS_PER_S)

/* What ranks agree on at the end of a step. */
struct agreed {
    int64_t step; /* -1: none */
    float loss, scale;
    int64_t active;
};

/* What each tells the others there; the squared norms of its blocks follow. */
struct account {
    double loss, wishes;
};

struct model_parallel {
    struct replica *replica;
    const struct replica_blocks *blocks;
    float clip_norm; /* 0: gradients are not clipped */
    bool copies;
    struct backend *lane; /* of the last step; NULL: none was begun */
    struct block_states *states;
    /* Of the last world in which all have met: */
    size_t *bounds; /* [n_blocks + 1] */
    struct block_places places;
    int64_t measured_from_ns; /* of busy_ns: what is behind it was computed for these places */
    int64_t measured_ns;      /* blocks stay until the slowest rank has computed so long */
    bool epoch_is_over;       /* after the last step, which all have done */
    struct block_pass *pass;  /* NULL: this rank has no blocks */
    struct own_sum *own;      /* the same */
    struct block_sums sums, copied;
    float *copied_values; /* owned, those of `copied` */
    int64_t summed;       /* the step whose sums are complete here, and not applied; -1: none */
    struct agreed last;
};

static void leave_places(struct model_parallel *m)
{
    block_pass_free(m->pass);
    own_sum_free(m->own);
    free(m->copied_values);
    m->pass = NULL;
    m->own = NULL;
    m->copied_values = NULL;
    m->sums = m->copied = (struct block_sums){0};
    m->summed = -1;
}

static void model_parallel_free(void *self)
{
    struct model_parallel *m = self;
    if (!m)
        return;
    leave_places(m);
    block_states_free(m->states);
    free(m->bounds);
    free(m);
}

static inline void model_parallel_freep(struct model_parallel **m)
{
    model_parallel_free(*m);
}

static as_status model_parallel_create(const struct strategy_setup *setup, void **ret,
                                       struct as_err *err)
{
    struct replica *r = setup->replica;
    if (!r->blocks)
        return as_fail(err, AS_E_UNSUPPORTED,
                       "/train/distributed/model_parallel: this replica has no blocks");
    AS_AUTO(model_parallel_freep) struct model_parallel *m = as_calloc(1, sizeof *m);
    if (!m)
        return as_fail_nomem(err);
    *m = (struct model_parallel){.replica = r,
                                 .blocks = r->blocks,
                                 .clip_norm = (float)setup->spec->optimizer.clip_norm,
                                 .copies = setup->spec->distributed.state_copies > 1,
                                 .summed = -1,
                                 .last = {.step = -1}};
    m->bounds = as_calloc(r->blocks->n + 1, sizeof *m->bounds);
    if (!m->bounds)
        return as_fail_nomem(err);
    as_status st = block_states_create(r, &m->states, err);
    if (st < 0)
        return st;
    *ret = as_steal(m);
    return AS_OK;
}

/* ---- places ---- */

/* ret: [blocks], the caller's. AS_E_NOMEM. */
static as_status list_costs(const struct model_parallel *m, double **ret, struct as_err *err)
{
    double *cost = as_calloc(m->blocks->n, sizeof *cost);
    if (!cost)
        return as_fail_nomem(err);
    for (size_t i = 0; i < m->blocks->n; i++)
        cost[i] = m->blocks->of[i].flops;
    *ret = cost;
    return AS_OK;
}

/* In a new world ranks count as equal. */
static as_status place(struct model_parallel *m, int32_t ranks, struct as_err *err)
{
    size_t n = m->blocks->n, stages = (size_t)ranks < n ? (size_t)ranks : n;
    AS_AUTO(as_freep) double *cost = NULL;
    as_status st = list_costs(m, &cost, err);
    if (st < 0)
        return st;
    if ((st = block_placement(cost, NULL, n, stages, m->bounds, err)) < 0)
        return st;
    m->places = (struct block_places){
        .stages = stages, .bounds = m->bounds, .copied = m->copies && stages > 1};
    m->epoch_is_over = false;
    m->measured_ns = MEASURED_NS;
    return AS_OK;
}

/* What this rank needs to compute the blocks of its place. */
static as_status take_place(struct model_parallel *m, int32_t rank, struct as_err *err)
{
    const struct replica *r = m->replica;
    size_t first, end, n, copied;
    leave_places(m);
    m->measured_from_ns = m->blocks->ops->busy_ns(m->blocks->self);
    block_places_own(&m->places, rank, &first, &end);
    block_places_copies(&m->places, rank, &m->copied.first, &m->copied.end);
    m->sums.first = first;
    m->sums.end = end;
    n = block_sums_length(m->blocks, first, end) + 1; /* and the loss */
    copied = block_sums_length(m->blocks, m->copied.first, m->copied.end);
    size_t sets = first < end ? block_pass_sets((size_t)rank, m->places.stages, r->max_shards) : 1;
    as_status st = m->blocks->ops->hold(m->blocks->self, first, end, sets, err);
    if (st < 0 || first == end)
        return st;
    m->copied.values = m->copied_values = as_calloc(copied, sizeof(float));
    if (!m->copied_values)
        return as_fail_nomem(err);
    if ((st = block_pass_create(r, (size_t)rank, m->places.stages, first, end, &m->pass, err)) <
            0 ||
        (st = own_sum_create(OWN_TREE, n, r->max_shards, &m->own, err)) < 0)
        return st;
    return block_states_put(m->states, first, end, err);
}

/* For people, and for tests. */
static void tell_place(const struct model_parallel *m, const struct coll *c)
{
    int32_t rank = coll_rank(c), n = coll_size(c);
    if (!m->pass)
        (void)printf("rank %d of %d: none of %zu blocks\n", (int)rank, (int)n, m->blocks->n);
    else
        (void)printf("rank %d of %d: blocks %zu to %zu of %zu, %zu bytes of weights and moments\n",
                     (int)rank, (int)n, m->sums.first + 1, m->sums.end, m->blocks->n,
                     block_states_bytes(m->states));
}

/* ---- a step ---- */

static as_status take(void *arg, uint32_t shard, const float *gradient, const float *statistics,
                      float loss, struct as_err *err)
{
    struct model_parallel *m = arg;
    const struct replica *r = m->replica;
    const struct replica_block *first = &m->blocks->of[m->sums.first];
    const struct replica_block *last = &m->blocks->of[m->sums.end - 1];
    size_t n = last->first + last->n - first->first;
    size_t n_state = last->first_state + last->n_state - first->first_state;
    float share = r->ops->share(r->self, 0, shard);
    as_status st = own_sum_open(m->own, shard, err);
    if (st < 0)
        return st;
    own_sum_add(m->own, 0, gradient, n, share);
    own_sum_add(m->own, n, statistics, n_state, share);
    own_sum_add(m->own, n + n_state, &loss, 1, 1);
    own_sum_close(m->own);
    return AS_OK;
}

/* The sums of this stage go to the next one, which has the copies of its blocks. */
static as_status exchange_sums(struct model_parallel *m, struct coll *c, int64_t step,
                               struct as_err *err)
{
    int32_t stages = (int32_t)m->places.stages, own = coll_rank(c);
    if (!m->places.copied || own >= stages)
        return AS_OK;
    const struct coll_message sent = {
        .peer = (own + 1) % stages,
        .from = m->sums.values,
        .bytes = block_sums_length(m->blocks, m->sums.first, m->sums.end) * sizeof(float)};
    const struct coll_message received = {
        .peer = (own + stages - 1) % stages,
        .to = m->copied_values,
        .bytes = block_sums_length(m->blocks, m->copied.first, m->copied.end) * sizeof(float)};
    const struct coll_id id = {.step = (uint64_t)step, .tag = TAG_COPY, .what = "sums of layers"};
    return coll_exchange(c, id, &sent, 1, &received, 1, err);
}

static as_status compute(struct model_parallel *m, struct coll *c, struct backend *lane,
                         int64_t step, struct as_err *err)
{
    const struct replica *r = m->replica;
    const struct block_sink sink = {take, m};
    uint32_t shards = r->ops->shards(r->self, 0);
    if (!m->pass)
        return AS_OK;
    own_sum_begin(m->own, step, shards, (struct shard_run){0, shards});
    as_status st = block_pass_run(m->pass, c, lane, &sink, err);
    if (st < 0)
        return st;
    m->sums.values = own_sum_values(m->own)[0];
    return exchange_sums(m, c, step, err);
}

/* In double precision, one number after the other: equal bits for a block, wherever it is. */
static double square_of(const struct model_parallel *m, size_t block)
{
    const struct replica_block *b = &m->blocks->of[block];
    const float *g = m->sums.values + (b->first - m->blocks->of[m->sums.first].first);
    double sum = 0;
    for (size_t i = 0; i < b->n; i++)
        sum += (double)g[i] * (double)g[i];
    return sum;
}

static void put_account(const struct model_parallel *m, double *to, unsigned wishes)
{
    const struct account own = {.wishes = wishes};
    memcpy(to, &own, sizeof own);
    if (m->pass && m->sums.end == m->blocks->n)
        to[0] = (double)m->sums.values[block_sums_length(m->blocks, m->sums.first, m->sums.end)];
    for (size_t i = m->sums.first; m->clip_norm > 0 && i < m->sums.end; i++)
        to[2 + i] = square_of(m, i);
}

/* From the accounts of all, `each` numbers long; the same on every rank. */
static as_status settle(const struct model_parallel *m, const double *all, size_t each, int32_t n,
                        int64_t step, struct agreed *ret, unsigned *ret_wishes, struct as_err *err)
{
    struct replica_numbers now;
    double norm = 0;
    as_status st = m->blocks->ops->numbers(m->blocks->self, &now, err);
    if (st < 0)
        return st;
    *ret_wishes = 0;
    for (int32_t r = 0; r < n; r++)
        *ret_wishes |= (unsigned)all[(size_t)r * each + 1];
    for (size_t s = 0; m->clip_norm > 0 && s < m->places.stages; s++)
        for (size_t i = m->places.bounds[s]; i < m->places.bounds[s + 1]; i++)
            norm += all[s * each + 2 + i];
    norm = sqrt(norm);
    double most = (double)m->clip_norm;
    bool clips = most > 0 && isfinite(norm) && most < norm + 1e-6; /* as backend_grad_clip() */
    *ret = (struct agreed){.step = step,
                           .loss = (float)all[(m->places.stages - 1) * each],
                           .scale = clips ? (float)(most / (norm + 1e-6)) : 1,
                           .active = now.active && isfinite(norm)};
    return AS_OK;
}

static as_status agree(struct model_parallel *m, struct coll *c, int64_t step, unsigned wishes,
                       struct agreed *ret, unsigned *ret_wishes, struct as_err *err)
{
    size_t each = 2 + (m->clip_norm > 0 ? m->blocks->n : 0), n = (size_t)coll_size(c);
    const struct coll_id id = {.step = (uint64_t)step, .tag = TAG_AGREE, .what = "a step"};
    AS_AUTO(as_freep) double *all = as_calloc(n * each, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    put_account(m, all + (size_t)coll_rank(c) * each, wishes);
    as_status st = coll_allgather(c, id, all, n, each * sizeof *all, err);
    return st < 0 ? st : settle(m, all, each, coll_size(c), step, ret, ret_wishes, err);
}

/* All that live do it, here or in the next world. */
static as_status complete(struct model_parallel *m, const struct agreed *a, struct as_err *err)
{
    as_status st;
    bool active = a->active != 0;
    if ((st = block_states_apply(m->states, m->lane, a->step, &m->sums, a->scale, active, err)) <
            0 ||
        (st = block_states_apply(m->states, m->lane, a->step, &m->copied, a->scale, active, err)) <
            0 ||
        (st = m->blocks->ops->done(m->blocks->self, a->loss, active, err)) < 0)
        return st;
    m->summed = -1;
    m->last = *a;
    m->epoch_is_over = m->replica->ops->shards(m->replica->self, 0) == 0;
    return AS_OK;
}

/* ---- blocks of slow ranks go to others ---- */

/* times [ranks]: of each since blocks were placed. */
static as_status exchange_times(const struct model_parallel *m, struct coll *c, int64_t step,
                                double *times, struct as_err *err)
{
    const struct coll_id id = {.step = (uint64_t)step, .tag = TAG_TIMES, .what = "times of blocks"};
    int64_t busy_ns = m->blocks->ops->busy_ns(m->blocks->self) - m->measured_from_ns;
    times[coll_rank(c)] = (double)busy_ns;
    return coll_allgather(c, id, times, (size_t)coll_size(c), sizeof *times, err);
}

/* bounds [blocks + 1]. True on all ranks, or on none. */
static as_status find_places(struct model_parallel *m, struct coll *c, int64_t step, size_t *bounds,
                             bool *ret, struct as_err *err)
{
    size_t n = m->blocks->n, stages = m->places.stages;
    double most = 0;
    AS_AUTO(as_freep) double *cost = NULL;
    AS_AUTO(as_freep) double *times = as_calloc((size_t)coll_size(c), sizeof *times);
    as_status st = times ? list_costs(m, &cost, err) : as_fail_nomem(err);
    if (st < 0 || (st = exchange_times(m, c, step, times, err)) < 0)
        return st;
    for (size_t s = 0; s < stages; s++)
        most = fmax(most, times[s]);
    *ret = false;
    if (most < (double)m->measured_ns)
        return AS_OK;
    m->measured_from_ns = m->blocks->ops->busy_ns(m->blocks->self);
    return block_placement_anew(cost, times, n, stages, m->bounds, bounds, ret, err);
}

/* Between two epochs, in a world whose ranks have measured. Nothing is given up before all have
 * their blocks, as in a meeting. */
static as_status move_to_faster(struct model_parallel *m, struct coll *c, int64_t step,
                                struct as_err *err)
{
    size_t stages = m->places.stages;
    bool moves = false;
    m->epoch_is_over = false;
    if (stages == 1 || stages == m->blocks->n)
        return AS_OK;
    AS_AUTO(as_freep) size_t *bounds = as_calloc(stages + 1, sizeof *bounds);
    as_status st = bounds ? find_places(m, c, step, bounds, &moves, err) : as_fail_nomem(err);
    if (st < 0 || !moves)
        return st;
    const struct block_places places = {
        .stages = stages, .bounds = bounds, .copied = m->places.copied};
    if ((st = block_states_move(m->states, c, &places, err)) < 0)
        return st;
    memcpy(m->bounds, bounds, (stages + 1) * sizeof *bounds);
    m->measured_ns *= 2;
    if ((st = take_place(m, coll_rank(c), err)) < 0)
        return st;
    (void)printf("blocks have moved from slower ranks to faster ones before step %lld\n",
                 (long long)step);
    tell_place(m, c);
    return AS_OK;
}

static as_status model_parallel_run(void *self, struct coll *c, struct backend *lane,
                                    unsigned wishes, unsigned *ret, struct as_err *err)
{
    struct model_parallel *m = self;
    int64_t step = m->replica->ops->step(m->replica->self);
    struct agreed now;
    as_status st;
    m->blocks->ops->whole_drop(m->blocks->self); /* a checkpoint was written */
    m->lane = lane;
    m->summed = -1;
    if (m->epoch_is_over && (st = move_to_faster(m, c, step, err)) < 0)
        return st;
    if ((st = compute(m, c, lane, step, err)) < 0)
        return st;
    m->summed = step;
    if ((st = agree(m, c, step, wishes, &now, ret, err)) < 0 || (st = complete(m, &now, err)) < 0)
        return st;
    return block_states_put(m->states, m->sums.first, m->sums.end, err);
}

/* ---- meeting ---- */

/* Each learns what was agreed on last; who has its sums of that step completes it. */
static as_status learn_last(struct model_parallel *m, struct meeting *meeting, struct as_err *err)
{
    struct coll *c = meeting->coll;
    size_t n = (size_t)coll_size(c);
    AS_AUTO(as_freep) struct agreed *all = as_calloc(n, sizeof *all);
    if (!all)
        return as_fail_nomem(err);
    all[coll_rank(c)] = m->last;
    as_status st = coll_allgather(c, (struct coll_id){.tag = TAG_STANDING, .what = "blocks"}, all,
                                  n, sizeof *all, err);
    if (st < 0)
        return st;
    for (size_t r = 0; r < n; r++)
        if (all[r].step > m->last.step)
            m->last = all[r];
    if (m->summed < 0 || m->summed != m->last.step)
        return AS_OK;
    meeting->moved = true; /* the trainer looks anew where it is */
    (void)printf("step %lld, which others had completed, is completed here\n",
                 (long long)m->last.step);
    return complete(m, &m->last, err);
}

static as_status model_parallel_meet(void *self, struct meeting *meeting, struct as_err *err)
{
    struct model_parallel *m = self;
    struct coll *c = meeting->coll;
    as_status st;
    if ((st = learn_last(m, meeting, err)) < 0 || (st = meeting_catch_up(meeting, err)) < 0 ||
        (st = place(m, coll_size(c), err)) < 0 ||
        (st = block_states_move(m->states, c, &m->places, err)) < 0 ||
        (st = take_place(m, coll_rank(c), err)) < 0)
        return st;
    tell_place(m, c);
    return AS_OK;
}

/* ---- checkpoints, held-out rows ---- */

static as_status model_parallel_restored(void *self, bool from_checkpoint, struct as_err *err)
{
    struct model_parallel *m = self;
    (void)err;
    if (from_checkpoint)
        block_states_restored(m->states);
    return AS_OK;
}

static as_status model_parallel_gather(void *self, struct coll *c, struct backend *lane,
                                       struct as_err *err)
{
    struct model_parallel *m = self;
    (void)lane;
    return block_states_gather(m->states, c, &m->places, err);
}

static as_status evaluate_batch(struct model_parallel *m, struct coll *c, struct backend *lane,
                                const struct held_pass *pass, size_t batch, struct as_err *err)
{
    const struct replica_block *of = m->blocks->of;
    int32_t own = coll_rank(c);
    bool last = m->sums.end == m->blocks->n;
    size_t rows = pass->rows(pass->arg, batch);
    size_t in = rows * of[m->sums.first].in, out = rows * of[m->sums.end - 1].out;
    const struct coll_id id = {.step = batch, .tag = TAG_HELD, .what = "held-out rows"};
    AS_AUTO(as_freep) float *from = own > 0 ? as_calloc(in, sizeof *from) : NULL;
    AS_AUTO(as_freep) float *to = last ? NULL : as_calloc(out, sizeof *to);
    if ((own > 0 && !from) || (!last && !to))
        return as_fail_nomem(err);
    as_status st = from ? coll_receive(c, id, own - 1, from, in * sizeof *from, err) : AS_OK;
    if (st < 0 || (st = pass->forward(pass->arg, lane, batch, from, to, err)) < 0 || last)
        return st;
    return coll_send(c, id, own + 1, to, out * sizeof *to, err);
}

static as_status model_parallel_evaluate(void *self, struct coll *c, struct backend *lane,
                                         const struct held_pass *pass, struct as_err *err)
{
    struct model_parallel *m = self;
    as_status st = AS_OK;
    for (size_t i = 0; st == AS_OK && m->pass && i < pass->n; i++)
        st = evaluate_batch(m, c, lane, pass, i, err);
    for (size_t i = 0; st == AS_OK && i < pass->n_results; i++)
        st = coll_broadcast(c, (struct coll_id){.step = i, .tag = TAG_RESULT, .what = "metrics"},
                            (int32_t)m->places.stages - 1, pass->results[i].values,
                            pass->results[i].bytes, err);
    return st;
}

const struct strategy_ops strategy_model_parallel = {
    .name = "model_parallel",
    .create = model_parallel_create,
    .free = model_parallel_free,
    .run = model_parallel_run,
    .restored = model_parallel_restored,
    .gather = model_parallel_gather,
    .evaluate = model_parallel_evaluate,
    .meet = model_parallel_meet,
};
