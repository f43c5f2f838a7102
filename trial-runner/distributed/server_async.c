/* A parameter server whose slices live in the ranks, without a common step.
 *
 * A worker is a group of ranks; without `groups` each rank is one. It takes a batch, computes its
 * gradient with the newest weights that it has, sends each slice of it to the rank that holds the
 * slice of the weights, which updates it at once, and gets the slice back (slice_service.h; Dean et
 * al. 2012). The ranks of a group add up their parts of a batch among themselves, in the order of
 * the tree over the shards, and the first of them talks to the server (MXNet-MPI: Mamidala et al.
 * 2018). One group is a synchronous server: it has the bits of a serial run.
 *
 * A call of run() is a phase: batches until the epoch is over, a rank wishes to stop, or PHASE_MS.
 * Then all slices are gathered, so that every rank has the whole state at the same position:
 * between phases a checkpoint needs nothing else.
 *
 * The first `warm_start` steps are phases of the first worker alone: the weights change most at
 * the beginning, where gradients of older ones are worst (Dean et al. 2012). The others get the
 * state at the end of these phases.
 *
 * With `compress` a worker encodes its gradients, and keeps what the messages lose. Batches come in
 * no order of shards, so a worker has one residual: the sum of those of a run of shards, which are
 * the worker's as long as the world lasts, and move like those of other strategies (residuals.h).
 *
 * When a rank dies, the other groups go on without it: its batches are given to others, and a slice
 * that it held stays as each worker got it last, until the next world (server_async_meet.c). */
#include "trial-runner/distributed/server_async_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/shard_tree.h"

#define PHASE_MS 10000

/* ---- life ---- */

/* Leaves the world. The slices stay, for what is put together in the next one. */
static void leave(struct async *a)
{
    mailbox_free(a->box);
    a->box = NULL;
    sum_service_free(a->sums);
    a->sums = NULL;
    a->epoch = 0;
}

static void close_phase(struct async *a)
{
    free(a->own);
    free(a->pulled);
    a->own = NULL;
    a->pulled = NULL;
    a->begun = 0;
}

static void async_free(void *self)
{
    struct async *a = self;
    if (!a)
        return;
    leave(a);
    close_phase(a);
    slice_service_free(a->slices);
    if (a->updater)
        a->updater->free(a->updater);
    for (uint32_t i = 0; a->partials && i < a->replica->max_shards; i++)
        free(a->partials[i]);
    free(a->partials);
    free(a->values.weights);
    push_form_done(&a->form);
    push_form_done(&a->holder);
    residuals_done(&a->kept);
    free(a->runs);
    slot_state_done(&a->state);
    free(a->losses);
    free(a->sum);
    free(a->node);
    free(a->message);
    free(a);
}

static inline void async_freep(struct async **a)
{
    async_free(*a);
}

static as_status async_create(const struct strategy_setup *setup, void **ret, struct as_err *err)
{
    const struct distributed_spec *d = &setup->spec->distributed;
    struct replica *r = setup->replica;
    size_t n = r->n_numbers + N_WORK;
    AS_AUTO(async_freep) struct async *a = as_calloc(1, sizeof *a);
    if (!a)
        return as_fail_nomem(err);
    *a = (struct async){.replica = r,
                        .slices_wanted = d->server_shards,
                        .groups_wanted = d->groups,
                        .warm_start = d->warm_start,
                        .of_group = {.n = n},
                        .n_weights = r->n_params + r->n_state};
    as_status st = r->ops->state_new(r->self, &a->state, err);
    if (st < 0)
        return st;
    a->partials = as_calloc(r->max_shards, sizeof *a->partials);
    a->values.weights = as_calloc(a->n_weights, sizeof(float));
    a->values.moment1 = a->state.moment1;
    a->values.moment2 = a->state.moment2;
    a->sum = as_calloc(n, sizeof *a->sum);
    a->node = as_calloc(n, sizeof *a->node);
    a->runs = as_calloc(WORLD_MAX_RANKS, sizeof *a->runs);
    if (!a->partials || !a->values.weights || !a->sum || !a->node || !a->runs)
        return as_fail_nomem(err);
    if ((st = push_form_init(&a->form, d, r, a->n_weights, err)) < 0 ||
        (st = push_form_init(&a->holder, d, r, a->n_weights, err)) < 0 ||
        (d->error_feedback &&
         (st = residuals_init(&a->kept, r->n_params, r->max_shards, false, err)) < 0))
        return st;
    *ret = as_steal(a);
    return AS_OK;
}

