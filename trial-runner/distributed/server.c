/* A parameter server whose slices live in the ranks, synchronous or with bounded staleness.
 *
 * The server adds (sum_service.c): slice k of the vector is on rank k mod n. For each step every
 * rank sends what it has computed of the batch, slice by slice, and gets the slice of the sum back:
 * 2N bytes for each rank, as in MXNet's push and pull (Chen et al. 2015). Every rank applies the
 * sums in the order of the steps, so all replicas have the same bits at the same step, and any
 * optimizer can be used.
 *
 *   sync          a rank waits for the sum of its step. The sum has the order of the tree over the
 *                 shards: equal bits to a serial run
 *   ssp           a rank computes up to `staleness` steps ahead of the sums that it has (clock.h);
 *                 the gradients of those steps are of older weights (Ho et al. 2013)
 *   backup b      the first n - b gradients of a step count (Chen et al. 2016). A rank that was late
 *                 asks for the sums it has missed before it computes again
 *
 * When the rank of a slice dies, nothing is lost but sums that nobody has: all ranks have the
 * weights. In the next world those that are behind get the state of one that is not, and steps whose
 * sum was not complete are computed again; without staleness from what this rank has kept. */
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/clock.h"
#include "trial-runner/distributed/shard_tree.h"
#include "trial-runner/distributed/strategy.h"
#include "trial-runner/distributed/sum_service.h"

enum { N_WISHES = 2 }; /* they follow the numbers of a gradient */

/* The requests of one step: one for each slice. */
struct flight {
    bool begun;              /* the gradient has been given */
    struct mail_call *calls; /* [n_slices]; one with an answer has the sum of its slice */
    uint8_t *message;        /* all slices' heads and numbers */
};

struct server {
    struct replica *replica;
    size_t n; /* of a vector: the gradient's numbers and the wishes */
    int64_t bound, slices_wanted;
    uint32_t backup;
    /* What has been computed for step `step`: */
    int64_t step;
    float **partials; /* [max_shards] */
    bool *has;        /* [max_shards] */
    float *sum, *node;
    struct shard_run *runs;

    /* Of the world: */
    uint32_t epoch; /* 0: none */
    int32_t rank, n_ranks;
    uint32_t n_slices;
    struct mailbox *box;
    struct sum_service *service;
    struct flight *flights; /* [bound + 1], by step modulo that */
    int64_t next;           /* the first step that this rank has not computed */
    bool behind;            /* its last gift was late */
};

/* ---- life ---- */

static struct flight *flight_of(struct server *s, int64_t step)
{
    return &s->flights[step % (s->bound + 1)];
}

static void land(struct server *s, struct flight *f)
{
    for (uint32_t k = 0; f->calls && k < s->n_slices; k++)
        free(f->calls[k].answer);
    free(f->calls);
    free(f->message);
    *f = (struct flight){0};
}

/* Leaves the world: every call ends, and nothing of it is kept. */
static void leave(struct server *s)
{
    mailbox_free(s->box);
    s->box = NULL;
    sum_service_free(s->service);
    s->service = NULL;
    for (int64_t i = 0; s->flights && i <= s->bound; i++)
        land(s, &s->flights[i]);
    s->epoch = 0;
}

static void server_free(void *self)
{
    struct server *s = self;
    if (!s)
        return;
    leave(s);
    for (uint32_t i = 0; s->partials && i < s->replica->max_shards; i++)
        free(s->partials[i]);
    free(s->partials);
    free(s->has);
    free(s->sum);
    free(s->node);
    free(s->runs);
    free(s->flights);
    free(s);
}

static inline void server_freep(struct server **s)
{
    server_free(*s);
}

