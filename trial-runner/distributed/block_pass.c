/* The order of a stage: first it fills the pipeline behind it (forward passes whose backward
 * waits), then each forward is followed by the backward of an earlier shard, then what waits is
 * drained. Between them stand the messages, each paired with one of the neighbour: in the middle
 * part a stage sends forward and receives backward in one exchange, while the stage behind it does
 * the reverse. */
#include "trial-runner/distributed/block_pass.h"

#include <stdlib.h>

enum { TAG_FORWARD = 0, TAG_BACKWARD, TAG_BOTH };

struct block_pass {
    const struct replica *replica;
    size_t stage, stages, sets;
    const struct replica_block *first, *last;
    size_t n_state;      /* of all its blocks */
    float *in, *out;     /* [rows, …]: values, of one shard */
    float *d_in, *d_out; /* the same: gradients by them */
    float *statistics;   /* [sets, n_state] */
    float *loss;         /* [sets] */
    /* Of a run: */
    struct coll *c;
    struct backend *lane;
    const struct block_sink *sink;
};

size_t block_pass_sets(size_t stage, size_t stages, uint32_t max_shards)
{
    size_t most = stages - stage;
    return most < max_shards ? most : max_shards;
}

void block_pass_free(struct block_pass *p)
{
    if (!p)
        return;
    free(p->in);
    free(p->out);
    free(p->d_in);
    free(p->d_out);
    free(p->statistics);
    free(p->loss);
    free(p);
}

static bool is_first(const struct block_pass *p)
{
    return p->stage == 0;
}

static bool is_last(const struct block_pass *p)
{
    return p->stage + 1 == p->stages;
}

static as_status create_values(struct block_pass *p, struct as_err *err)
{
    size_t rows = p->replica->blocks->rows, in = rows * p->first->in, out = rows * p->last->out;
    p->statistics = as_calloc(p->sets * p->n_state, sizeof(float));
    p->loss = as_calloc(p->sets, sizeof(float));
    if (!is_first(p)) {
        p->in = as_calloc(in, sizeof(float));
        p->d_in = as_calloc(in, sizeof(float));
    }
    if (!is_last(p)) {
        p->out = as_calloc(out, sizeof(float));
        p->d_out = as_calloc(out, sizeof(float));
    }
    bool there = p->statistics && p->loss && (is_first(p) || (p->in && p->d_in)) &&
                 (is_last(p) || (p->out && p->d_out));
    return there ? AS_OK : as_fail_nomem(err);
}

as_status block_pass_create(const struct replica *r, size_t stage, size_t stages, size_t first,
                            size_t end, struct block_pass **ret, struct as_err *err)
{
    AS_AUTO(block_pass_freep) struct block_pass *p = as_calloc(1, sizeof *p);
    if (!p)
        return as_fail_nomem(err);
    *p = (struct block_pass){.replica = r,
                             .stage = stage,
                             .stages = stages,
                             .sets = block_pass_sets(stage, stages, r->max_shards),
                             .first = &r->blocks->of[first],
                             .last = &r->blocks->of[end - 1]};
    for (size_t i = first; i < end; i++)
        p->n_state += r->blocks->of[i].n_state;
    as_status st = create_values(p, err);
    if (st < 0)
        return st;
    *ret = as_steal(p);
    return AS_OK;
}

/* ---- messages ---- */

static struct coll_id id_of(const struct block_pass *p, uint64_t tag)
{
    const struct replica *r = p->replica;
    return (struct coll_id){
        .step = (uint64_t)r->ops->step(r->self), .tag = tag, .what = "values of layers"};
}

static size_t bytes_of(const struct block_pass *p, uint32_t shard, size_t of_row)
{
    const struct replica *r = p->replica;
    return r->ops->rows(r->self, 0, shard) * of_row * sizeof(float);
}

static as_status receive_forward(struct block_pass *p, uint32_t shard, struct as_err *err)
{
    return is_first(p) ? AS_OK
                       : coll_receive(p->c, id_of(p, TAG_FORWARD), (int32_t)p->stage - 1, p->in,
                                      bytes_of(p, shard, p->first->in), err);
}

static as_status send_forward(struct block_pass *p, uint32_t shard, struct as_err *err)
{
    return is_last(p) ? AS_OK
                      : coll_send(p->c, id_of(p, TAG_FORWARD), (int32_t)p->stage + 1, p->out,
                                  bytes_of(p, shard, p->last->out), err);
}

static as_status receive_backward(struct block_pass *p, uint32_t shard, struct as_err *err)
{
    return is_last(p) ? AS_OK
                      : coll_receive(p->c, id_of(p, TAG_BACKWARD), (int32_t)p->stage + 1, p->d_out,
                                     bytes_of(p, shard, p->last->out), err);
}