/* ---- the replica's state ---- */

as_status async_read_state(struct async *a, struct as_err *err)
{
    const struct replica *r = a->replica;
    as_status st = r->ops->state_get(r->self, &a->state, err);
    if (st < 0)
        return st;
    memcpy(a->values.weights, a->state.params, r->n_params * sizeof(float));
    if (r->n_state)
        memcpy(a->values.weights + r->n_params, a->state.statistics, r->n_state * sizeof(float));
    return AS_OK;
}

as_status async_write_state(struct async *a, bool moments, struct as_err *err)
{
    const struct replica *r = a->replica;
    struct slot_state s = a->state;
    s.params = a->values.weights;
    s.statistics = r->n_state ? a->values.weights + r->n_params : NULL;
    s.average = NULL;
    if (!moments)
        s.moment1 = s.moment2 = NULL;
    return r->ops->state_put(r->self, &s, err);
}

/* ---- a world ---- */

static void on_request(void *arg, struct mailbox *b, struct mail *m)
{
    struct async *a = arg;
    if (m->kind >= SLICE_PUSH)
        slice_service_request(a->slices, b, m);
    else
        sum_service_request(a->sums, b, m);
}

static void on_lost(void *arg, struct mailbox *b, int32_t rank)
{
    struct async *a = arg;
    slice_service_lost(a->slices, b, rank);
    sum_service_lost(a->sums, b, rank);
}

static int32_t count_groups(const struct async *a, int32_t n_ranks)
{
    return a->groups_wanted && a->groups_wanted < n_ranks ? (int32_t)a->groups_wanted : n_ranks;
}

static void choose_group(struct async *a)
{
    a->n_groups = count_groups(a, a->n_ranks);
    for (a->group = 0; a->group < a->n_groups; a->group++) {
        size_t first, end;
        coll_slice((size_t)a->n_ranks, a->n_groups, a->group, &first, &end);
        a->group_first = (int32_t)first;
        a->group_n = (int32_t)(end - first);
        if (a->rank < (int32_t)end)
            return;
    }
}

bool async_leads_group(const struct async *a)
{
    return a->rank == a->group_first;
}

void async_spread_residuals(struct async *a, const struct coll *c)
{
    int32_t n = coll_size(c), n_groups = count_groups(a, n);
    coll_spread(a->kept.shards, n_groups, a->runs);
    for (int32_t g = n_groups - 1; g >= 0; g--) { /* their places are not before g */
        size_t first, end;
        struct shard_run run = a->runs[g];
        coll_slice((size_t)n, n_groups, g, &first, &end);
        for (size_t r = first; r < end; r++)
            a->runs[r] = (struct shard_run){0};
        a->runs[first] = run;
    }
}

static as_status join(struct async *a, struct coll *c, struct backend *lane, struct as_err *err)
{
    const struct replica *r = a->replica;
    size_t n = r->n_numbers + N_WORK;
    leave(a);
    slice_service_free(a->slices);
    a->slices = NULL;
    a->rank = coll_rank(c);
    a->n_ranks = coll_size(c);
    a->n_slices = (uint32_t)(a->slices_wanted ? a->slices_wanted : a->n_ranks);
    a->round = 0;
    choose_group(a);
    as_status st = a->updater ? AS_OK : r->ops->updater_new(r->self, lane, &a->updater, err);
    if (st < 0 ||
        (st = slice_service_create(a->rank, a->n_ranks, a->n_slices, r, a->updater, &a->holder,
                                   &a->slices, err)) < 0 ||
        (st = sum_service_create(a->group_first, a->group_n, &a->of_group, 0, &a->sums, err)) < 0)
        return st;
    size_t nodes = r->max_shards < SHARD_TREE_NODES ? r->max_shards : SHARD_TREE_NODES;
    size_t most = nodes * (sizeof(struct sum_head) + n * sizeof(float));
    free(a->message);
    a->message = as_calloc(most + (size_t)a->group_n * sizeof(struct sum_head), 1);
    if (!a->message)
        return as_fail_nomem(err);
    struct mailbox_opts opts = {
        .max_bytes = most + 1024, .on_request = on_request, .on_lost = on_lost, .arg = a};
    st = mailbox_create(c, &opts, &a->box, err);
    a->epoch = coll_world(c)->epoch;
    return st;
}

/* ---- the gradient of a batch ---- */