static as_status server_create(const struct strategy_setup *setup, void **ret, struct as_err *err)
{
    const struct distributed_spec *d = &setup->spec->distributed;
    struct replica *r = setup->replica;
    AS_AUTO(server_freep) struct server *s = as_calloc(1, sizeof *s);
    if (!s)
        return as_fail_nomem(err);
    *s = (struct server){.replica = r,
                         .n = r->n_numbers + N_WISHES,
                         .slices_wanted = d->server_shards,
                         .backup = (uint32_t)d->backup,
                         .step = -1};
    if (d->mode == DISTRIBUTED_SSP)
        s->bound = d->staleness;
    s->partials = as_calloc(r->max_shards, sizeof *s->partials);
    s->has = as_calloc(r->max_shards, sizeof *s->has);
    s->sum = as_calloc(s->n, sizeof *s->sum);
    s->node = as_calloc(s->n, sizeof *s->node);
    s->runs = as_calloc(WORLD_MAX_RANKS, sizeof *s->runs);
    s->flights = as_calloc((size_t)s->bound + 1, sizeof *s->flights);
    if (!s->partials || !s->has || !s->sum || !s->node || !s->runs || !s->flights)
        return as_fail_nomem(err);
    *ret = as_steal(s);
    return AS_OK;
}

/* Opens the mailbox of a new world. */
static as_status join(struct server *s, struct coll *c, struct as_err *err)
{
    leave(s);
    s->rank = coll_rank(c);
    s->n_ranks = coll_size(c);
    s->n_slices = (uint32_t)(s->slices_wanted ? s->slices_wanted : s->n_ranks);
    uint32_t backup = s->backup < (uint32_t)s->n_ranks ? s->backup : (uint32_t)s->n_ranks - 1;
    as_status st = sum_service_create(0, s->n_ranks, s->n, backup, &s->service, err);
    if (st < 0)
        return st;
    uint32_t shards = s->replica->max_shards;
    size_t nodes = shards < SHARD_TREE_NODES ? shards : SHARD_TREE_NODES;
    struct mailbox_opts opts = {.max_bytes = sizeof(struct sum_head) +
                                             nodes * (s->n / s->n_slices + 1) * sizeof(float),
                                .on_request = sum_service_request,
                                .on_lost = sum_service_lost,
                                .arg = s->service};
    st = mailbox_create(c, &opts, &s->box, err);
    s->epoch = coll_world(c)->epoch;
    s->next = s->replica->ops->step(s->replica->self);
    s->behind = false;
    return st;
}

/* ---- what this rank gives ---- */

static as_status compute_shard(struct server *s, struct backend *lane, int64_t ahead,
                               uint32_t shard, struct as_err *err)
{
    struct replica *r = s->replica;
    if (!s->partials[shard] && !(s->partials[shard] = as_calloc(s->n, sizeof(float))))
        return as_fail_nomem(err);
    float *to = s->partials[shard];
    as_status st = r->ops->gradient(r->self, lane, ahead, shard, to, err);
    if (st < 0)
        return st;
    float share = r->ops->share(r->self, ahead, shard);
    for (size_t i = 0; i < r->n_params + r->n_state; i++)
        to[i] *= share;
    s->has[shard] = true;
    return AS_OK;
}

static as_status compute_run(struct server *s, struct backend *lane, int64_t ahead,
                             struct shard_run run, unsigned wishes, struct as_err *err)
{
    int64_t step = s->replica->ops->step(s->replica->self) + ahead;
    if (s->step != step)
        memset(s->has, 0, s->replica->max_shards * sizeof *s->has);
    s->step = step;
    for (uint32_t i = 0; i < run.count; i++) {
        uint32_t shard = run.first + i;
        as_status st = s->has[shard] ? AS_OK : compute_shard(s, lane, ahead, shard, err);
        if (st < 0)
            return st;
        for (size_t w = 0; w < N_WISHES; w++)
            s->partials[shard][s->replica->n_numbers + w] = i == 0 && (wishes >> w & 1);
    }
    return AS_OK;
}

static size_t slice_of(const struct server *s, uint32_t k, size_t *ret_first)
{
    size_t end;
    coll_slice(s->n, (int32_t)s->n_slices, (int32_t)k, ret_first, &end);
    return end - *ret_first;
}

