/* What a rank gives to a parameter server with a common step: the gradients of its run of shards,
 * as a message for each slice.
 *
 * Without a codec the shards are added up to the nodes of the tree that cover the run, so that the
 * sum has the order of the tree over all shards. With a codec, or with `significance`, each shard
 * is encoded by itself, because only then a message does not depend on how many ranks there are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trial-runner/distributed/parameter_server_priv.h"
#include "trial-runner/distributed/shard_tree.h"

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

static as_status compute_shards(struct server *s, struct backend *lane, int64_t ahead,
                                struct shard_run run, struct as_err *err)
{
    as_status st = AS_OK;
    for (uint32_t i = 0; st == AS_OK && i < run.count; i++)
        if (!s->has[run.first + i])
            st = compute_shard(s, lane, ahead, run.first + i, err);
    return st;
}

/* Computes with this rank's own updates of the steps whose sums it waits for. */
static as_status compute_ahead(struct server *s, struct backend *lane, int64_t ahead,
                               struct shard_run run, struct as_err *err)
{
    int64_t at = s->replica->ops->step(s->replica->self);
    as_status st = own_writes_begin(&s->writes, err);
    for (int64_t step = at; st == AS_OK && step < at + ahead; step++)
        st = own_writes_add(&s->writes, lane, step, server_flight(s, step)->own, err);
    if (st < 0 || (st = own_writes_put(&s->writes, err)) < 0)
        return st;
    st = compute_shards(s, lane, ahead, run, err);
    as_status back = own_writes_end(&s->writes, NULL);
    return st < 0 ? st : back;
}

/* Keeps this rank's part of the sum of a step, for the steps that it computes before it has the
 * sum. */
static void keep_own(struct server *s, int64_t step, struct shard_run run)
{
    float *own = server_flight(s, step)->own;
    size_t n = s->replica->n_params;
    if (!own)
        return;
    memset(own, 0, n * sizeof *own);
    for (uint32_t i = 0; i < run.count; i++)
        for (size_t k = 0; k < n; k++)
            own[k] += s->partials[run.first + i][k];
}

static as_status compute_run(struct server *s, struct backend *lane, int64_t ahead,
                             struct shard_run run, unsigned wishes, struct as_err *err)
{
    int64_t step = s->replica->ops->step(s->replica->self) + ahead;
    if (s->step != step)
        memset(s->has, 0, s->replica->max_shards * sizeof *s->has);
    s->step = step;
    as_status st = ahead > 0 && s->writes.replica ? compute_ahead(s, lane, ahead, run, err)
                                                  : compute_shards(s, lane, ahead, run, err);
    if (st < 0)
        return st;
    for (uint32_t i = 0; i < run.count; i++)
        strategy_wishes_put(i == 0 ? wishes : 0,
                            s->partials[run.first + i] + s->replica->n_numbers);
    keep_own(s, step, run);
    return AS_OK;
}

size_t server_slice(const struct server *s, uint32_t k, size_t *ret_first)
{
    return push_slice_n(&s->form, k, s->n_slices, ret_first);
}

/* The slices of a step's messages. */
static struct push_slice push_of(const struct server *s, int64_t step, uint32_t k)
{
    bool plain = !(s->form.codec || push_is_measured(&s->form)) || step < s->form.warmup;
    return (struct push_slice){k, s->n_slices, plain};
}

/* The room of a slice's message with `items` vectors: its head, and the longest encoding of
 * each. */
static size_t room_of(const struct server *s, int64_t step, uint32_t k, size_t items)
{
    return sizeof(struct sum_head) + items * push_bytes(&s->form, push_of(s, step, k));
}

/* Memory for messages with `items` vectors in each: heads alone by now. */
static as_status make_message(struct server *s, struct flight *f, int64_t step, size_t items,
                              struct as_err *err)
{
    size_t bytes = 0;
    free(f->message);
    free(f->used);
    f->used = as_calloc(s->n_slices, sizeof *f->used);
    for (uint32_t k = 0; k < s->n_slices; k++) {
        bytes += room_of(s, step, k, items);
        if (f->used)
            f->used[k] = sizeof(struct sum_head);
    }
    f->message = as_calloc(bytes, 1);
    return f->message && f->used ? AS_OK : as_fail_nomem(err);
}

/* Puts the next vector of `items` into the messages: each has its head, then its slice of each
 * vector. */
static void pack(struct server *s, struct flight *f, int64_t step, size_t items, const float *x,
                 const float *before, float *after)
{
    uint8_t *message = f->message;
    for (uint32_t k = 0; k < s->n_slices; k++) {
        f->used[k] +=
            push_encode(&s->form, push_of(s, step, k), x, before, after, message + f->used[k]);
        message += room_of(s, step, k, items);
    }
}