static as_status compute_shard(struct async *a, struct backend *lane, int64_t batch, uint32_t shard,
                               struct as_err *err)
{
    struct replica *r = a->replica;
    if (!a->partials[shard] &&
        !(a->partials[shard] = as_calloc(r->n_numbers + N_WORK, sizeof(float))))
        return as_fail_nomem(err);
    float *to = a->partials[shard];
    as_status st = r->ops->gradient(r->self, lane, batch, shard, to, err);
    if (st < 0)
        return st;
    float share = r->ops->share(r->self, batch, shard);
    for (size_t i = 0; i < a->n_weights; i++)
        to[i] *= share;
    return AS_OK;
}

/* a->sum = the gradient, statistics and loss of the batch, computed by the whole group. */
static as_status compute_batch(struct async *a, struct backend *lane, int64_t batch,
                               struct as_err *err)
{
    const struct replica *r = a->replica;
    size_t n = r->n_numbers + N_WORK;
    uint32_t total = r->ops->shards(r->self, batch);
    struct shard_node nodes[SHARD_TREE_NODES], root = shard_tree_root(total);
    size_t first, end;
    coll_slice(total, a->group_n, a->rank - a->group_first, &first, &end);
    struct shard_run run = {(uint32_t)first, (uint32_t)(end - first)};
    AS_AUTO(as_freep) struct shard_node *leaves = as_calloc(run.count, sizeof *leaves);
    if (!leaves)
        return as_fail_nomem(err);
    float share = 0;
    for (uint32_t i = 0; i < run.count; i++) {
        as_status st = compute_shard(a, lane, batch, run.first + i, err);
        if (st < 0)
            return st;
        leaves[i] = (struct shard_node){run.first + i, 0, a->partials[run.first + i]};
        share += r->ops->share(r->self, batch, run.first + i);
    }
    if (a->group_n == 1)
        return shard_tree_sum(total, root, leaves, run.count, a->sum, n, err);
    size_t n_nodes = shard_tree_cover(total, run, nodes);
    AS_AUTO(as_freep) float *values = as_calloc(n_nodes * n, sizeof *values);
    if (!values)
        return as_fail_nomem(err);
    for (size_t i = 0; i < n_nodes; i++) {
        nodes[i].value = values + i * n;
        as_status st = shard_tree_sum(total, nodes[i], leaves, run.count, values + i * n, n, err);
        if (st < 0)
            return st;
    }
    return async_exchange(a, total, run, share, nodes, n_nodes, a->sum, err);
}

/* ---- the server ---- */

/* Takes a slice that has come back. A lost holder's slice stays as it is. */
static as_status take_slice(struct async *a, struct mail_call *call, uint32_t k, struct as_err *err)
{
    size_t first, n = push_slice_n(&a->form, k, a->n_slices, &first);
    as_status st = mailbox_finish(a->box, call, err);
    if (st == AS_E_UNAVAILABLE && !coll_is_over(a->coll))
        return AS_OK;
    if (st == AS_OK && call->answer_n != n * sizeof(float))
        st = as_fail(err, AS_E_CONFLICT, "rank %d answers with %zu bytes", (int)call->to,
                     call->answer_n);
    if (st < 0)
        return st;
    memcpy(a->values.weights + first, call->answer, call->answer_n);
    a->pulled[k]++;
    return AS_OK;
}

/* The heads and messages of all slices of a batch's gradient, one after another; the residual is
 * what they lose. */
static uint8_t *encode_all(struct async *a, bool plain)
{
    size_t bytes = 0;
    float *kept = a->kept.n ? a->kept.now[a->runs[a->rank].first] : NULL;
    for (uint32_t k = 0; k < a->n_slices; k++)
        bytes += sizeof(struct slice_push) +
                 push_bytes(&a->form, (struct push_slice){k, a->n_slices, plain});
    uint8_t *ret = as_calloc(bytes, 1), *to = ret;
    for (uint32_t k = 0; ret && k < a->n_slices; k++) {
        struct push_slice slice = {k, a->n_slices, plain};
        const struct slice_push head = {.slice = k, .plain = plain};
        memcpy(to, &head, sizeof head);
        to += sizeof head + push_encode(&a->form, slice, a->sum, kept, kept, to + sizeof head);
    }
    return ret;
}