/* Puts node `i` of `n_nodes` into the messages: each has its head, then its slice of each node. */
static void pack_node(struct server *s, struct flight *f, size_t n_nodes, size_t i)
{
    uint8_t *message = f->message;
    for (uint32_t k = 0; k < s->n_slices; k++) {
        size_t first, n = slice_of(s, k, &first) * sizeof(float);
        memcpy(message + sizeof(struct sum_head) + i * n, s->node + first, n);
        message += sizeof(struct sum_head) + n_nodes * n;
    }
}

/* The run's gradients, summed to the nodes that cover it, as messages. */
static as_status pack_run(struct server *s, struct flight *f, struct shard_run run, uint32_t total,
                          size_t *ret_nodes, struct as_err *err)
{
    struct shard_node nodes[SHARD_TREE_NODES];
    AS_AUTO(as_freep) struct shard_node *leaves = as_calloc(run.count, sizeof *leaves);
    size_t n_nodes = shard_tree_cover(total, run, nodes);
    f->message =
        as_calloc(s->n_slices * sizeof(struct sum_head) + n_nodes * s->n * sizeof(float), 1);
    if (!leaves || !f->message)
        return as_fail_nomem(err);
    for (uint32_t i = 0; i < run.count; i++)
        leaves[i] = (struct shard_node){run.first + i, 0, s->partials[run.first + i]};
    for (size_t i = 0; i < n_nodes; i++) {
        as_status st = shard_tree_sum(total, nodes[i], leaves, run.count, s->node, s->n, err);
        if (st < 0)
            return st;
        pack_node(s, f, n_nodes, i);
    }
    *ret_nodes = n_nodes;
    return AS_OK;
}

/* Sends a message for each slice whose sum is not here yet. `head` is that of the first slice. */
static void send_all(struct server *s, struct flight *f, int kind, int64_t step,
                     struct sum_head head, size_t n_nodes)
{
    uint8_t *message = f->message;
    for (uint32_t k = 0; k < s->n_slices; k++) {
        size_t first, n = sizeof head + n_nodes * slice_of(s, k, &first) * sizeof(float);
        struct mail_call *call = &f->calls[k];
        head.slice = k;
        head.n_slices = s->n_slices;
        memcpy(message, &head, sizeof head);
        if (!call->answer) {
            *call = (struct mail_call){.to = (int32_t)(k % (uint32_t)s->n_ranks),
                                       .kind = kind,
                                       .step = (uint64_t)step,
                                       .parts = {{message, n}}};
            mailbox_begin(s->box, call);
        }
        message += n;
    }
}

static as_status make_calls(struct server *s, struct flight *f, struct as_err *err)
{
    if (!f->calls)
        f->calls = as_calloc(s->n_slices, sizeof *f->calls);
    return f->calls ? AS_OK : as_fail_nomem(err);
}

/* Computes this rank's part of the next step, and gives it. */
static as_status give(struct server *s, struct backend *lane, int64_t ahead, unsigned wishes,
                      struct as_err *err)
{
    const struct replica *r = s->replica;
    struct flight *f = flight_of(s, s->next);
    uint32_t total = r->ops->shards(r->self, ahead);
    size_t n_nodes = 0;
    coll_spread(total, s->n_ranks, s->runs);
    struct shard_run run = s->runs[s->rank];
    as_status st = compute_run(s, lane, ahead, run, wishes, err);
    if (st < 0 || (st = make_calls(s, f, err)) < 0 ||
        (st = pack_run(s, f, run, total, &n_nodes, err)) < 0)
        return st;
    struct sum_head head = {.first = run.first, .count = run.count, .total = total};
    for (uint32_t i = 0; i < run.count; i++)
        head.share += r->ops->share(r->self, ahead, run.first + i);
    send_all(s, f, SUM_GIVE, s->next, head, n_nodes);
    f->begun = true;
    s->next++;
    return AS_OK;
}

/* ---- what it gets ---- */

static bool is_here(struct server *s, const struct flight *f)
{
    for (uint32_t k = 0; k < s->n_slices; k++)
        if (!mailbox_is_done(s->box, &f->calls[k]))
            return false;
    return true;
}