static as_status send_backward(struct block_pass *p, uint32_t shard, struct as_err *err)
{
    return is_first(p) ? AS_OK
                       : coll_send(p->c, id_of(p, TAG_BACKWARD), (int32_t)p->stage - 1, p->d_in,
                                   bytes_of(p, shard, p->first->in), err);
}

/* `ahead` goes to the next stage, and the gradient of `back` comes from it. */
static as_status exchange_next(struct block_pass *p, uint32_t ahead, uint32_t back,
                               struct as_err *err)
{
    int32_t peer = (int32_t)p->stage + 1;
    const struct coll_message sent = {
        .peer = peer, .from = p->out, .bytes = bytes_of(p, ahead, p->last->out)};
    const struct coll_message received = {
        .peer = peer, .to = p->d_out, .bytes = bytes_of(p, back, p->last->out)};
    return is_last(p) ? AS_OK
                      : coll_exchange(p->c, id_of(p, TAG_BOTH), &sent, 1, &received, 1, err);
}

/* The other side of it. */
static as_status exchange_before(struct block_pass *p, uint32_t ahead, uint32_t back,
                                 struct as_err *err)
{
    int32_t peer = (int32_t)p->stage - 1;
    const struct coll_message sent = {
        .peer = peer, .from = p->d_in, .bytes = bytes_of(p, back, p->first->in)};
    const struct coll_message received = {
        .peer = peer, .to = p->in, .bytes = bytes_of(p, ahead, p->first->in)};
    return is_first(p) ? AS_OK
                       : coll_exchange(p->c, id_of(p, TAG_BOTH), &sent, 1, &received, 1, err);
}

/* ---- passes ---- */

static as_status forward(struct block_pass *p, uint32_t shard, struct as_err *err)
{
    const struct replica_blocks *b = p->replica->blocks;
    size_t set = shard % p->sets;
    return b->ops->forward(b->self, p->lane, shard, set, p->in, p->out,
                           p->statistics + set * p->n_state, &p->loss[set], err);
}

static as_status backward(struct block_pass *p, uint32_t shard, struct as_err *err)
{
    const struct replica_blocks *b = p->replica->blocks;
    size_t set = shard % p->sets;
    const float *gradient = NULL;
    as_status st =
        b->ops->backward(b->self, p->lane, shard, set, p->d_out, p->d_in, &gradient, err);
    if (st == AS_OK)
        st = p->sink->take(p->sink->arg, shard, gradient, p->statistics + set * p->n_state,
                           is_last(p) ? p->loss[set] : 0, err);
    return st;
}

/* Forward passes of shards [0, n), whose backward passes wait. */
static as_status fill(struct block_pass *p, uint32_t n, struct as_err *err)
{
    as_status st = AS_OK;
    for (uint32_t i = 0; st == AS_OK && i < n; i++)
        if ((st = receive_forward(p, i, err)) == AS_OK && (st = forward(p, i, err)) == AS_OK)
            st = send_forward(p, i, err);
    return st;
}

/* Backward passes of the last n shards. */
static as_status drain(struct block_pass *p, uint32_t shards, uint32_t n, struct as_err *err)
{
    as_status st = AS_OK;
    for (uint32_t i = shards - n; st == AS_OK && i < shards; i++)
        if ((st = receive_backward(p, i, err)) == AS_OK && (st = backward(p, i, err)) == AS_OK)
            st = send_backward(p, i, err);
    return st;
}

as_status block_pass_run(struct block_pass *p, struct coll *c, struct backend *lane,
                         const struct block_sink *sink, struct as_err *err)
{
    const struct replica *r = p->replica;
    uint32_t shards = r->ops->shards(r->self, 0);
    uint32_t behind = (uint32_t)(p->stages - p->stage - 1);
    uint32_t waiting = behind < shards ? behind : shards, left = shards - waiting;
    p->c = c;
    p->lane = lane;
    p->sink = sink;
    as_status st = fill(p, waiting, err);
    if (st == AS_OK && left > 0)
        st = receive_forward(p, waiting, err);
    for (uint32_t i = 0; st == AS_OK && i < left; i++) {
        if ((st = forward(p, waiting + i, err)) < 0 ||
            (st = exchange_next(p, waiting + i, i, err)) < 0 || (st = backward(p, i, err)) < 0)
            return st;
        st = i + 1 < left ? exchange_before(p, waiting + i + 1, i, err) : send_backward(p, i, err);
    }
    return st < 0 ? st : drain(p, shards, waiting, err);
}