static as_status push_all(struct async *a, int64_t batch, struct as_err *err)
{
    bool plain = !a->form.codec || a->at + batch < a->form.warmup;
    AS_AUTO(as_freep) struct mail_call *calls = as_calloc(a->n_slices, sizeof *calls);
    AS_AUTO(as_freep) uint8_t *messages = calls ? encode_all(a, plain) : NULL;
    const uint8_t *message = messages;
    as_status st = AS_OK;
    if (!calls || !messages)
        return as_fail_nomem(err);
    for (uint32_t k = 0; k < a->n_slices; k++) {
        size_t n = sizeof(struct slice_push) +
                   push_bytes(&a->form, (struct push_slice){k, a->n_slices, plain});
        calls[k] = (struct mail_call){.to = (int32_t)(k % (uint32_t)a->n_ranks),
                                      .kind = SLICE_PUSH,
                                      .step = (uint64_t)a->at,
                                      .parts = {{message, n}}};
        mailbox_begin(a->box, &calls[k]);
        message += n;
    }
    for (uint32_t k = 0; k < a->n_slices; k++) {
        as_status own = take_slice(a, &calls[k], k, st < 0 ? NULL : err);
        free(calls[k].answer);
        st = st < 0 ? st : own;
    }
    return st < 0 ? st : async_write_state(a, false, err);
}

/* Reports the batch that is done, and gets another. Without rank 0, which has the list, a group
 * goes on with every n_groups-th batch after its last one; then it waits for the next world. */
static as_status take_batch(struct async *a, int64_t done, unsigned wishes, struct slice_taken *ret,
                            struct as_err *err)
{
    struct slice_take t = {.done = done, .wishes = wishes};
    if (done >= 0)
        t.loss = (float)(a->own[done] = (double)a->sum[a->replica->n_numbers - 1]);
    struct mail_call call = {
        .to = 0, .kind = SLICE_TAKE, .step = (uint64_t)a->at, .parts = {{&t, sizeof t}}};
    mailbox_begin(a->box, &call);
    as_status st = mailbox_finish(a->box, &call, err);
    bool sound = st == AS_OK && call.answer_n >= sizeof *ret;
    if (sound)
        memcpy(ret, call.answer, sizeof *ret);
    sound = sound && ret->batch < a->n && ret->batch >= -1 && ret->count >= 0 && ret->count <= a->n;
    for (int64_t i = 0; sound && ret->batch < 0 && i < ret->count &&
                        call.answer_n == sizeof *ret + (size_t)ret->count * sizeof(float);
         i++) {
        float loss;
        memcpy(&loss, call.answer + sizeof *ret + (size_t)i * sizeof loss, sizeof loss);
        a->losses[i] = (double)loss;
    }
    free(call.answer);
    if (st == AS_OK && !sound)
        return as_fail(err, AS_E_CONFLICT, "rank 0 answers with a batch that is not of the phase");
    if (st != AS_E_UNAVAILABLE || coll_is_over(a->coll) || done + a->n_groups >= a->n || done < 0)
        return st;
    *ret = (struct slice_taken){.batch = done + a->n_groups};
    return AS_OK;
}

/* ---- a phase ---- */

static as_status begin_phase(struct async *a, struct coll *c, struct as_err *err)
{
    const struct replica *r = a->replica;
    int64_t at = r->ops->step(r->self), n = 0;
    bool resumes = a->resumes == a->epoch && a->at == at;
    as_status st = resumes ? async_write_state(a, false, err) : async_read_state(a, err);
    if (st < 0)
        return st;
    bool sole = at < a->warm_start;
    while (r->ops->shards(r->self, n) > 0 && !(sole && at + n == a->warm_start))
        n++;
    close_phase(a);
    a->own = as_calloc((size_t)n, sizeof *a->own);
    a->pulled = as_calloc(a->n_slices, sizeof *a->pulled);
    double *losses = resumes ? a->losses : as_calloc((size_t)n, sizeof *losses);
    if (losses != a->losses)
        free(a->losses);
    a->losses = losses;
    if (!a->own || !a->pulled || !a->losses)
        return as_fail_nomem(err);
    for (int64_t i = 0; i < n; i++) {
        a->own[i] = (double)-INFINITY;
        a->losses[i] = resumes ? a->losses[i] : (double)-INFINITY;
    }
    struct slice_phase phase = {.position = at,
                                .steps_done = a->state.steps,
                                .n = n,
                                .losses = a->losses,
                                .most_ms = PHASE_MS,
                                .sole = sole};
    if ((st = slice_service_begin(a->slices, &phase, &a->values, err)) < 0)
        return st;
    a->at = at;
    a->n = n;
    a->begun = a->epoch;
    if (a->kept.n)
        residuals_merge(&a->kept, a->runs[a->rank]);
    a->resumes = 0; /* from now on the slices are newer */
    /* Nobody asks a rank that has not begun. */
    return coll_barrier(c, (struct coll_id){.step = (uint64_t)at, .tag = TAG_BEGIN}, err);
}