/* Waits for the answers of the calls that were sent; a peeked slice that is not there is fine. */
static as_status wait_for(struct server *s, struct flight *f, bool peeked, bool *ret_all,
                          struct as_err *err)
{
    *ret_all = true;
    for (uint32_t k = 0; k < s->n_slices; k++) {
        struct mail_call *call = &f->calls[k];
        size_t first, n = slice_of(s, k, &first);
        as_status st = mailbox_finish(s->box, call, err);
        if (st == AS_E_NOT_FOUND && peeked) {
            free(call->answer);
            call->answer = NULL;
            *ret_all = false;
        } else if (st < 0) {
            return st;
        } else if (call->answer_n != sizeof(struct sum_answer) + n * sizeof(float)) {
            return as_fail(err, AS_E_CONFLICT, "rank %d answers with %zu bytes, expected %zu",
                           (int)call->to, call->answer_n,
                           sizeof(struct sum_answer) + n * sizeof(float));
        }
    }
    return AS_OK;
}

/* Asks for the sum of a step that others have perhaps completed without this rank. */
static as_status peek(struct server *s, int64_t step, bool *ret_all, struct as_err *err)
{
    struct flight *f = flight_of(s, step);
    as_status st = make_calls(s, f, err);
    if (st < 0)
        return st;
    f->message = as_calloc(s->n_slices, sizeof(struct sum_head));
    if (!f->message)
        return as_fail_nomem(err);
    send_all(s, f, SUM_PEEK, step, (struct sum_head){.total = 1}, 0);
    st = wait_for(s, f, true, ret_all, err);
    free(f->message);
    f->message = NULL;
    if (st == AS_OK && *ret_all)
        s->next++;
    return st;
}

/* Applies the sum that has come. */
static as_status apply(struct server *s, struct backend *lane, struct flight *f, unsigned *ret,
                       struct as_err *err)
{
    struct replica *r = s->replica;
    bool late = false;
    *ret = 0;
    for (uint32_t k = 0; k < s->n_slices; k++) {
        struct sum_answer a;
        size_t first, n = slice_of(s, k, &first);
        memcpy(&a, f->calls[k].answer, sizeof a);
        memcpy(s->sum + first, f->calls[k].answer + sizeof a, n * sizeof(float));
        late = late || a.late;
    }
    s->behind = late || (s->behind && !f->begun);
    land(s, f);
    for (size_t w = 0; w < N_WISHES; w++)
        if (s->sum[r->n_numbers + w] > 0)
            *ret |= 1U << w;
    return r->ops->update(r->self, lane, s->sum, err);
}

/* ---- a step ---- */

static as_status step(struct server *s, struct backend *lane, unsigned wishes, unsigned *ret,
                      struct as_err *err)
{
    const struct replica *r = s->replica;
    int64_t at = r->ops->step(r->self);
    struct flight *f = flight_of(s, at);
    bool all = false;
    as_status st = AS_OK;
    if (s->next < at)
        s->next = at;
    if (s->behind && s->next == at && (st = peek(s, at, &all, err)) < 0)
        return st;
    s->behind = s->behind && all;
    while (!all && clock_may_begin(s->bound, at, s->next) &&
           r->ops->shards(r->self, s->next - at) > 0 && !(f->begun && is_here(s, f)))
        if ((st = give(s, lane, s->next - at, wishes, err)) < 0)
            return st;
    if (!all && (st = wait_for(s, f, false, &all, err)) < 0)
        return st;
    return apply(s, lane, f, ret, err);
}

static as_status server_run(void *self, struct coll *c, struct backend *lane, unsigned wishes,
                            unsigned *ret, struct as_err *err)
{
    struct server *s = self;
    as_status st = s->epoch == coll_world(c)->epoch ? AS_OK : join(s, c, err);
    if (st == AS_OK)
        st = step(s, lane, wishes, ret, err);
    if (st < 0)
        leave(s);
    return st;
}

const struct strategy_ops strategy_server = {
    .name = "server",
    .create = server_create,
    .free = server_free,
    .run = server_run,
};