/* What is significant in this step: what moves a weight by at least `significance` of it. */
static as_status set_limits(struct server *s, int64_t step, struct as_err *err)
{
    struct replica *r = s->replica;
    float *limits = s->form.limits;
    if (!limits)
        return AS_OK;
    double lr = r->ops->rate(r->self, step);
    as_status st = r->ops->params_get(r->self, 0, r->n_params, limits, err);
    float per_weight = lr > 0 ? (float)(s->form.significance / lr) : INFINITY;
    for (size_t i = 0; st == AS_OK && i < r->n_params; i++)
        limits[i] = limits[i] == 0 ? 0 : per_weight * fabsf(limits[i]); /* never 0 x infinity */
    return st;
}

/* The run's gradients as messages, each shard by itself. */
static as_status pack_shards(struct server *s, struct flight *f, int64_t step, struct shard_run run,
                             struct as_err *err)
{
    as_status st = make_message(s, f, step, run.count, err);
    if (st == AS_OK)
        st = set_limits(s, step, err);
    f->step = -1;
    for (uint32_t i = 0; st == AS_OK && i < run.count; i++) {
        uint32_t shard = run.first + i;
        const float *before = NULL;
        float *after = NULL;
        if (server_has_feedback(s)) {
            float **row = &f->after[shard];
            if (!*row && !(*row = as_calloc(s->kept.n, sizeof **row)))
                return as_fail_nomem(err);
            before = server_lost_before(s, step, shard);
            after = *row;
        }
        pack(s, f, step, run.count, s->partials[shard], before, after);
    }
    f->run = run;
    f->step = step;
    return st;
}

/* The run's gradients, summed to the nodes that cover it, as messages. */
static as_status pack_nodes(struct server *s, struct flight *f, int64_t step, struct shard_run run,
                            uint32_t total, size_t *ret_nodes, struct as_err *err)
{
    struct shard_node nodes[SHARD_TREE_NODES];
    AS_AUTO(as_freep) struct shard_node *leaves = as_calloc(run.count, sizeof *leaves);
    size_t n_nodes = shard_tree_cover(total, run, nodes);
    as_status st = make_message(s, f, step, n_nodes, err);
    if (!leaves || st < 0)
        return as_fail_nomem(err);
    for (uint32_t i = 0; i < run.count; i++)
        leaves[i] = (struct shard_node){run.first + i, 0, s->partials[run.first + i]};
    for (size_t i = 0; i < n_nodes; i++) {
        st = shard_tree_sum(total, nodes[i], leaves, run.count, s->node, s->n, err);
        if (st < 0)
            return st;
        pack(s, f, step, n_nodes, s->node, NULL, NULL);
    }
    *ret_nodes = n_nodes;
    return AS_OK;
}

void server_send_all(struct server *s, struct flight *f, int kind, int64_t step,
                     struct sum_head head, size_t items)
{
    uint8_t *message = f->message;
    for (uint32_t k = 0; k < s->n_slices; k++) {
        size_t n = kind == SUM_GIVE ? f->used[k] : sizeof head;
        struct mail_call *call = &f->calls[k];
        head.slice = k;
        head.n_slices = s->n_slices;
        head.plain = push_of(s, step, k).plain;
        memcpy(message, &head, sizeof head);
        if (!call->answer) {
            *call = (struct mail_call){.to = (int32_t)(k % (uint32_t)s->n_ranks),
                                       .kind = kind,
                                       .step = (uint64_t)step,
                                       .parts = {{message, n}}};
            mailbox_begin(s->box, call);
        }
        message += room_of(s, step, k, items);
    }
}

as_status server_make_calls(struct server *s, struct flight *f, struct as_err *err)
{
    if (!f->calls)
        f->calls = as_calloc(s->n_slices, sizeof *f->calls);
    return f->calls ? AS_OK : as_fail_nomem(err);
}

as_status server_give(struct server *s, struct backend *lane, int64_t ahead, unsigned wishes,
                      struct as_err *err)
{
    const struct replica *r = s->replica;
    struct flight *f = server_flight(s, s->next);
    uint32_t total = r->ops->shards(r->self, ahead);
    size_t items = 0;
    if (server_has_feedback(s))
        residuals_spread(&s->kept, total, s->n_ranks, s->runs);
    else
        coll_spread(total, s->n_ranks, s->runs);
    struct shard_run run = s->runs[s->rank];
    as_status st = replica_hold_shards(r, run, err);
    if (st == AS_OK)
        st = compute_run(s, lane, ahead, run, wishes, err);
    if (st == AS_OK)
        st = server_make_calls(s, f, err);
    f->total = total;
    if (st == AS_OK && push_by_shard(&s->form)) {
        items = run.count;
        st = pack_shards(s, f, s->next, run, err);
    } else if (st == AS_OK) {
        st = pack_nodes(s, f, s->next, run, total, &items, err);
    }
    if (st < 0)
        return st;
    struct sum_head head = {.first = run.first, .count = run.count, .total = total};
    for (uint32_t i = 0; i < run.count; i++)
        head.share += r->ops->share(r->self, ahead, run.first + i);
    server_send_all(s, f, SUM_GIVE, s->next, head, items);
    f->begun = true;
    s->next++;
    return AS_OK;
}