static as_status work(struct async *a, struct backend *lane, unsigned wishes,
                      struct slice_taken *ret, struct as_err *err)
{
    int64_t batch = -1;
    for (;;) {
        struct slice_taken taken = {.batch = -1};
        as_status st = async_leads_group(a) ? take_batch(a, batch, wishes, &taken, err) : AS_OK;
        batch = taken.batch;
        if (st < 0 || (st = async_share_work(a, &batch, err)) < 0)
            return st;
        *ret = taken;
        if (batch < 0)
            return AS_OK;
        if ((st = compute_batch(a, lane, batch, err)) < 0 ||
            (async_leads_group(a) && (st = push_all(a, batch, err)) < 0))
            return st;
    }
}

static as_status settle(struct async *a, struct coll *c, struct slice_taken *taken,
                        struct as_err *err)
{
    const struct replica *r = a->replica;
    struct coll_id id = {.step = (uint64_t)a->at, .tag = TAG_END, .what = "phase"};
    struct coll_id over = {.step = (uint64_t)a->at, .tag = TAG_OVER, .what = "phase"};
    /* A slow rank may not have asked for its first batch: rank 0 answers it before it goes on. */
    as_status st = coll_barrier(c, over, err);
    if (st == AS_OK)
        st = coll_broadcast(c, id, 0, taken, sizeof *taken, err);
    if (st == AS_OK && a->kept.n) /* others may end the phase, and this rank not */
        residuals_begin(&a->kept, a->at, a->at + taken->count, a->kept.shards);
    if (st == AS_OK && taken->count > 0)
        st = coll_broadcast(c, id, 0, a->losses, (size_t)taken->count * sizeof *a->losses, err);
    for (uint32_t k = 0; st == AS_OK && k < a->n_slices; k++) {
        int32_t holder = (int32_t)(k % (uint32_t)a->n_ranks);
        if (holder == a->rank)
            slice_service_read(a->slices, k, &a->values);
        st = async_spread_slice(a, c, holder, k, a->n_slices, true, err);
    }
    if (st < 0)
        return st;
    for (int64_t i = 0; i < taken->count; i++)
        a->state.loss_sum += (float)a->losses[i];
    a->state.steps += (int32_t)taken->count;
    close_phase(a);
    a->resumes = 0;
    if ((st = async_write_state(a, true, err)) < 0)
        return st;
    r->ops->advance(r->self, taken->count);
    if (a->kept.n)
        residuals_commit(&a->kept);
    return AS_OK;
}

static as_status async_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                           unsigned *ret, struct as_err *err)
{
    struct async *a = self;
    struct slice_taken taken = {0};
    a->coll = c;
    as_status st = a->epoch == coll_world(c)->epoch ? AS_OK : join(a, c, lane, err);
    if (st == AS_OK && (st = begin_phase(a, c, err)) == AS_OK &&
        (st = work(a, lane, wishes, &taken, err)) == AS_OK)
        st = settle(a, c, &taken, err);
    *ret = taken.agreed;
    if (st < 0)
        leave(a);
    return st;
}

/* ---- what is kept ---- */

static size_t async_parts(void *self, struct strategy_part *ret)
{
    return residuals_parts(&((struct async *)self)->kept, ret);
}

static as_status async_restored(void *self, bool from_checkpoint, struct as_err *err)
{
    struct async *a = self;
    (void)err;
    if (a->kept.n && from_checkpoint)
        residuals_hold_all(&a->kept, a->replica->ops->step(a->replica->self));
    return AS_OK;
}

static bool async_gathers(const void *self)
{
    return ((const struct async *)self)->kept.n > 0;
}

static as_status async_gather(void *self, struct coll *c, struct backend *lane, struct as_err *err)
{
    struct async *a = self;
    (void)lane;
    if (!a->kept.n)
        return AS_OK;
    async_spread_residuals(a, c);
    return residuals_gather(&a->kept, c, a->runs, err);
}

const struct strategy_ops strategy_server_async = {
    .name = "server",
    .create = async_create,
    .free = async_free,
    .run = async_run,
    .parts = async_parts,
    .restored = async_restored,
    .gather = async_gather,
    .gathers = async_gathers,
    .meet = async_meet,
};
